//! A result is for ever, until its user asks for another run.

use kube::api::DeleteParams;
use multikueue::api::job::Phase;
use serde_json::json;

use crate::fixture::{Submission, World, assignment, status};

#[tokio::test]
async fn a_finished_job_is_not_run_again_when_its_mirror_is_deleted_by_hand() {
    let world = World::shared("finished").await;
    world.add_nodes(&world.eu, [world.node("a", 1)]).await;
    world.submit_job(world.job("train").gpus(1)).await;
    let before = world.phase("train", Phase::Succeeded).await;
    let deleted = world.eu.jobs().delete("train", &DeleteParams::background()).await;
    deleted.unwrap();
    world.nothing_left().await;
    world
        .stays("Succeeded, without a mirror", || async {
            let phase = status(&world.get("train").await).phase;
            match (phase, world.eu.find("train").await) {
                (Phase::Succeeded, None) => Ok(()),
                other => Err(format!("{other:?}").into()),
            }
        })
        .await;
    let after = status(&world.get("train").await);
    assert_eq!(after.completion_time, status(&before).completion_time);
    assert_eq!(world.eu.creations()["train"], 1);
}

#[tokio::test]
async fn a_raised_run_runs_a_finished_job_again_with_the_template_of_then() {
    let world = World::shared("again").await;
    world.add_nodes(&world.us, [world.node("a", 2)]).await;
    let job = Submission::of(world.job("train").gpus(1).exit_code(1));
    world.submit(job).await;
    let first = world.phase("train", Phase::Failed).await;
    let corrected = Submission::of(world.job("train").gpus(2));
    world.replace_template(&corrected, 2).await;
    let second = world.phase("train", Phase::Succeeded).await;
    let now = status(&second);
    assert_eq!((now.run, now.last_attempt), (2, 2));
    assert_eq!(now.attempts.len(), 2);
    assert_ne!(assignment(&first).mirror_uid, assignment(&second).mirror_uid);
    assert!(
        now.conditions.iter().all(|condition| condition.type_ != "Stalled"),
        "{:?}",
        now.conditions
    );
    let mirror = world.us.mirror("train").await;
    assert_eq!(mirror.metadata.uid, assignment(&second).mirror_uid);
    assert_eq!(world.us.creations()["train"], 2);
}

#[tokio::test]
async fn a_run_raised_early_waits_for_the_end_of_the_present_one() {
    let world = World::shared("early").await;
    world.add_nodes(&world.eu, [world.node("a", 1)]).await;
    world.submit_job(world.job("train").gpus(1).run_seconds(4)).await;
    world.phase("train", Phase::Running).await;
    world.change("train", json!({"run": 2})).await;
    let done = world
        .status_is("train", "both runs have ended well", |status| {
            status.run == 2 && status.phase == Phase::Succeeded
        })
        .await;
    let runs: Vec<_> = status(&done)
        .attempts
        .iter()
        .map(|attempt| (attempt.run, attempt.reason.clone()))
        .collect();
    assert_eq!(runs.len(), 2, "{runs:?}");
    assert_eq!((runs[0].0, runs[1].0), (1, 2));
}

#[tokio::test]
async fn a_finished_mirror_stays_as_long_as_its_job_says_and_no_ttl_takes_it() {
    let world = World::shared("retain").await;
    world.add_nodes(&world.eu, [world.node("a", 2)]).await;
    let job = |name: &str| {
        let template = world.job(name).gpus(1).run_seconds(0);
        template.spec(|spec| spec.ttl_seconds_after_finished = Some(0))
    };
    world.submit_job(job("kept")).await;
    let short = Submission::of(job("short")).policy("retainMirrorSeconds", 1);
    world.submit(short).await;
    world.phase("kept", Phase::Succeeded).await;
    world.phase("short", Phase::Succeeded).await;
    world
        .until("the short one to go", || async {
            match world.eu.find("short").await {
                None => Ok(()),
                Some(_) => Err("it is there".into()),
            }
        })
        .await;
    let kept = world.eu.mirror("kept").await;
    assert_eq!(kept.spec.unwrap().ttl_seconds_after_finished, None);
    assert_eq!(status(&world.get("short").await).phase, Phase::Succeeded);
}
