//! Jobs (batch/v1).

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::batch::v1::{Job, JobSpec};
use k8s_openapi::api::core::v1::{PodSpec, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::api::PostParams;
use kube::{Api, Client};

use super::pod::container;
use crate::error::{Error, Result};
use crate::kwok;
use crate::wait::eventually;

/// A Job in the namespace `default` of one pod that requests nothing, runs for a second and is not tried again.
pub fn job(name: &str) -> JobBuilder {
    JobBuilder {
        name: name.to_owned(),
        namespace: "default".to_owned(),
        requests: BTreeMap::new(),
        annotations: BTreeMap::new(),
        labels: BTreeMap::new(),
        spec: JobSpec {
            parallelism: Some(1),
            completions: Some(1),
            backoff_limit: Some(0),
            ..JobSpec::default()
        },
        pod: PodSpec {
            restart_policy: Some("Never".to_owned()),
            ..PodSpec::default()
        },
    }
}

/// A Job to be.
#[derive(Clone, Debug)]
pub struct JobBuilder {
    name: String,
    namespace: String,
    requests: BTreeMap<String, Quantity>,
    annotations: BTreeMap<String, String>,
    labels: BTreeMap<String, String>,
    spec: JobSpec,
    pod: PodSpec,
}

impl JobBuilder {
    /// Its namespace.
    #[must_use]
    pub fn namespace(self, namespace: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            ..self
        }
    }

    /// How many pods, all at once.
    #[must_use]
    pub fn pods(mut self, count: i32) -> Self {
        self.spec.parallelism = Some(count);
        self.spec.completions = Some(count);
        self
    }

    /// How many GPUs each pod requests (`nvidia.com/gpu`).
    #[must_use]
    pub fn gpus(self, count: u32) -> Self {
        self.request("nvidia.com/gpu", &count.to_string())
    }

    /// How much of any resource each pod requests, as limit too.
    #[must_use]
    pub fn request(mut self, resource: &str, amount: &str) -> Self {
        self.requests.insert(resource.to_owned(), Quantity(amount.to_owned()));
        self
    }

    /// How many seconds each pod runs, see [`kwok::RUN_SECONDS`].
    #[must_use]
    pub fn run_seconds(self, seconds: u32) -> Self {
        self.pod_annotation(kwok::RUN_SECONDS, &seconds.to_string())
    }

    /// Its pods do not end by themselves.
    #[must_use]
    pub fn forever(self) -> Self {
        self.pod_annotation(kwok::RUN_SECONDS, kwok::FOREVER)
    }

    /// Exit code of its pods.
    #[must_use]
    pub fn exit_code(self, code: u8) -> Self {
        self.pod_annotation(kwok::EXIT_CODE, &code.to_string())
    }

    /// Its pods are bound and never start.
    #[must_use]
    pub fn never_start(self) -> Self {
        self.pod_annotation(kwok::NEVER_START, "true")
    }

    /// Its pods linger so long when they are deleted.
    #[must_use]
    pub fn ignore_sigterm_seconds(self, seconds: u32) -> Self {
        self.pod_annotation(kwok::IGNORE_SIGTERM_SECONDS, &seconds.to_string())
    }

    /// Created asleep.
    #[must_use]
    pub fn suspended(mut self) -> Self {
        self.spec.suspend = Some(true);
        self
    }

    /// A label of the Job.
    #[must_use]
    pub fn label(mut self, key: &str, value: &str) -> Self {
        self.labels.insert(key.to_owned(), value.to_owned());
        self
    }

    /// An annotation of its pods.
    #[must_use]
    pub fn pod_annotation(mut self, key: &str, value: &str) -> Self {
        self.annotations.insert(key.to_owned(), value.to_owned());
        self
    }

    /// Anything else of the Job's spec but its pod template.
    #[must_use]
    pub fn spec(mut self, change: impl FnOnce(&mut JobSpec)) -> Self {
        change(&mut self.spec);
        self
    }

    /// Anything else of its pods' spec.
    #[must_use]
    pub fn pod_spec(mut self, change: impl FnOnce(&mut PodSpec)) -> Self {
        change(&mut self.pod);
        self
    }

    /// The object; `serde_json::to_value` makes a template of it.
    pub fn build(self) -> Job {
        let Self {
            name,
            namespace,
            requests,
            annotations,
            labels,
            mut spec,
            mut pod,
        } = self;
        pod.containers.insert(0, container(requests));
        spec.template = PodTemplateSpec {
            spec: Some(pod),
            ..PodTemplateSpec::default()
        };
        spec.template.metadata.get_or_insert_default().annotations = Some(annotations);
        let mut job = Job {
            spec: Some(spec),
            ..Job::default()
        };
        job.metadata.name = Some(name);
        job.metadata.namespace = Some(namespace);
        job.metadata.labels = Some(labels);
        job
    }

    /// Creates it; does not wait for anything.
    pub async fn create(self, client: &Client) -> Result<Job> {
        let job = self.build();
        let namespace = job.metadata.namespace.clone().unwrap_or_default();
        let created = Api::<Job>::namespaced(client.clone(), &namespace)
            .create(&PostParams::default(), &job)
            .await;
        created.map_err(Error::api(format!(
            "create the Job {namespace}/{}",
            job.metadata.name.unwrap_or_default()
        )))
    }
}

/// Waits until a condition of a Job (`Complete`, `Failed`, `Suspended`, ...) is true and returns the Job.
pub async fn wait_for_job(
    client: &Client,
    namespace: &str,
    name: &str,
    condition: &str,
    timeout: Duration,
) -> Result<Job> {
    let jobs = &Api::<Job>::namespaced(client.clone(), namespace);
    eventually(
        timeout,
        &format!("the Job {namespace}/{name} to be {condition}"),
        || async move {
            let job = jobs.get(name).await?;
            let conditions = job
                .status
                .as_ref()
                .and_then(|status| status.conditions.as_deref())
                .unwrap_or_default();
            if conditions
                .iter()
                .any(|seen| seen.type_ == condition && seen.status == "True")
            {
                Ok(job)
            } else {
                Err(format!("its status is {:?}", job.status).into())
            }
        },
    )
    .await
}
