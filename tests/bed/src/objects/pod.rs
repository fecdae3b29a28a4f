//! Pods that are simply there, as other people's are.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, Pod, PodSpec, ResourceRequirements};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::api::PostParams;
use kube::{Api, Client};

use crate::error::{Error, Result};
use crate::kwok;

/// A pod in the namespace `default` that runs for ever and requests nothing.
pub fn pod(name: &str) -> PodBuilder {
    PodBuilder {
        name: name.to_owned(),
        namespace: "default".to_owned(),
        node: None,
        labels: BTreeMap::new(),
        annotations: BTreeMap::new(),
        requests: BTreeMap::new(),
        spec: PodSpec {
            restart_policy: Some("Never".to_owned()),
            ..PodSpec::default()
        },
    }
    .annotation(kwok::RUN_SECONDS, kwok::FOREVER)
}

/// A pod to be.
#[derive(Clone, Debug)]
pub struct PodBuilder {
    name: String,
    namespace: String,
    node: Option<String>,
    labels: BTreeMap<String, String>,
    annotations: BTreeMap<String, String>,
    requests: BTreeMap<String, Quantity>,
    spec: PodSpec,
}

impl PodBuilder {
    /// Its namespace.
    #[must_use]
    pub fn namespace(self, namespace: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            ..self
        }
    }

    /// Bound to a node from the start, past any scheduler; without it the scheduler places it.
    #[must_use]
    pub fn on(self, node: &str) -> Self {
        Self {
            node: Some(node.to_owned()),
            ..self
        }
    }

    /// How many GPUs (`nvidia.com/gpu`).
    #[must_use]
    pub fn gpus(self, count: u32) -> Self {
        self.request("nvidia.com/gpu", &count.to_string())
    }

    /// How much of any resource, request and limit alike.
    #[must_use]
    pub fn request(mut self, resource: &str, amount: &str) -> Self {
        self.requests.insert(resource.to_owned(), Quantity(amount.to_owned()));
        self
    }

    /// A label.
    #[must_use]
    pub fn label(mut self, key: &str, value: &str) -> Self {
        self.labels.insert(key.to_owned(), value.to_owned());
        self
    }

    /// An annotation, such as those that tell KWOK how the pod lives.
    #[must_use]
    pub fn annotation(mut self, key: &str, value: &str) -> Self {
        self.annotations.insert(key.to_owned(), value.to_owned());
        self
    }

    /// Anything else of its spec.
    #[must_use]
    pub fn spec(mut self, change: impl FnOnce(&mut PodSpec)) -> Self {
        change(&mut self.spec);
        self
    }

    /// The object.
    pub fn build(self) -> Pod {
        let Self {
            name,
            namespace,
            node,
            labels,
            annotations,
            requests,
            mut spec,
        } = self;
        spec.containers.insert(0, container(requests));
        spec.node_name = node.or(spec.node_name);
        let mut pod = Pod {
            spec: Some(spec),
            ..Pod::default()
        };
        pod.metadata.name = Some(name);
        pod.metadata.namespace = Some(namespace);
        pod.metadata.labels = Some(labels);
        pod.metadata.annotations = Some(annotations);
        pod
    }

    /// Creates it; does not wait for anything.
    pub async fn create(self, client: &Client) -> Result<Pod> {
        let pod = self.build();
        let namespace = pod.metadata.namespace.clone().unwrap_or_default();
        let created = Api::<Pod>::namespaced(client.clone(), &namespace)
            .create(&PostParams::default(), &pod)
            .await;
        created.map_err(Error::api(format!(
            "create the pod {namespace}/{}",
            pod.metadata.name.unwrap_or_default()
        )))
    }
}

/// The container of pods here; nobody ever runs its image.
pub(super) fn container(requests: BTreeMap<String, Quantity>) -> Container {
    Container {
        name: "main".to_owned(),
        image: Some("registry.invalid/main:1".to_owned()),
        resources: Some(ResourceRequirements {
            requests: Some(requests.clone()),
            limits: Some(requests),
            ..ResourceRequirements::default()
        }),
        ..Container::default()
    }
}
