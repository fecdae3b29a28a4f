//! `spec.suspend`.

use kube::api::{Patch, PatchParams};
use multikueue::api::job::Phase;
use serde_json::json;

use crate::fixture::{Submission, World, status};

#[tokio::test]
async fn a_job_that_is_suspended_leaves_its_worker_and_runs_anew_once_it_is_resumed() {
    let world = World::shared("suspend").await;
    world.add_nodes(&world.eu, [world.node("a", 4)]).await;
    world.submit_job(world.job("train").gpus(4).forever()).await;
    world.phase("train", Phase::Running).await;
    let first = world.eu.mirror("train").await.metadata.uid;

    world.change("train", json!({"suspend": true})).await;
    let job = world.phase("train", Phase::Suspended).await;
    assert_eq!(status(&job).assignment, None);
    assert_eq!(world.eu.rest().await, None, "suspended, with something left");
    // The room is others' now.
    world.submit_job(world.job("other").gpus(4)).await;
    world.phase("other", Phase::Succeeded).await;

    world.change("train", json!({"suspend": false})).await;
    let job = world.phase("train", Phase::Running).await;
    let now = status(&job);
    assert_eq!((now.last_attempt, now.failed_attempts), (2, 0));
    assert_ne!(world.eu.mirror("train").await.metadata.uid, first);
    let [attempt] = &now.attempts[..] else {
        panic!("{:?}", now.attempts)
    };
    assert_eq!(attempt.reason, "Suspended");
}

#[tokio::test]
async fn a_job_that_is_created_suspended_goes_nowhere_until_it_is_resumed() {
    let world = World::shared("created-asleep").await;
    world.add_nodes(&world.us, [world.node("a", 1)]).await;
    let job = Submission::of(world.job("train").gpus(1)).spec("suspend", true);
    world.submit(job).await;
    world.phase("train", Phase::Suspended).await;
    world
        .stays("Suspended, without a mirror", || async {
            let phase = status(&world.get("train").await).phase;
            match (phase, world.us.find("train").await) {
                (Phase::Suspended, None) => Ok(()),
                other => Err(format!("{other:?}").into()),
            }
        })
        .await;
    world.change("train", json!({"suspend": false})).await;
    world.phase("train", Phase::Succeeded).await;
}

#[tokio::test]
async fn a_job_that_is_suspended_in_the_queue_leaves_it() {
    let world = World::shared("suspend-queued").await;
    world.add_nodes(&world.eu, [world.node("a", 1)]).await;
    world.submit_job(world.job("train").gpus(2)).await;
    world
        .status_is("train", "says why it waits", |status| status.waiting.is_some())
        .await;
    world.change("train", json!({"suspend": true})).await;
    let job = world.phase("train", Phase::Suspended).await;
    assert_eq!(status(&job).waiting, None);
    world.add_nodes(&world.eu, [world.node("b", 2)]).await;
    world.change("train", json!({"suspend": false})).await;
    world.phase("train", Phase::Succeeded).await;
}

/// Somebody on the worker has a reason; fighting over a field helps nobody.
#[tokio::test]
async fn a_mirror_that_another_suspends_is_shown_and_left_alone() {
    let world = World::shared("anothers-hand").await;
    world.add_nodes(&world.us, [world.node("a", 1)]).await;
    world.submit_job(world.job("train").gpus(1).forever()).await;
    world.phase("train", Phase::Running).await;
    let uid = world.us.mirror("train").await.metadata.uid;
    let set = async |suspend: bool| {
        let patch = Patch::Merge(json!({"spec": {"suspend": suspend}}));
        let jobs = world.us.jobs();
        jobs.patch("train", &PatchParams::default(), &patch).await.unwrap();
    };
    let ready_because = |reason: &'static str| {
        world.status_is("train", reason, move |status| {
            let mut conditions = status.conditions.iter();
            conditions.any(|condition| condition.type_ == "Ready" && condition.reason == reason)
        })
    };
    set(true).await;
    ready_because("SuspendedOnWorker").await;
    world
        .stays("suspended by another", || async {
            let mirror = world.us.mirror("train").await;
            if mirror.spec.as_ref().is_some_and(|spec| spec.suspend == Some(true)) {
                Ok(())
            } else {
                Err(format!("{:?}", mirror.spec).into())
            }
        })
        .await;
    set(false).await;
    ready_because("Running").await;
    let job = world.get("train").await;
    assert_eq!(status(&job).last_attempt, 1);
    assert_eq!(world.us.mirror("train").await.metadata.uid, uid);
}
