//! A deleted job leaves nothing, whatever it was doing.

use kube::ResourceExt as _;
use multikueue::api::job::Phase;

use crate::fixture::{SOON, World, status};

#[tokio::test]
async fn a_job_deleted_in_the_queue_goes_at_once() {
    let world = World::shared("delete-queued").await;
    world.add_nodes(&world.eu, [world.node("a", 1)]).await;
    world.submit_job(world.job("train").gpus(2)).await;
    world
        .status_is("train", "says why it waits", |status| status.waiting.is_some())
        .await;
    world.delete("train").await;
    world.gone("train").await;
    assert!(world.eu.creations().is_empty() && world.us.creations().is_empty());
}

#[tokio::test]
async fn a_job_deleted_while_its_pods_do_not_start_leaves_nothing() {
    let world = World::shared("delete-assigned").await;
    world.add_nodes(&world.us, [world.node("a", 8)]).await;
    world.submit_job(world.job("train").pods(2).gpus(4).never_start()).await;
    world
        .until("two pods", || async {
            match world.us.pods_of("train").await.len() {
                2 => Ok(()),
                other => Err(format!("{other} pods").into()),
            }
        })
        .await;
    assert_eq!(status(&world.get("train").await).phase, Phase::Assigned);
    world.delete("train").await;
    world.gone("train").await;
    assert_eq!(world.us.rest().await, None, "the job went before its pods");
    world.until_free(&world.us, 8).await;
}

#[tokio::test]
async fn a_job_deleted_while_it_runs_goes_after_its_pods_which_may_take_their_time() {
    let world = World::shared("delete-running").await;
    world.add_nodes(&world.eu, [world.node("a", 8)]).await;
    let job = world.job("train").pods(2).gpus(4).forever().ignore_sigterm_seconds(3);
    world.submit_job(job).await;
    world.phase("train", Phase::Running).await;
    world.delete("train").await;
    let left = world
        .until("the job to go", || async {
            let pods = world.eu.live_pods().await.len();
            match world.jobs().get_opt("train").await? {
                None => Ok(pods),
                Some(_) => Err(format!("it is there, with {pods} live pods").into()),
            }
        })
        .await;
    assert_eq!(left, 0, "the job went before its pods");
    world.nothing_left().await;
    world.until_free(&world.eu, 8).await;
}

#[tokio::test]
async fn a_finished_job_that_is_deleted_leaves_nothing() {
    let world = World::shared("delete-finished").await;
    world.add_nodes(&world.eu, [world.node("a", 1)]).await;
    world.submit_job(world.job("good").gpus(1)).await;
    world.submit_job(world.job("bad").gpus(1).exit_code(1)).await;
    world.phase("good", Phase::Succeeded).await;
    world.phase("bad", Phase::Failed).await;
    for name in ["good", "bad"] {
        assert!(world.eu.find(name).await.is_some(), "kept for its logs");
        world.delete(name).await;
        world.gone(name).await;
    }
    world.nothing_left().await;
}

#[tokio::test]
async fn a_suspended_job_that_is_deleted_goes_at_once() {
    let world = World::shared("delete-asleep").await;
    let job = crate::fixture::Submission::of(world.job("train").gpus(1)).spec("suspend", true);
    world.submit(job).await;
    world.phase("train", Phase::Suspended).await;
    world.delete("train").await;
    world.gone("train").await;
    assert!(world.eu.creations().is_empty() && world.us.creations().is_empty());
}

/// The second is the same to a reader of names only.
#[tokio::test]
async fn a_job_that_takes_the_name_of_a_deleted_one_starts_after_that_has_ended() {
    let world = World::shared("same-name").await;
    world.add_nodes(&world.eu, [world.node("a", 8)]).await;
    world.add_nodes(&world.us, [world.node("b", 8)]).await;
    let job = || world.job("train").gpus(1).forever().ignore_sigterm_seconds(3);
    let first = world.submit_job(job()).await;
    world.phase("train", Phase::Running).await;
    world.delete("train").await;
    world
        .within(SOON, "the second to be created", || async {
            match world.jobs().get_opt("train").await? {
                None => Ok(()),
                Some(job) => Err(format!("the first is there: {:?}", job.metadata.finalizers).into()),
            }
        })
        .await;
    let live = world.eu.live_pods().await.len() + world.us.live_pods().await.len();
    assert_eq!(live, 0, "the first went before its pods");
    let second = world.submit_job(job()).await;
    assert_ne!(first.uid(), second.uid());
    let running = world.phase("train", Phase::Running).await;
    let pods = world.site_of(&running).pods_of("train").await;
    let owners: Vec<_> = pods
        .iter()
        .map(|pod| pod.labels()[multikueue::api::names::JOB_UID].clone())
        .collect();
    assert_eq!(owners, [second.uid().unwrap()]);
}
