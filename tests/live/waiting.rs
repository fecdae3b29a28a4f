//! What a job that waits says.

use k8s_openapi::api::scheduling::v1::PriorityClass;
use kube::Api;
use kube::api::PostParams;
use multikueue::api::job::Phase;
use serde_json::json;

use crate::fixture::{Submission, World, status};

#[tokio::test]
async fn a_job_that_fits_nowhere_says_why_for_every_worker_with_numbers() {
    let world = World::shared("nowhere").await;
    world.add_nodes(&world.eu, [world.node("a", 8)]).await;
    world.squatter("other", "a", 5).create(&world.eu.client).await.unwrap();
    world
        .add_nodes(&world.us, [world.node("b", 2), world.node("c", 2)])
        .await;
    world.until_free(&world.eu, 3).await;
    world.submit_job(world.job("train").gpus(4)).await;
    let job = world
        .status_is("train", "says why it waits", |status| status.waiting.is_some())
        .await;
    let now = status(&job);
    let waiting = now.waiting.unwrap();
    assert_eq!(waiting.reasons, [("InsufficientDevices".to_owned(), 2)].into());
    let mut said: Vec<_> = waiting
        .nearest
        .iter()
        .map(|n| (&*n.cluster, &*n.reason, &*n.message))
        .collect();
    said.sort_unstable();
    assert_eq!(
        said,
        [
            (
                "eu",
                "InsufficientDevices",
                "3 nvidia.com/gpu free, at most 3 on one node; 4 needed"
            ),
            (
                "us",
                "InsufficientDevices",
                "4 nvidia.com/gpu free, at most 2 on one node; 4 needed"
            ),
        ]
    );
    assert_eq!(now.phase, Phase::Queued);
    let condition = |type_: &str| now.conditions.iter().find(|condition| condition.type_ == type_);
    let ready = condition("Ready").unwrap();
    assert_eq!(
        (ready.status.as_str(), ready.reason.as_str()),
        ("False", "InsufficientDevices")
    );
    assert!(ready.message.contains("free"), "{}", ready.message);
    assert_eq!(condition("Reconciling").unwrap().status, "True");
    assert_eq!(condition("Dispatched").unwrap().status, "False");

    let shown = world
        .manager
        .kubectl(&["get", "mkj", "-n", &world.name, "train", "--no-headers"])
        .await
        .unwrap();
    let words: Vec<_> = shown.stdout.split_whitespace().collect();
    assert_eq!(words[..2], ["train", "Queued"], "{shown:?}");
    assert!(words.contains(&"InsufficientDevices"), "{shown:?}");
}

#[tokio::test]
async fn a_job_that_waits_is_not_written_on_again_and_again() {
    let world = World::shared("quiet").await;
    world.add_nodes(&world.eu, [world.node("a", 2)]).await;
    world.submit_job(world.job("train").gpus(4)).await;
    let before = world
        .status_is("train", "says why it waits", |status| status.waiting.is_some())
        .await;
    world
        .stays("the job's version", || async {
            let now = world.get("train").await.metadata.resource_version;
            if now == before.metadata.resource_version {
                Ok(())
            } else {
                Err(format!("{:?} and then {now:?}", before.metadata.resource_version).into())
            }
        })
        .await;
}

#[tokio::test]
async fn a_job_of_an_unknown_priority_class_says_so_and_goes_once_the_class_is_there() {
    let world = World::shared("no-class").await;
    world.add_nodes(&world.eu, [world.node("a", 1)]).await;
    let job = Submission::of(world.job("train").gpus(1)).spec("priorityClassName", "live-later");
    world.submit(job).await;
    let job = world
        .status_is("train", "was seen", |status| status.observed_generation == 1)
        .await;
    let now = status(&job);
    let ready = now
        .conditions
        .iter()
        .find(|condition| condition.type_ == "Ready")
        .unwrap();
    assert_eq!(
        (ready.status.as_str(), ready.reason.as_str()),
        ("False", "PriorityClassNotFound"),
        "{}",
        ready.message
    );
    assert!(ready.message.contains("live-later"), "{}", ready.message);
    assert_eq!(now.phase, Phase::Queued);
    let class = json!({"metadata": {"name": "live-later"}, "value": 7});
    let class: PriorityClass = serde_json::from_value(class).unwrap();
    let classes = Api::<PriorityClass>::all(world.client.clone());
    classes.create(&PostParams::default(), &class).await.unwrap();
    world.phase("train", Phase::Succeeded).await;
}

#[tokio::test]
async fn a_template_that_no_api_server_would_take_says_so_and_may_be_corrected() {
    let world = World::shared("broken").await;
    world.add_nodes(&world.eu, [world.node("a", 1)]).await;
    let mut broken = Submission::of(world.job("train").gpus(1));
    let resources = "/spec/template/spec/template/spec/containers/0/resources";
    let correct = broken.0.pointer(resources).unwrap().clone();
    *broken.0.pointer_mut(resources).unwrap() = json!({"limits": {"nvidia.com/gpu": "one"}});
    world.submit(broken.clone()).await;
    let job = world
        .status_is("train", "is stalled", |status| {
            let mut conditions = status.conditions.iter();
            conditions.any(|condition| condition.type_ == "Stalled" && condition.status == "True")
        })
        .await;
    let now = status(&job);
    let stalled = now
        .conditions
        .iter()
        .find(|condition| condition.type_ == "Stalled")
        .unwrap();
    assert_eq!(stalled.reason, "InvalidTemplate");
    assert!(stalled.message.contains("nvidia.com/gpu"), "{}", stalled.message);
    *broken.0.pointer_mut(resources).unwrap() = correct;
    world.replace_template(&broken, 1).await;
    world.phase("train", Phase::Succeeded).await;
}

/// A wrong number would be worse than none.
#[tokio::test]
async fn a_rule_that_is_not_counted_yet_is_named_and_nothing_is_sent() {
    let world = World::shared("not-counted").await;
    world.add_nodes(&world.eu, [world.node("a", 1)]).await;
    let spread = json!([{
        "maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "train"}},
    }]);
    let job = world
        .job("train")
        .gpus(1)
        .pod_spec(|pod| pod.topology_spread_constraints = serde_json::from_value(spread).unwrap());
    world.submit_job(job).await;
    let job = world
        .status_is("train", "says why it waits", |status| status.waiting.is_some())
        .await;
    let waiting = status(&job).waiting.unwrap();
    assert_eq!(waiting.reasons, [("RuleNotCounted".to_owned(), 2)].into());
    assert!(
        waiting
            .nearest
            .iter()
            .all(|nearest| nearest.message.contains("topology spread")),
        "{waiting:?}"
    );
    assert!(world.eu.creations().is_empty() && world.us.creations().is_empty());
}
