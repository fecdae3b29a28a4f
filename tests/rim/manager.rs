//! What the rim needs of the manager.

use std::sync::Arc;
use std::time::Duration;

use bed::{ControlPlaneOptions, apply_yaml};
use multikueue::api::crds;
use multikueue::clusters::{Clock, Rim, RimConfig, client};
use multikueue::dispatcher::Event;
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::world::{LONG, ORIGIN, bed};

#[tokio::test]
async fn kinds_that_are_missing_are_waited_for() {
    // A cluster that nobody has installed anything on is taken for the manager.
    let bed = bed().await;
    let bare = bed
        .add_control_plane("bare", ControlPlaneOptions::bare())
        .await
        .unwrap();
    let ours = client::manager(bare.kubeconfig().config().await.unwrap()).unwrap();
    let (tx, mut events) = mpsc::channel(256);
    let config = RimConfig {
        operator_namespace: "default".into(),
        origin_hash: ORIGIN.into(),
        instance: "rim-test".into(),
        manager_requests: RimConfig::MANAGER_REQUESTS,
        worker_requests: RimConfig::WORKER_REQUESTS,
    };
    let rim = Rim::start(config, ours, Clock::start(), tx, Arc::new(()));
    let mut readiness = rim.readiness();
    let blocked = timeout(
        LONG,
        readiness.wait_for(|now| now.blocked().is_some_and(|why| why.contains("404"))),
    )
    .await;
    let blocked = blocked.unwrap().unwrap().blocked().unwrap();
    assert!(blocked.contains("multikueuejobs.multikueue.rs"), "{blocked}");
    let yaml: Vec<_> = crds::crds_yaml().unwrap().into_iter().map(|(_, text)| text).collect();
    apply_yaml(&bare.client().await.unwrap(), &yaml.join("---\n"))
        .await
        .unwrap();
    timeout(LONG, readiness.wait_for(|now| now.blocked().is_none()))
        .await
        .unwrap()
        .unwrap();
    let mut listed = false;
    while let Ok(event) = events.try_recv() {
        listed |= matches!(event, Event::JobsListed(keys) if keys.is_empty());
    }
    assert!(listed);
    rim.stop(Duration::from_secs(5)).await;
}
