//! The operator is killed, and whoever comes next goes on where it was.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::future::join_all;
use kube::ResourceExt as _;
use kube::api::{ListParams, Patch, PatchParams};
use multikueue::api::job::Phase;
use serde_json::json;

use crate::fixture::{SOON, Site, Submission, World, assignment, status};

/// Uid of the mirror and uids of the pods of each job on a worker.
async fn identities(site: &Site, jobs: &[&str]) -> BTreeMap<String, (Option<String>, Vec<String>)> {
    let mut all = BTreeMap::new();
    for job in jobs {
        let mirror = site.find(job).await.and_then(|mirror| mirror.metadata.uid);
        all.insert((*job).to_owned(), (mirror, site.pod_uids(job).await));
    }
    all
}

#[tokio::test]
async fn killed_while_jobs_are_in_every_phase_the_operator_goes_on_where_it_was() {
    let world = World::own_joined("killed", &[]).await;
    world.add_nodes(&world.eu, [world.node("a", 8)]).await;
    let on = |job| Submission::of(job).only_on("eu");
    world.submit(on(world.job("finished").gpus(1))).await;
    world.submit(on(world.job("failed").gpus(1).exit_code(1))).await;
    world.phase("finished", Phase::Succeeded).await;
    world.phase("failed", Phase::Failed).await;
    world.submit(on(world.job("running").gpus(1).forever())).await;
    world.submit(on(world.job("starting").gpus(1).never_start())).await;
    let stubborn = world.job("deleted").gpus(1).forever().ignore_sigterm_seconds(8);
    world.submit(on(stubborn.clone())).await;
    world
        .submit(on(world.job("suspended").gpus(1).forever().ignore_sigterm_seconds(8)))
        .await;
    world.submit(on(world.job("short").gpus(1).run_seconds(6))).await;
    for name in ["running", "deleted", "suspended", "short"] {
        world.phase(name, Phase::Running).await;
    }
    world
        .until("a pod of the job that does not start", || async {
            match world.eu.pods_of("starting").await.len() {
                1 => Ok(()),
                other => Err(format!("{other} pods").into()),
            }
        })
        .await;
    world.submit(on(world.job("queued").gpus(6))).await;
    world
        .status_is("queued", "says why it waits", |status| status.waiting.is_some())
        .await;
    world.delete("deleted").await;
    world.change("suspended", json!({"suspend": true})).await;
    world
        .status_is("suspended", "is being taken off its worker", |status| {
            status.assignment.as_ref().is_some_and(|on| on.revoking.is_some())
        })
        .await;
    let kept = ["finished", "failed", "running", "starting"];
    let before = identities(&world.eu, &kept).await;

    world.operator().kill();
    // Submitted, deleted and ended while nobody was there.
    world.submit(on(world.job("late").gpus(1))).await;
    world
        .until("the short job to end", || async {
            let status = world.eu.mirror("short").await.status.unwrap_or_default();
            if status.completion_time.is_some() {
                Ok(())
            } else {
                Err(format!("{status:?}").into())
            }
        })
        .await;
    world.operator().start().await;

    world.gone("deleted").await;
    world.phase("suspended", Phase::Suspended).await;
    world.phase("short", Phase::Succeeded).await;
    world.phase("late", Phase::Succeeded).await;
    assert_eq!(identities(&world.eu, &kept).await, before);
    for (name, phase) in [
        ("finished", Phase::Succeeded),
        ("failed", Phase::Failed),
        ("running", Phase::Running),
        ("starting", Phase::Assigned),
    ] {
        let job = world.get(name).await;
        assert_eq!((status(&job).phase, status(&job).last_attempt), (phase, 1), "{name}");
    }
    // Two of eight devices are held; six are free now.
    world.phase("queued", Phase::Succeeded).await;
    let creations = world.eu.creations();
    let counts: Vec<_> = creations.iter().filter(|(_, times)| **times != 1).collect();
    assert!(counts.is_empty(), "mirrors that were not created once: {counts:?}");

    // Everything is as it should be: nothing more is written.
    let versions = async || {
        let jobs = world.jobs().list(&ListParams::default()).await.unwrap().items;
        let mirrors = world.eu.jobs().list(&ListParams::default()).await.unwrap().items;
        let jobs = jobs.iter().map(|job| (job.name_any(), job.resource_version()));
        let mirrors = mirrors.iter().map(|job| (job.name_any(), job.resource_version()));
        jobs.chain(mirrors).collect::<Vec<_>>()
    };
    let before = versions().await;
    world
        .stays("every object", || async {
            let now = versions().await;
            if now == before {
                Ok(())
            } else {
                Err(format!("{before:?} became {now:?}").into())
            }
        })
        .await;
}

/// The kills fall where they fall: between any two requests of twenty lives.
#[tokio::test]
async fn killed_again_and_again_the_operator_runs_every_job_exactly_once() {
    const JOBS: usize = 20;
    let world = World::own_joined("killed-often", &[]).await;
    world.add_nodes(&world.eu, [world.node("a", 4)]).await;
    world.add_nodes(&world.us, [world.node("b", 4)]).await;
    let names: Vec<_> = (0..JOBS).map(|number| format!("job-{number}")).collect();
    join_all(names.iter().map(|name| world.submit_job(world.job(name).gpus(1)))).await;
    let done = async || {
        let jobs = world.jobs().list(&ListParams::default()).await.unwrap().items;
        let phases: Vec<_> = jobs.iter().map(|job| status(job).phase).collect();
        assert!(!phases.contains(&Phase::Failed), "{phases:?}");
        phases.iter().filter(|phase| **phase == Phase::Succeeded).count()
    };
    let mut kills = 0;
    for pause in [150, 400, 650, 900, 1200] {
        // A life begins before each kill, or there would be nothing to interrupt.
        let before = world.eu.creations().len() + world.us.creations().len();
        if before == JOBS {
            break;
        }
        world
            .until("another mirror", || async {
                match world.eu.creations().len() + world.us.creations().len() {
                    now if now > before => Ok(()),
                    now => Err(format!("{now} mirrors").into()),
                }
            })
            .await;
        tokio::time::sleep(Duration::from_millis(pause)).await;
        world.operator().kill();
        kills += 1;
        world.operator().launch();
    }
    assert!(kills >= 2, "only {kills} kills had anything to interrupt");
    world
        .within(2 * SOON, "all jobs to succeed", || async {
            match done().await {
                JOBS => Ok(()),
                other => Err(format!("{other} of {JOBS}").into()),
            }
        })
        .await;
    let (eu, us) = (world.eu.creations(), world.us.creations());
    for name in &names {
        let job = world.get(name).await;
        assert_eq!(status(&job).last_attempt, 1, "{name}");
        let times = eu.get(name).unwrap_or(&0) + us.get(name).unwrap_or(&0);
        assert_eq!(times, 1, "{name} was created {times} times");
        let pods = world.site_of(&job).pods_of(name).await;
        assert_eq!(pods.len(), 1, "{name} has {} pods", pods.len());
        assert_eq!(
            assignment(&job).mirror_uid,
            world.site_of(&job).mirror(name).await.metadata.uid
        );
    }
}

/// Somebody takes the finalizer off and deletes the job while the operator is away: nobody is left to say what the mirror was for.
#[tokio::test]
async fn a_mirror_whose_job_vanished_is_removed_after_the_grace_and_not_before_it_is_proven() {
    let world = World::own_joined("orphan", &["--orphan-grace=4s"]).await;
    world.add_nodes(&world.eu, [world.node("a", 2)]).await;
    world.submit_job(world.job("orphan").gpus(1).forever()).await;
    world.submit_job(world.job("kept").gpus(1).forever()).await;
    world.phase("orphan", Phase::Running).await;
    world.phase("kept", Phase::Running).await;
    let kept = identities(&world.eu, &["kept"]).await;
    world.operator().kill();
    let release = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    let released = world.jobs().patch("orphan", &PatchParams::default(), &release).await;
    released.unwrap();
    world.delete("orphan").await;
    world.gone("orphan").await;
    world.operator().start().await;
    world
        .until("the orphan to go", || async {
            match (world.eu.find("orphan").await, world.eu.pods_of("orphan").await.len()) {
                (None, 0) => Ok(()),
                (found, pods) => Err(format!("{:?}, {pods} pods", found.map(|job| job.status)).into()),
            }
        })
        .await;
    assert_eq!(identities(&world.eu, &["kept"]).await, kept);
    assert_eq!(status(&world.get("kept").await).phase, Phase::Running);
}
