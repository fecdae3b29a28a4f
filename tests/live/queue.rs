//! Who goes first, and for how long one waits.

use k8s_openapi::api::scheduling::v1::PriorityClass;
use kube::Api;
use kube::api::PostParams;
use multikueue::api::job::Phase;
use serde_json::json;

use crate::fixture::{Submission, World, status};

/// A world with one device, which is taken until the pod `other` goes.
async fn one_taken_device(name: &str) -> World {
    let world = World::shared(name).await;
    world.add_nodes(&world.eu, [world.node("a", 1)]).await;
    world.squatter("other", "a", 1).create(&world.eu.client).await.unwrap();
    world.until_free(&world.eu, 0).await;
    world
}

async fn submit_and_wait(world: &World, submission: Submission) {
    let name = submission.name().to_owned();
    world.submit(submission).await;
    world
        .status_is(&name, "says why it waits", |status| status.waiting.is_some())
        .await;
}

#[tokio::test]
async fn the_higher_priority_goes_first_and_equals_go_by_age() {
    let world = one_taken_device("priority").await;
    let classes = Api::<PriorityClass>::all(world.client.clone());
    for (name, value) in [("live-low", -10), ("live-high", 1000)] {
        let class = json!({"metadata": {"name": name}, "value": value});
        let class: PriorityClass = serde_json::from_value(class).unwrap();
        classes.create(&PostParams::default(), &class).await.unwrap();
    }
    let job = |name: &str| Submission::of(world.job(name).gpus(1).forever());
    submit_and_wait(&world, job("low").spec("priorityClassName", "live-low")).await;
    submit_and_wait(&world, job("first")).await;
    // Ages are whole seconds, and the name decides between equals: these would go the other way round.
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    submit_and_wait(&world, job("earlier-by-name")).await;
    submit_and_wait(&world, job("high").spec("priorityClassName", "live-high")).await;

    world.eu.remove_pod("other").await;
    let mut waiting = vec!["high", "first", "earlier-by-name", "low"];
    while !waiting.is_empty() {
        let next = waiting.remove(0);
        world.phase(next, Phase::Running).await;
        for other in &waiting {
            let phase = status(&world.get(other).await).phase;
            assert_eq!(phase, Phase::Queued, "{other}, while {next} runs");
        }
        world.delete(next).await;
    }
}

#[tokio::test]
async fn a_job_that_waited_too_long_fails_and_was_never_sent() {
    let world = one_taken_device("too-long").await;
    world
        .submit(Submission::of(world.job("train").gpus(1)).policy("maxQueueSeconds", 2))
        .await;
    let job = world.phase("train", Phase::Failed).await;
    let now = status(&job);
    let stalled = now
        .conditions
        .iter()
        .find(|condition| condition.type_ == "Stalled")
        .unwrap();
    assert_eq!(
        (stalled.status.as_str(), stalled.reason.as_str()),
        ("True", "MaxQueueTimeExceeded")
    );
    assert!(now.completion_time.is_some());
    assert_eq!((now.assignment, now.last_attempt), (None, 0));
    assert!(world.eu.creations().is_empty());
    // And it stays so when there is room.
    world.eu.remove_pod("other").await;
    world.until_free(&world.eu, 1).await;
    world
        .stays("Failed", || async {
            let phase = status(&world.get("train").await).phase;
            if phase == Phase::Failed {
                Ok(())
            } else {
                Err(format!("{phase:?}").into())
            }
        })
        .await;
}

#[tokio::test]
async fn a_small_job_passes_a_large_one_that_does_not_fit() {
    let world = World::shared("backfill").await;
    world.add_nodes(&world.eu, [world.node("a", 2)]).await;
    world.add_nodes(&world.us, [world.node("b", 1)]).await;
    submit_and_wait(&world, Submission::of(world.job("large").gpus(4))).await;
    world.submit_job(world.job("small").gpus(1)).await;
    world.phase("small", Phase::Succeeded).await;
    assert_eq!(status(&world.get("large").await).phase, Phase::Queued);
}
