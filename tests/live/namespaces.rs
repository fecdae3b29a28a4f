//! The namespace of a job on a worker.

use bed::create_namespace;
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use multikueue::api::job::Phase;
use multikueue::api::names;

use crate::fixture::{Submission, World, status};

#[tokio::test]
async fn a_namespace_that_a_worker_lacks_is_a_reason_and_no_failed_attempt() {
    let world = World::without_namespace("no-namespace").await;
    world.add_nodes(&world.eu, [world.node("a", 1)]).await;
    world
        .submit(Submission::of(world.job("train").gpus(1)).only_on("eu"))
        .await;
    let job = world
        .status_is("train", "its namespace is missing", |status| {
            let waiting = status.waiting.as_ref();
            waiting.is_some_and(|waiting| waiting.reasons.contains_key("NamespaceMissing"))
        })
        .await;
    let now = status(&job);
    let waiting = now.waiting.unwrap();
    let eu = waiting.nearest.iter().find(|nearest| nearest.cluster == "eu").unwrap();
    assert!(eu.message.contains("no-namespace"), "{}", eu.message);
    assert_eq!((now.phase, now.failed_attempts), (Phase::Queued, 0));

    create_namespace(&world.eu.client, &world.name, true).await.unwrap();
    let done = world.phase("train", Phase::Succeeded).await;
    assert_eq!(status(&done).failed_attempts, 0);
}

#[tokio::test]
async fn a_missing_namespace_is_created_where_the_worker_allows_it_and_stays() {
    let world = World::without_namespace("new-namespace").await;
    world.add_nodes(&world.us, [world.node("a", 1)]).await;
    world
        .submit(Submission::of(world.job("train").gpus(1)).only_on("us"))
        .await;
    world.phase("train", Phase::Succeeded).await;
    let namespaces = Api::<Namespace>::all(world.us.client.clone());
    let namespace = namespaces.get(&world.name).await.unwrap();
    let labels = namespace.metadata.labels.unwrap_or_default();
    assert!(labels.contains_key(names::CREATED_BY), "{labels:?}");
    world.delete("train").await;
    world.gone("train").await;
    world.nothing_left().await;
    let namespace = namespaces.get(&world.name).await.unwrap();
    assert_eq!(namespace.metadata.deletion_timestamp, None);
}
