//! Workers that cannot be reached.

use std::time::{Duration, Instant};

use bed::Link;
use futures::future::join_all;
use kube::api::DeleteParams;
use multikueue::api::job::Phase;
use serde_json::json;

use crate::fixture::{Join, Submission, World, operator_on, status};

/// `eu` behind a link, `us` directly.
async fn linked(name: &str) -> (World, Link) {
    let world = World::own(name).await;
    world.operator().start().await;
    let link = world.fleet.bed.link(&world.eu.plane).await.unwrap();
    let eu = operator_on(&world.eu.plane).await.via(&link);
    world.join(&world.eu, Join::with(eu)).await;
    let us = operator_on(&world.us.plane).await;
    world.join(&world.us, Join::with(us)).await;
    world.connected("eu").await;
    world.connected("us").await;
    (world, link)
}

#[tokio::test]
async fn a_worker_that_swallows_everything_is_named_delays_no_other_and_is_followed_again() {
    let (world, link) = linked("black-hole").await;
    world.add_nodes(&world.eu, [world.node("a", 8)]).await;
    world.add_nodes(&world.us, [world.node("b", 4)]).await;
    let on_eu = |name: &str| Submission::of(world.job(name).gpus(1).forever()).only_on("eu");
    world.submit(on_eu("train")).await;
    world.phase("train", Phase::Running).await;
    let (mirror, pods) = (world.eu.mirror("train").await, world.eu.pod_uids("train").await);

    link.black_hole().await.unwrap();
    let start = Instant::now();
    // `eu` has the most room and would be first for these.
    let names: Vec<_> = (0..10).map(|number| format!("other-{number}")).collect();
    join_all(names.iter().map(|name| {
        let job = Submission::of(world.job(name).gpus(1).run_seconds(0));
        world.submit(job.rather_on("us"))
    }))
    .await;
    for name in &names {
        world.phase(name, Phase::Succeeded).await;
    }
    let took = start.elapsed();
    assert!(took < Duration::from_secs(30), "ten jobs of no seconds took {took:?}");
    world.cluster_says("eu", "Connected", "False", "Timeout").await;
    world
        .cluster_says("eu", "CapacityKnown", "Unknown", "Disconnected")
        .await;
    let lost = world.clusters().get("eu").await.unwrap().status.unwrap().lost_since;
    assert!(lost.is_some());
    let blip = status(&world.get("train").await);
    assert_eq!(blip.phase, Phase::Running, "a blip lives on the WorkerCluster");

    let dark = world.phase("train", Phase::Unknown).await;
    let now = status(&dark);
    let fresh = now
        .conditions
        .iter()
        .find(|condition| condition.type_ == "StatusFresh")
        .unwrap();
    assert_eq!((fresh.status.as_str(), fresh.reason.as_str()), ("False", "WorkerLost"));
    let ready = now
        .conditions
        .iter()
        .find(|condition| condition.type_ == "Ready")
        .unwrap();
    assert_eq!(ready.status, "True", "the last that is known");

    link.heal().await.unwrap();
    world.connected("eu").await;
    world.phase("train", Phase::Running).await;
    let after = world.clusters().get("eu").await.unwrap().status.unwrap();
    assert_eq!(after.lost_since, None);
    let now = world.eu.mirror("train").await;
    assert_eq!(now.metadata.uid, mirror.metadata.uid);
    assert_eq!(world.eu.pod_uids("train").await, pods);
    assert_eq!(status(&world.get("train").await).last_attempt, 1);
}

#[tokio::test]
async fn a_job_that_ends_while_its_worker_is_away_brings_its_result_afterwards() {
    let (world, link) = linked("ends-away").await;
    world.add_nodes(&world.eu, [world.node("a", 2)]).await;
    let job = |name: &str| world.job(name).gpus(1).run_seconds(4);
    world.submit_job(job("good")).await;
    world.submit_job(job("bad").exit_code(7)).await;
    world.phase("good", Phase::Running).await;
    world.phase("bad", Phase::Running).await;
    link.refuse().await.unwrap();
    world
        .cluster_says("eu", "Connected", "False", "ConnectionRefused")
        .await;
    world
        .until("both to end", || async {
            let ended = async |name: &str| {
                let conditions = world.eu.mirror(name).await.status.unwrap_or_default().conditions;
                conditions
                    .unwrap_or_default()
                    .iter()
                    .any(|c| ["Complete", "Failed"].contains(&c.type_.as_str()))
            };
            match (ended("good").await, ended("bad").await) {
                (true, true) => Ok(()),
                other => Err(format!("{other:?}").into()),
            }
        })
        .await;
    link.heal().await.unwrap();
    for (name, phase) in [("good", Phase::Succeeded), ("bad", Phase::Failed)] {
        let done = status(&world.phase(name, phase).await);
        assert_eq!(done.last_attempt, 1);
        assert_eq!(done.start_time, world.eu.mirror(name).await.status.unwrap().start_time);
    }
    let creations = world.eu.creations();
    assert!(creations.values().all(|times| *times == 1), "{creations:?}");
}

#[tokio::test]
async fn a_job_deleted_while_its_worker_is_dark_goes_in_time_and_its_removal_is_owed() {
    let (world, link) = linked("debt").await;
    world.add_nodes(&world.eu, [world.node("a", 1)]).await;
    let job = Submission::of(world.job("train").gpus(1).forever()).policy("deletionTimeoutSeconds", 3);
    let uid = world.submit(job).await.metadata.uid.unwrap();
    world.phase("train", Phase::Running).await;
    link.black_hole().await.unwrap();
    world.delete("train").await;
    world.gone("train").await;
    let debts = world.clusters().get("eu").await.unwrap().status.unwrap().debts;
    let owed: Vec<_> = debts.iter().map(|debt| (&*debt.name, &*debt.job_uid)).collect();
    assert_eq!(owed, [("train", &*uid)]);
    assert!(world.eu.find("train").await.is_some());
    // The debt is known to the next one, too.
    world.operator().kill();
    link.heal().await.unwrap();
    world.operator().start().await;
    world.nothing_left().await;
    world
        .until("the debt to be paid", || async {
            let debts = world.clusters().get("eu").await?.status.unwrap_or_default().debts;
            if debts.is_empty() {
                Ok(())
            } else {
                Err(format!("{debts:?}").into())
            }
        })
        .await;
}

#[tokio::test]
async fn what_a_workercluster_owes_is_inherited_by_another_of_the_same_cluster() {
    let (world, link) = linked("inherited").await;
    world.add_nodes(&world.eu, [world.node("a", 1)]).await;
    let job = Submission::of(world.job("train").gpus(1).forever()).policy("deletionTimeoutSeconds", 1);
    world.submit(job).await;
    world.phase("train", Phase::Running).await;
    link.refuse().await.unwrap();
    world.delete("train").await;
    world.gone("train").await;
    assert_eq!(world.clusters().get("eu").await.unwrap().status.unwrap().debts.len(), 1);

    let direct = operator_on(&world.eu.plane).await.to_string();
    world.join_as("again", &direct, json!({}), "eu").await;
    world
        .cluster_says("again", "Connected", "False", "DuplicateCluster")
        .await;
    let deleted = world.clusters().delete("eu", &DeleteParams::default()).await;
    deleted.unwrap();
    world.nothing_left().await;
    world
        .until("the old one to go and the debt to be paid", || async {
            let old = world.clusters().get_opt("eu").await?;
            let debts = world.clusters().get("again").await?.status.unwrap_or_default().debts;
            if old.is_none() && debts.is_empty() {
                Ok(())
            } else {
                Err(format!("{:?} {debts:?}", old.map(|old| old.status)).into())
            }
        })
        .await;
    world.connected("again").await;
}

/// The answers vanish, the requests arrive: what was asked for is done, and nobody knows.
#[tokio::test]
async fn requests_whose_answers_are_lost_are_not_done_twice() {
    let (world, link) = linked("lost-answers").await;
    world.add_nodes(&world.eu, [world.node("a", 8)]).await;
    let names: Vec<_> = (0..6).map(|number| format!("job-{number}")).collect();
    for (number, name) in names.iter().enumerate() {
        world.submit_job(world.job(name).gpus(1)).await;
        if number == 2 {
            link.lose_answers().await.unwrap();
        }
    }
    world.cluster_says("eu", "Connected", "False", "Timeout").await;
    link.heal().await.unwrap();
    for name in &names {
        let done = status(&world.phase(name, Phase::Succeeded).await);
        assert_eq!(done.failed_attempts, 0, "{name}");
    }
    let creations = world.eu.creations();
    for name in &names {
        assert_eq!(world.eu.pods_of(name).await.len(), 1, "{name}");
        assert!(creations[name] >= 1, "{creations:?}");
    }
}

/// Longer than the leader lease lasts: nobody leads, and what runs goes on running.
#[tokio::test]
async fn a_manager_that_is_away_stops_nothing_that_runs_and_learns_what_ended() {
    let world = World::own_joined("manager-away", &[]).await;
    world.add_nodes(&world.eu, [world.node("a", 3)]).await;
    world.submit_job(world.job("long").gpus(1).forever()).await;
    world.submit_job(world.job("short").gpus(1).run_seconds(5)).await;
    world.phase("long", Phase::Running).await;
    world.phase("short", Phase::Running).await;
    let pods = world.eu.pod_uids("long").await;
    world.manager.api_server().stop();
    world
        .until("the short job to end", || async {
            let status = world.eu.mirror("short").await.status.unwrap_or_default();
            status.completion_time.map(drop).ok_or_else(|| "it runs".into())
        })
        .await;
    world
        .until("leadership to be over", || async {
            match world.operator().metric("multikueue_leader").await {
                Some(0) => Ok(()),
                other => Err(format!("multikueue_leader is {other:?}").into()),
            }
        })
        .await;
    world.manager.start_api_server().await.unwrap();
    let done = status(&world.phase("short", Phase::Succeeded).await);
    assert_eq!(done.last_attempt, 1);
    world.submit_job(world.job("next").gpus(1)).await;
    world.phase("next", Phase::Succeeded).await;
    assert_eq!(world.eu.pod_uids("long").await, pods);
    assert_eq!(status(&world.get("long").await).phase, Phase::Running);
    assert!(world.operator().process().is_running());
}
