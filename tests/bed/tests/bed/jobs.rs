//! Nodes and pods that KWOK plays, under the real scheduler and the real Job controller.

use std::time::{Duration, Instant};

use bed::{JobBuilder, create_nodes, eventually, gpu_node, job, kwok, node, pod, steadily, wait_for_job};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{DeleteParams, ListParams, ObjectList, Patch, PatchParams};
use kube::{Api, Client};
use serde_json::json;

use crate::world::{SOON, control_plane};

/// A client of the worker and a Job that fits only a node of its own.
async fn world(name: &str) -> (Client, JobBuilder) {
    let client = control_plane("eu").await.client().await.unwrap();
    gpu_node(name).create(&client).await.unwrap();
    let host = name.to_owned();
    let job = job(name).pod_spec(|spec| {
        spec.node_selector = Some([("kubernetes.io/hostname".to_owned(), host)].into());
    });
    (client, job)
}

async fn pods_of(client: &Client, job: &str) -> ObjectList<Pod> {
    let selector = ListParams::default().labels(&format!("batch.kubernetes.io/job-name={job}"));
    Api::<Pod>::default_namespaced(client.clone())
        .list(&selector)
        .await
        .unwrap()
}

/// Phase of the only pod of a Job, once it has one in that phase.
async fn pod_in_phase(client: &Client, job: &str, phase: &str) -> Pod {
    eventually(SOON, &format!("a pod of {job} to be {phase}"), || async move {
        let pods = pods_of(client, job).await.items;
        let seen: Vec<_> = pods
            .iter()
            .map(|pod| pod.status.clone().unwrap_or_default().phase)
            .collect();
        pods.into_iter()
            .find(|pod| {
                pod.status
                    .as_ref()
                    .is_some_and(|status| status.phase.as_deref() == Some(phase))
            })
            .ok_or_else(|| format!("phases are {seen:?}").into())
    })
    .await
    .unwrap()
}

#[tokio::test]
async fn a_job_on_a_gpu_node_runs_to_complete() {
    let (client, job) = world("complete").await;
    job.gpus(8).create(&client).await.unwrap();
    let done = wait_for_job(&client, "default", "complete", "Complete", SOON)
        .await
        .unwrap();
    assert_eq!(done.status.unwrap().succeeded, Some(1));
    let pods = pods_of(&client, "complete").await;
    assert_eq!(
        pods.items[0].spec.as_ref().unwrap().node_name.as_deref(),
        Some("complete")
    );
}

#[tokio::test]
async fn a_job_waits_while_the_gpus_are_taken() {
    let (client, job) = world("full").await;
    pod("squatter").on("full").gpus(1).create(&client).await.unwrap();
    job.gpus(8).run_seconds(0).create(&client).await.unwrap();
    eventually(SOON, "the scheduler to say why", || async {
        let pods = pods_of(&client, "full").await.items;
        let conditions = pods
            .first()
            .and_then(|pod| pod.status.clone()?.conditions)
            .unwrap_or_default();
        let said = conditions
            .iter()
            .any(|condition| condition.reason.as_deref() == Some("Unschedulable"));
        if said {
            Ok(())
        } else {
            Err(format!("{conditions:?}").into())
        }
    })
    .await
    .unwrap();
    Api::<Pod>::default_namespaced(client.clone())
        .delete("squatter", &DeleteParams::default())
        .await
        .unwrap();
    wait_for_job(&client, "default", "full", "Complete", SOON)
        .await
        .unwrap();
}

#[tokio::test]
async fn an_exit_code_fails_the_job() {
    let (client, job) = world("exit").await;
    job.exit_code(3).run_seconds(0).create(&client).await.unwrap();
    let failed = wait_for_job(&client, "default", "exit", "Failed", SOON).await.unwrap();
    let conditions = failed.status.unwrap().conditions.unwrap();
    let condition = conditions.iter().find(|condition| condition.type_ == "Failed").unwrap();
    assert_eq!(condition.reason.as_deref(), Some("BackoffLimitExceeded"));
    let pod = pod_in_phase(&client, "exit", "Failed").await;
    let containers = pod.status.unwrap().container_statuses.unwrap();
    assert_eq!(
        containers[0]
            .state
            .as_ref()
            .unwrap()
            .terminated
            .as_ref()
            .unwrap()
            .exit_code,
        3
    );
}

#[tokio::test]
async fn a_failing_container_restarts_where_the_policy_says_so() {
    let (client, job) = world("restart").await;
    let job = job
        .exit_code(1)
        .run_seconds(0)
        .pod_spec(|spec| spec.restart_policy = Some("OnFailure".to_owned()));
    job.spec(|spec| spec.backoff_limit = Some(1))
        .create(&client)
        .await
        .unwrap();
    eventually(SOON, "a restart", || async {
        let pods = pods_of(&client, "restart").await.items;
        let containers = pods
            .first()
            .and_then(|pod| pod.status.clone()?.container_statuses)
            .unwrap_or_default();
        if containers.iter().any(|container| container.restart_count > 0) {
            Ok(())
        } else {
            Err(format!("{containers:?}").into())
        }
    })
    .await
    .unwrap();
    wait_for_job(&client, "default", "restart", "Failed", SOON)
        .await
        .unwrap();
}

#[tokio::test]
async fn a_pod_that_never_starts_stays_pending() {
    let (client, job) = world("never").await;
    job.never_start().create(&client).await.unwrap();
    eventually(SOON, "the kubelet to see the pod", || async {
        let pods = pods_of(&client, "never").await.items;
        let waiting = pods.first().and_then(|pod| {
            pod.status
                .clone()?
                .container_statuses?
                .first()?
                .state
                .clone()?
                .waiting?
                .reason
        });
        if waiting.as_deref() == Some("ContainerCreating") {
            Ok(())
        } else {
            Err(format!("{waiting:?}").into())
        }
    })
    .await
    .unwrap();
    steadily(Duration::from_secs(3), "Pending", || async {
        let phase = pods_of(&client, "never").await.items[0].status.clone().unwrap().phase;
        if phase.as_deref() == Some("Pending") {
            Ok(())
        } else {
            Err(format!("{phase:?}").into())
        }
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn many_pods_of_no_seconds_end_at_once() {
    let (client, job) = world("many").await;
    let start = Instant::now();
    job.pods(100).run_seconds(0).create(&client).await.unwrap();
    let done = wait_for_job(&client, "default", "many", "Complete", SOON)
        .await
        .unwrap();
    println!("100 pods took {:?}", start.elapsed());
    assert_eq!(done.status.unwrap().succeeded, Some(100));
}

#[tokio::test]
async fn a_suspended_job_ends_its_pods_and_runs_again_once_resumed() {
    let (client, job) = world("suspend").await;
    job.forever().create(&client).await.unwrap();
    pod_in_phase(&client, "suspend", "Running").await;
    let jobs = Api::<Job>::default_namespaced(client.clone());
    let suspend = |suspend: bool| Patch::Merge(json!({"spec": {"suspend": suspend}}));
    jobs.patch("suspend", &PatchParams::default(), &suspend(true))
        .await
        .unwrap();
    wait_for_job(&client, "default", "suspend", "Suspended", SOON)
        .await
        .unwrap();
    eventually(SOON, "no pod", || async {
        let pods = pods_of(&client, "suspend").await.items.len();
        if pods == 0 {
            Ok(())
        } else {
            Err(format!("{pods} pods").into())
        }
    })
    .await
    .unwrap();
    jobs.patch("suspend", &PatchParams::default(), &suspend(false))
        .await
        .unwrap();
    pod_in_phase(&client, "suspend", "Running").await;
    let status = jobs.get("suspend").await.unwrap().status.unwrap();
    assert_eq!(status.failed, None, "pods of a suspended Job are no failures");
}

#[tokio::test]
async fn a_pod_that_ignores_sigterm_lingers() {
    let (client, _) = world("linger").await;
    let pods = Api::<Pod>::default_namespaced(client.clone());
    pod("linger")
        .on("linger")
        .annotation(kwok::IGNORE_SIGTERM_SECONDS, "3")
        .create(&client)
        .await
        .unwrap();
    eventually(SOON, "the pod to run", || async {
        let phase = pods.get("linger").await?.status.and_then(|status| status.phase);
        if phase.as_deref() == Some("Running") {
            Ok(())
        } else {
            Err(format!("{phase:?}").into())
        }
    })
    .await
    .unwrap();
    let start = Instant::now();
    pods.delete("linger", &DeleteParams::default()).await.unwrap();
    steadily(Duration::from_secs(2), "the pod", || async {
        let pod = pods.get("linger").await?;
        let phase = pod.status.and_then(|status| status.phase);
        if phase.as_deref() == Some("Running") {
            Ok(())
        } else {
            Err(format!("{phase:?}").into())
        }
    })
    .await
    .unwrap();
    eventually(SOON, "the pod to go", || async {
        match pods.get_opt("linger").await? {
            None => Ok(()),
            Some(pod) => Err(format!("{:?}", pod.metadata).into()),
        }
    })
    .await
    .unwrap();
    assert!(
        start.elapsed() >= Duration::from_secs(3),
        "went after {:?}",
        start.elapsed()
    );
}

#[tokio::test]
async fn a_deleted_pod_goes_and_a_finalizer_holds_only_the_object() {
    let (client, _) = world("finalizer").await;
    let pods = Api::<Pod>::default_namespaced(client.clone());
    let mut held = pod("finalizer").on("finalizer").build();
    held.metadata.finalizers = Some(vec!["bed.test/hold".to_owned()]);
    pods.create(&kube::api::PostParams::default(), &held).await.unwrap();
    pods.delete("finalizer", &DeleteParams::default()).await.unwrap();
    eventually(SOON, "the pod to end", || async {
        let pod = pods.get("finalizer").await?;
        let phase = pod.status.and_then(|status| status.phase);
        let grace = pod.metadata.deletion_grace_period_seconds;
        if (phase.as_deref(), grace) == (Some("Failed"), Some(0)) {
            Ok(())
        } else {
            Err(format!("{phase:?} {grace:?}").into())
        }
    })
    .await
    .unwrap();
    let release = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    pods.patch("finalizer", &PatchParams::default(), &release)
        .await
        .unwrap();
    assert!(pods.get_opt("finalizer").await.unwrap().is_none());
}

#[tokio::test]
async fn nodes_are_as_they_were_built() {
    let client = control_plane("eu").await.client().await.unwrap();
    let made = [
        node("plain"),
        gpu_node("special")
            .gpus(4)
            .model("NVIDIA-L40S")
            .cpu("64")
            .pods(8)
            .label("tier", "spot")
            .taint("spot", "", "NoSchedule"),
        gpu_node("cordoned").cordoned(),
    ];
    create_nodes(&client, made).await.unwrap();
    let nodes = Api::<Node>::all(client);
    let allocatable = |node: &Node| node.status.as_ref().unwrap().allocatable.clone().unwrap();
    assert!(!allocatable(&nodes.get("plain").await.unwrap()).contains_key("nvidia.com/gpu"));
    let special = nodes.get("special").await.unwrap();
    let amounts = allocatable(&special);
    assert_eq!(
        ["nvidia.com/gpu", "cpu", "pods"].map(|name| amounts[name].0.as_str()),
        ["4", "64", "8"]
    );
    let labels = special.metadata.labels.unwrap();
    assert_eq!(
        (labels["nvidia.com/gpu.product"].as_str(), labels["tier"].as_str()),
        ("NVIDIA-L40S", "spot")
    );
    assert!(
        special
            .spec
            .unwrap()
            .taints
            .unwrap()
            .iter()
            .any(|taint| taint.key == "spot")
    );
    assert_eq!(
        nodes.get("cordoned").await.unwrap().spec.unwrap().unschedulable,
        Some(true)
    );
}
