//! The process: its end, its standby, what it serves.

use std::time::{Duration, Instant};

use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use multikueue::api::job::Phase;

use crate::fixture::{Operator, SYSTEM, World, status};

async fn leads(world: &World, operator: &Operator) {
    world
        .until("leadership", || async {
            match operator.metric("multikueue_leader").await {
                Some(1) => Ok(()),
                other => Err(format!("multikueue_leader is {other:?}").into()),
            }
        })
        .await;
}

async fn leader_lease(world: &World) -> Lease {
    let leases = Api::<Lease>::namespaced(world.client.clone(), SYSTEM);
    leases.get("multikueue").await.unwrap()
}

#[tokio::test]
async fn sigterm_gives_the_leader_lease_back_and_ends_with_status_0() {
    let world = World::own_joined("sigterm", &[]).await;
    world.add_nodes(&world.eu, [world.node("a", 1)]).await;
    world.submit_job(world.job("train").gpus(1).forever()).await;
    world.phase("train", Phase::Running).await;
    let mirror = world.at_rest(&world.eu, "train").await;
    let held = leader_lease(&world).await.spec.unwrap();
    assert!(
        held.holder_identity
            .is_some_and(|holder| holder.starts_with("operator"))
    );

    let process = world.operator().process();
    process.terminate().unwrap();
    let ended = world
        .within(Duration::from_secs(20), "the operator to end", || async {
            process.exit_status().ok_or_else(|| "it runs".into())
        })
        .await;
    assert!(ended.success(), "{ended:?}");
    let left = leader_lease(&world).await.spec.unwrap().holder_identity;
    assert_eq!(left.unwrap_or_default(), "", "the lease was not given back");

    // The next one need not wait for the lease to run out.
    world.operator().start().await;
    leads(&world, world.operator()).await;
    world.submit_job(world.job("next").request("cpu", "1")).await;
    world.phase("next", Phase::Succeeded).await;
    let now = world.eu.mirror("train").await;
    assert_eq!(now.metadata.uid, mirror.metadata.uid);
    assert_eq!(now.metadata.resource_version, mirror.metadata.resource_version);
}

#[tokio::test]
async fn a_standby_takes_over_when_the_leader_is_killed() {
    let world = World::own_joined("standby", &[]).await;
    let standby = world.replica("standby");
    standby.start().await;
    world.add_nodes(&world.eu, [world.node("a", 2)]).await;
    world.submit_job(world.job("train").gpus(1).forever()).await;
    world.phase("train", Phase::Running).await;
    let mirror = world.at_rest(&world.eu, "train").await;
    assert_eq!(standby.metric("multikueue_leader").await, Some(0));

    world.operator().kill();
    let start = Instant::now();
    leads(&world, &standby).await;
    assert!(start.elapsed() < Duration::from_secs(30), "took {:?}", start.elapsed());
    world.submit_job(world.job("next").gpus(1)).await;
    world.phase("next", Phase::Succeeded).await;
    let now = world.eu.mirror("train").await;
    assert_eq!(now.metadata.uid, mirror.metadata.uid);
    assert_eq!(now.metadata.resource_version, mirror.metadata.resource_version);
    assert_eq!(status(&world.get("train").await).phase, Phase::Running);
}

/// A frozen process does not know that time passes: what it had in mind must do no harm when it wakes.
#[tokio::test]
async fn a_leader_that_was_frozen_does_no_harm_when_it_wakes() {
    let world = World::own_joined("frozen", &[]).await;
    let standby = world.replica("standby");
    standby.start().await;
    world.add_nodes(&world.eu, [world.node("a", 4)]).await;
    let names: Vec<_> = (0..8).map(|number| format!("job-{number}")).collect();
    for name in &names {
        world.submit_job(world.job(name).gpus(1).run_seconds(2)).await;
    }
    world
        .until("a first mirror", || async {
            match world.eu.creations().len() {
                0 => Err("none".into()),
                _ => Ok(()),
            }
        })
        .await;
    world.operator().process().pause().unwrap();
    leads(&world, &standby).await;
    world.operator().process().resume().unwrap();
    for name in &names {
        let done = world.phase(name, Phase::Succeeded).await;
        assert_eq!(status(&done).last_attempt, 1, "{name}");
    }
    world
        .until("the old leader to know", || async {
            match world.operator().metric("multikueue_leader").await {
                Some(0) => Ok(()),
                other => Err(format!("multikueue_leader is {other:?}").into()),
            }
        })
        .await;
    assert_eq!(standby.metric("multikueue_leader").await, Some(1));
    let creations = world.eu.creations();
    assert_eq!(creations.len(), names.len());
    assert!(creations.values().all(|times| *times == 1), "{creations:?}");
}

#[tokio::test]
async fn health_readiness_and_metrics_are_served() {
    let world = World::shared("metrics").await;
    world.add_nodes(&world.eu, [world.node("a", 3)]).await;
    world.submit_job(world.job("train").gpus(1).forever()).await;
    world.phase("train", Phase::Running).await;
    let operator = world.operator();
    for path in ["/healthz", "/readyz", "/metrics"] {
        let (code, body) = operator.get(path).await.unwrap();
        assert_eq!(code, 200, "{path}: {body}");
    }
    let model = world.model();
    let devices = |state: &str| format!("multikueue_devices{{worker=\"eu\",model=\"{model}\",state=\"{state}\"}}");
    world
        .until("the numbers", || async {
            let (_, text) = operator.get("/metrics").await?;
            let free = operator.metric(&devices("free")).await;
            let used = operator.metric(&devices("used")).await;
            let running = operator.metric("multikueue_jobs{phase=\"Running\"}").await;
            if (free, used) == (Some(2), Some(1)) && running.is_some_and(|running| running >= 1) {
                Ok(())
            } else {
                Err(text.into())
            }
        })
        .await;
    world
        .until("the same numbers in the status of the worker", || async {
            let cluster = world.clusters().get("eu").await?;
            let devices = cluster.status.unwrap_or_default().devices;
            match devices.get(&model) {
                Some(devices) if (devices.free, devices.used, devices.unavailable) == (2, 1, 0) => Ok(()),
                other => Err(format!("{other:?}").into()),
            }
        })
        .await;
    for series in [
        "multikueue_leader",
        "multikueue_worker_connected{worker=\"eu\"}",
        "multikueue_worker_connected{worker=\"us\"}",
    ] {
        assert_eq!(operator.metric(series).await, Some(1), "{series}");
    }
    let (_, text) = operator.get("/metrics").await.unwrap();
    // Whatever other tests let it do so far: the roles under deploy/ were enough. (A quota forbids creation, too.)
    let forbidden = text.lines().filter(|line| line.contains("outcome=\"forbidden\""));
    let forbidden: Vec<_> = forbidden.filter(|line| !line.contains("_mirror\"")).collect();
    assert!(forbidden.is_empty(), "{forbidden:?}");
    for name in [
        "multikueue_dispatch_latency_seconds_count",
        "multikueue_effects_total{kind=\"create_mirror\",outcome=\"done\"}",
        "multikueue_effect_duration_seconds_bucket",
        "multikueue_jobs{phase=\"Unknown\"}",
    ] {
        assert!(text.contains(name), "{name} is not in\n{text}");
    }
}
