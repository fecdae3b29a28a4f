//! Jobs that do not end well.

use kube::api::DeleteParams;
use multikueue::api::MultiKueueJob;
use multikueue::api::job::{AttemptOutcome, Phase};
use serde_json::json;

use crate::fixture::{Submission, World, status};

/// Reason and message of the condition `Stalled`, which a failed job has.
fn stalled(job: &MultiKueueJob) -> (String, String) {
    let now = status(job);
    let found = now.conditions.iter().find(|condition| condition.type_ == "Stalled");
    let found = found.unwrap_or_else(|| panic!("{:?}", now.conditions));
    assert_eq!(found.status, "True");
    (found.reason.clone(), found.message.clone())
}

#[tokio::test]
async fn a_failing_job_brings_the_reason_of_its_worker() {
    let world = World::shared("failing").await;
    world.add_nodes(&world.eu, [world.node("a", 1)]).await;
    world.submit_job(world.job("train").gpus(1).exit_code(3)).await;
    let job = world.phase("train", Phase::Failed).await;
    let theirs = world.eu.mirror("train").await.status.unwrap().conditions.unwrap();
    let theirs = theirs.iter().find(|condition| condition.type_ == "Failed").unwrap();
    let (reason, message) = stalled(&job);
    assert_eq!(reason, "BackoffLimitExceeded");
    assert_eq!(Some(message), theirs.message);
    let now = status(&job);
    assert_eq!(now.attempts[0].outcome, AttemptOutcome::Failed);
    assert_eq!(now.failed_attempts, 0, "it started: that is no failed attempt of ours");
    assert_eq!(now.mirror_status.unwrap().to_value()["failed"], 1);
    assert!(now.completion_time.is_some() && now.start_time.is_some());
}

#[tokio::test]
async fn a_job_past_its_deadline_fails_with_that_reason() {
    let world = World::shared("deadline").await;
    world.add_nodes(&world.us, [world.node("a", 1)]).await;
    let job = world.job("train").gpus(1).forever();
    world
        .submit_job(job.spec(|spec| spec.active_deadline_seconds = Some(2)))
        .await;
    let job = world.phase("train", Phase::Failed).await;
    assert_eq!(stalled(&job).0, "DeadlineExceeded");
}

#[tokio::test]
async fn a_job_that_does_not_start_is_tried_elsewhere_and_fails_after_its_attempts() {
    let world = World::shared("no-start").await;
    world.add_nodes(&world.eu, [world.node("a", 4)]).await;
    world.add_nodes(&world.us, [world.node("b", 8)]).await;
    let job = Submission::of(world.job("train").gpus(4).never_start())
        .policy("startTimeoutSeconds", 2)
        .policy("maxAttempts", 2);
    world.submit(job).await;
    let job = world.phase("train", Phase::Failed).await;
    let (reason, message) = stalled(&job);
    assert_eq!(reason, "MaxAttemptsExceeded", "{message}");
    let now = status(&job);
    let attempts: Vec<_> = now
        .attempts
        .iter()
        .map(|attempt| (&*attempt.cluster, attempt.number, attempt.outcome, &*attempt.reason))
        .collect();
    assert_eq!(
        attempts,
        [
            ("eu", 1, AttemptOutcome::Revoked, "StartTimeout"),
            ("us", 2, AttemptOutcome::Revoked, "StartTimeout"),
        ]
    );
    assert_eq!(now.failed_attempts, 2);
    world.nothing_left().await;
}

#[tokio::test]
async fn a_mirror_that_somebody_deletes_fails_its_job_which_is_not_run_again_by_itself() {
    let world = World::shared("mirror-deleted").await;
    world.add_nodes(&world.eu, [world.node("a", 1)]).await;
    world.submit_job(world.job("train").gpus(1).forever()).await;
    world.phase("train", Phase::Running).await;
    let deleted = world.eu.jobs().delete("train", &DeleteParams::background()).await;
    deleted.unwrap();
    let job = world.phase("train", Phase::Failed).await;
    assert_eq!(stalled(&job).0, "MirrorDeleted");
    world.until_free(&world.eu, 1).await;
    world
        .stays("Failed, without a mirror", || async {
            let phase = status(&world.get("train").await).phase;
            match (phase, world.eu.find("train").await) {
                (Phase::Failed, None) => Ok(()),
                other => Err(format!("{other:?}").into()),
            }
        })
        .await;
    world.change("train", json!({"run": 2})).await;
    let again = world.phase("train", Phase::Running).await;
    assert_eq!((status(&again).run, status(&again).last_attempt), (2, 2));
}
