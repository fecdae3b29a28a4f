//! Room is what is free on nodes, less what is promised.

use std::time::Instant;

use futures::future::join_all;
use kube::api::ListParams;
use multikueue::api::job::Phase;

use crate::fixture::{SOON, Site, World, status};

const JOBS: usize = 50;

/// Pods are listed at one moment: a pod that takes the place of another was created after that one ended, so at no moment may there be
/// more than fit. This holds without looking at the scheduler, whose view lags.
async fn never_more_than(site: &Site, room: usize) -> usize {
    let live = site.live_pods().await.len();
    assert!(
        live <= room,
        "{live} pods at once on {}, which has room for {room}",
        site.name
    );
    live
}

#[tokio::test]
async fn fifty_jobs_at_once_on_ten_free_gpus_are_never_promised_more_and_all_finish() {
    let world = World::shared("fifty").await;
    world.add_nodes(&world.eu, [world.node("a", 8)]).await;
    world
        .add_nodes(&world.us, [world.node("b", 2), world.node("c", 2)])
        .await;
    // Not one of the fifty: it was there before.
    let squatter = world.squatter("squatter", "a", 2).label("squatter", "true");
    squatter.create(&world.eu.client).await.unwrap();
    world.until_free(&world.eu, 6).await;

    let names: Vec<_> = (0..JOBS).map(|number| format!("job-{number}")).collect();
    // So long that ten run at once although a busy machine takes its time to start them.
    join_all(
        names
            .iter()
            .map(|name| world.submit_job(world.job(name).gpus(1).run_seconds(3))),
    )
    .await;
    let (start, mut most) = (Instant::now(), 0);
    loop {
        let eu = never_more_than(&world.eu, 6 + 1).await;
        let us = never_more_than(&world.us, 4).await;
        most = most.max(eu - 1 + us);
        let jobs = world.jobs().list(&ListParams::default()).await.unwrap().items;
        let phases: Vec<_> = jobs.iter().map(|job| status(job).phase).collect();
        let done = phases.iter().filter(|phase| **phase == Phase::Succeeded).count();
        assert!(!phases.contains(&Phase::Failed), "{phases:?}");
        if done == JOBS {
            break;
        }
        assert!(start.elapsed() < 2 * SOON, "{done} of {JOBS} are done, {phases:?}");
    }
    assert!(most >= 8, "at most {most} of 10 devices were used at once");
    let (eu, us) = (world.eu.creations(), world.us.creations());
    for name in &names {
        let times = eu.get(name).unwrap_or(&0) + us.get(name).unwrap_or(&0);
        assert_eq!(times, 1, "{name} was created {times} times");
    }
}

#[tokio::test]
async fn a_pod_that_ends_makes_room_for_a_job_that_waits() {
    let world = World::shared("makes-room").await;
    world.add_nodes(&world.us, [world.node("a", 8)]).await;
    world.squatter("other", "a", 1).create(&world.us.client).await.unwrap();
    world.until_free(&world.us, 7).await;
    world.submit_job(world.job("train").gpus(8)).await;
    let waiting = world
        .status_is("train", "says why it waits", |status| status.waiting.is_some())
        .await;
    let waiting = status(&waiting).waiting.unwrap();
    let us = waiting.nearest.iter().find(|nearest| nearest.cluster == "us");
    assert_eq!(
        us.unwrap().message,
        "7 nvidia.com/gpu free, at most 7 on one node; 8 needed"
    );
    world.us.remove_pod("other").await;
    world.phase("train", Phase::Succeeded).await;
    assert_eq!(status(&world.get("train").await).waiting, None);
}

/// A job that was promised room holds it although its pods never come to run.
#[tokio::test]
async fn room_that_is_promised_is_not_promised_again() {
    let world = World::shared("promised").await;
    world.add_nodes(&world.eu, [world.node("a", 4)]).await;
    world.submit_job(world.job("first").gpus(3).never_start()).await;
    world.phase("first", Phase::Assigned).await;
    world.submit_job(world.job("second").gpus(2)).await;
    let waiting = world
        .status_is("second", "says why it waits", |status| status.waiting.is_some())
        .await;
    let waiting = status(&waiting).waiting.unwrap();
    let eu = waiting.nearest.iter().find(|nearest| nearest.cluster == "eu");
    assert_eq!(
        eu.unwrap().message,
        "1 nvidia.com/gpu free, at most 1 on one node; 2 needed"
    );
    world.submit_job(world.job("third").gpus(1)).await;
    world.phase("third", Phase::Succeeded).await;
}
