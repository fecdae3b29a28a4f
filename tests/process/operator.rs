//! The operator as its users start it, with its own rights and no more.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bed::ControlPlane;
use tokio::sync::OnceCell;

use crate::BED;
use crate::candidate::lease;
use crate::program::{Operator, program};

/// The operator's roles are there, and a kubeconfig of its service account.
async fn prepared() -> (Arc<ControlPlane>, PathBuf) {
    static PREPARED: OnceCell<PathBuf> = OnceCell::const_new();
    let plane = BED.get().await.unwrap().control_plane("main").unwrap();
    let kubeconfig = PREPARED.get_or_init(async || {
        let roles = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/manager-role.yaml");
        let applied = plane.kubectl(&["apply", "--server-side", "-f", roles]).await.unwrap();
        assert!(applied.status.success(), "{}", applied.stderr);
        let kubeconfig = plane
            .kubeconfig_service_account("multikueue-system", "multikueue")
            .await
            .unwrap();
        plane.write_kubeconfig("operator.kubeconfig", &kubeconfig).unwrap()
    });
    let kubeconfig = kubeconfig.await.clone();
    (plane, kubeconfig)
}

/// The whole start: alive without the custom resource definitions and says so, ready once `multikueue crd` was applied; and the whole
/// end: SIGTERM, status 0, the lease given back.
#[tokio::test]
async fn the_operator_waits_for_its_definitions_leads_and_ends_in_order() {
    let (plane, kubeconfig) = prepared().await;
    let mut operator = Operator::start(&kubeconfig, "first", &["--release=whole"]).await;
    operator.answers("/readyz", 503, "multikueue.rs").await;
    operator.answers("/healthz", 200, "ok").await;
    operator
        .answers(
            "/metrics",
            200,
            "multikueue_watch_restarts_total{kind=\"multikueuejobs\"} ",
        )
        .await;
    operator.leads(true).await;

    let printed = program(&["crd"]).output().unwrap();
    assert!(printed.status.success());
    let definitions = String::from_utf8(printed.stdout).unwrap();
    let applied = plane
        .kubectl_with_input(&["apply", "--server-side", "-f", "-"], &definitions)
        .await
        .unwrap();
    assert!(applied.status.success(), "{}", applied.stderr);
    operator.answers("/readyz", 200, "ok").await;
    operator
        .answers("/metrics", 200, "multikueue_jobs{phase=\"Queued\"} 0\n")
        .await;

    let client = plane.client().await.unwrap();
    let holder = lease(&client, "multikueue-system", "whole")
        .await
        .spec
        .unwrap()
        .holder_identity
        .unwrap();
    assert!(holder.starts_with("first_"), "{holder}");
    let start = Instant::now();
    operator.signal("TERM");
    let status = operator.ended().await;
    assert_eq!(status.code(), Some(0), "{}", operator.log());
    assert!(
        start.elapsed() < Duration::from_secs(5),
        "{:?}\n{}",
        start.elapsed(),
        operator.log()
    );
    assert_eq!(
        lease(&client, "multikueue-system", "whole")
            .await
            .spec
            .unwrap()
            .holder_identity,
        None
    );
}

/// A leader that was stopped for longer than its lease finds itself a standby when it goes on.
#[tokio::test]
async fn a_leader_stopped_for_longer_than_its_lease_is_no_leader_when_it_goes_on() {
    let (_, kubeconfig) = prepared().await;
    let first = Operator::start(&kubeconfig, "first", &["--release=stopped"]).await;
    first.leads(true).await;
    let second = Operator::start(&kubeconfig, "second", &["--release=stopped"]).await;
    first.signal("STOP");
    second.leads(true).await;
    first.signal("CONT");
    first.leads(false).await;
    let lines = first
        .log()
        .lines()
        .filter(|line| line.contains("leadership lost"))
        .count();
    assert_eq!(lines, 1, "{}", first.log());
    second.leads(true).await;
}

#[tokio::test]
async fn an_operator_that_is_told_to_lead_alone_needs_no_lease() {
    let (plane, kubeconfig) = prepared().await;
    let mut operator = Operator::start(&kubeconfig, "alone", &["--release=alone", "--leader-elect=false"]).await;
    operator.leads(true).await;
    let found = plane
        .kubectl(&["get", "lease", "-n", "multikueue-system", "alone"])
        .await
        .unwrap();
    assert!(found.stderr.contains("NotFound"), "{found:?}");
    operator.signal("INT");
    assert_eq!(operator.ended().await.code(), Some(0), "{}", operator.log());
}

#[tokio::test]
async fn an_operator_that_cannot_reach_its_manager_lives_says_why_and_ends_when_told_to() {
    let (plane, _) = prepared().await;
    let kubeconfig = plane
        .kubeconfig_service_account("multikueue-system", "multikueue")
        .await
        .unwrap()
        .with_server("https://127.0.0.1:9");
    let kubeconfig = plane.write_kubeconfig("unreachable.kubeconfig", &kubeconfig).unwrap();
    let mut operator = Operator::start(&kubeconfig, "far", &["--release=far"]).await;
    operator
        .answers("/readyz", 503, "manager: the namespace kube-system cannot be read")
        .await;
    operator.answers("/readyz", 503, "onnection refused").await;
    operator.answers("/healthz", 200, "ok").await;
    operator.signal("TERM");
    assert_eq!(operator.ended().await.code(), Some(0), "{}", operator.log());
}
