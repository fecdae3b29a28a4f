//! What each request and each refusal comes back as.

use std::sync::Arc;
use std::time::Duration;

use bed::{apply_yaml, create_namespace, job};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::events::v1::Event as Published;
use kube::Api;
use kube::api::{DeleteParams, ListParams};
use multikueue::api::{JobKey, MultiKueueJob, MultiKueueJobStatus, RawJson, ResourceVersion, WorkerCluster, names};
use multikueue::dispatcher::effect::{Notice, Regarding};
use multikueue::dispatcher::{Answer, Outcome, RefusalKind, Request};
use multikueue::lifecycle::view::{JobView, LeaseView};
use multikueue::workload::TemplateKind;
use serde_json::json;

use crate::world::{World, bed, service_account};

pub fn refused(outcome: Outcome) -> RefusalKind {
    match outcome {
        Outcome::Refused(refusal) => refusal.kind,
        other => panic!("not refused: {other:?}"),
    }
}

fn a_job(outcome: Outcome) -> JobView {
    match outcome {
        Outcome::Done(Answer::Job(view)) => *view,
        other => panic!("no job: {other:?}"),
    }
}

fn a_lease(outcome: Outcome) -> LeaseView {
    match outcome {
        Outcome::Done(Answer::Lease(view)) => view,
        other => panic!("no lease: {other:?}"),
    }
}

pub fn accepted(outcome: &Outcome) {
    assert!(matches!(outcome, Outcome::Done(Answer::Accepted)), "{outcome:?}");
}

#[tokio::test]
async fn jobs_on_the_manager_are_written_on_the_version_that_was_decided_on() {
    let mut world = World::start("jobs").await;
    let key = JobKey::new("jobs", "train");
    let get = Request::GetJob { key: key.clone() };
    assert_eq!(refused(world.ask(None, get.clone()).await), RefusalKind::ObjectNotFound);
    let yaml = "
apiVersion: multikueue.rs/v1alpha1
kind: MultiKueueJob
metadata: {name: train, namespace: jobs}
spec:
  template:
    apiVersion: batch/v1
    kind: Job
    spec: {template: {spec: {containers: [{name: c, image: i}], restartPolicy: Never}}}
";
    apply_yaml(&world.client, yaml).await.unwrap();
    let first = a_job(world.ask(None, get.clone()).await);
    let finalizers = |view: &JobView, finalizers: &[&str]| Request::SetJobFinalizers {
        key: view.key.clone(),
        uid: view.uid.clone(),
        resource_version: view.resource_version,
        finalizers: finalizers.iter().map(|&text| text.to_owned()).collect(),
    };
    let second = a_job(world.ask(None, finalizers(&first, &[names::FINALIZER])).await);
    assert_eq!(second.finalizers, [names::FINALIZER]);
    assert!(second.resource_version > first.resource_version);

    let status = |view: &JobView, uid: &Arc<str>| Request::WriteJobStatus {
        key: view.key.clone(),
        uid: uid.clone(),
        resource_version: view.resource_version,
        status: Box::new(MultiKueueJobStatus {
            observed_generation: view.generation,
            last_attempt: 7,
            ..MultiKueueJobStatus::default()
        }),
    };
    assert_eq!(
        refused(world.ask(None, status(&first, &first.uid)).await),
        RefusalKind::Conflict
    );
    assert_eq!(
        refused(world.ask(None, status(&second, &"other".into())).await),
        RefusalKind::Conflict
    );
    let third = a_job(world.ask(None, status(&second, &second.uid)).await);
    assert_eq!((third.status.last_attempt, third.generation), (7, second.generation));
    // An object that is no longer valid is not a conflict.
    let invalid = Request::WriteJobStatus {
        key: key.clone(),
        uid: third.uid.clone(),
        resource_version: third.resource_version,
        status: Box::new(MultiKueueJobStatus {
            mirror_status: Some(RawJson::from_value(&json!("no object"))),
            ..MultiKueueJobStatus::default()
        }),
    };
    assert_eq!(refused(world.ask(None, invalid).await), RefusalKind::Invalid);

    let notice = Notice {
        regarding: Regarding::Job(key.clone(), third.uid.clone()),
        warning: true,
        reason: "Tested",
        action: "Test",
        note: "seen".into(),
    };
    accepted(&world.ask(None, Request::PublishEvent(Box::new(notice))).await);
    let events = Api::<Published>::namespaced(world.client.clone(), "jobs")
        .list(&ListParams::default())
        .await
        .unwrap();
    let event = events
        .items
        .iter()
        .find(|event| event.reason.as_deref() == Some("Tested"))
        .unwrap();
    assert_eq!(event.regarding.as_ref().unwrap().uid.as_deref(), Some(&*third.uid));

    Api::<MultiKueueJob>::namespaced(world.client.clone(), "jobs")
        .delete("train", &DeleteParams::default())
        .await
        .unwrap();
    let dying = a_job(world.ask(None, get.clone()).await);
    assert!(dying.deleted.is_some());
    accepted(&world.ask(None, finalizers(&dying, &[])).await);
    assert_eq!(refused(world.ask(None, get).await), RefusalKind::ObjectNotFound);
    assert_eq!(
        refused(world.ask(None, finalizers(&dying, &[])).await),
        RefusalKind::ObjectNotFound
    );
}

#[tokio::test]
async fn worker_clusters_are_written_on_the_version_that_was_decided_on() {
    let mut world = World::start("written").await;
    world.worker_cluster("written", "absent", "kubeconfig").await;
    let name: Arc<str> = "written".into();
    let get = Request::GetWorkerCluster { name: name.clone() };
    let Outcome::Done(Answer::WorkerCluster(view)) = world.ask(None, get.clone()).await else {
        panic!("no WorkerCluster")
    };
    let finalizers = |version, finalizers| Request::SetWorkerFinalizers {
        name: name.clone(),
        uid: view.uid.clone(),
        resource_version: version,
        finalizers,
    };
    let write = finalizers(view.resource_version, vec![names::FINALIZER.into()]);
    let Outcome::Done(Answer::WorkerCluster(second)) = world.ask(None, write.clone()).await else {
        panic!("not written")
    };
    assert_eq!(refused(world.ask(None, write).await), RefusalKind::Conflict);
    let mut status = second.status.clone();
    status.version = Some("v1".into());
    let write = Request::WriteWorkerStatus {
        name: name.clone(),
        uid: view.uid.clone(),
        resource_version: second.resource_version,
        status: Box::new(status),
    };
    let Outcome::Done(Answer::WorkerCluster(third)) = world.ask(None, write).await else {
        panic!("not written")
    };
    assert_eq!(third.status.version.as_deref(), Some("v1"));
    Api::<WorkerCluster>::all(world.client.clone())
        .delete("written", &DeleteParams::default())
        .await
        .unwrap();
    let Outcome::Done(Answer::WorkerCluster(dying)) = world.ask(None, get.clone()).await else {
        panic!("gone at once")
    };
    accepted(&world.ask(None, finalizers(dying.resource_version, Vec::new())).await);
    assert_eq!(refused(world.ask(None, get).await), RefusalKind::ObjectNotFound);
}

#[tokio::test]
async fn a_lease_is_looked_at_before_it_is_written_and_then_written_on_its_version() {
    let mut world = World::start("leases").await;
    let admin = world.eu.kubeconfig().to_string();
    world.add("leases", &admin).await;
    world.up("leases").await;
    service_account(&world).await;
    let renew = |holder: &str, version: Option<ResourceVersion>| Request::RenewLease {
        name: "multikueue-leases".into(),
        holder: holder.into(),
        seconds: 30,
        transitions: 1,
        resource_version: version,
    };
    let worker = Some("leases");
    let created = a_lease(world.ask(worker, renew("ours", None)).await);
    assert_eq!(created.holder, "ours");
    let renewed = a_lease(world.ask(worker, renew("ours", Some(created.resource_version))).await);
    assert!(renewed.resource_version > created.resource_version);
    // Whose it is already, and who does not know its version: that is a write too, or the answer would be no renewal.
    let again = a_lease(world.ask(worker, renew("ours", None)).await);
    assert!(again.holder == "ours" && again.resource_version > renewed.resource_version);
    let renewed = again;
    // Who knows no version looks, and overwrites nobody.
    let seen = a_lease(world.ask(worker, renew("theirs", None)).await);
    assert_eq!(seen, renewed);
    assert_eq!(
        refused(world.ask(worker, renew("theirs", Some(created.resource_version))).await),
        RefusalKind::Conflict
    );
    // Taken away by hand: an API server makes a lease anew for a PUT, whatever version it names. Nobody else's is lost by that.
    let leases = Api::<Lease>::namespaced(world.worker.clone(), names::WORKER_LEASE_NAMESPACE);
    let written = leases.get("multikueue-leases").await.unwrap().spec.unwrap();
    assert_eq!(
        (written.lease_duration_seconds, written.lease_transitions),
        (Some(30), Some(1))
    );
    leases
        .delete("multikueue-leases", &DeleteParams::default())
        .await
        .unwrap();
    let made_anew = a_lease(world.ask(worker, renew("ours", Some(renewed.resource_version))).await);
    assert!(made_anew.holder == "ours" && made_anew.resource_version > renewed.resource_version);
}

#[tokio::test]
async fn what_is_too_late_is_not_sent_and_what_gets_no_answer_is_unknown() {
    let mut world = World::start("late").await;
    let link = bed().await.link(&world.eu).await.unwrap();
    world
        .add("late", &world.eu.kubeconfig().clone().via(&link).to_string())
        .await;
    world.up("late").await;
    create_namespace(&world.worker, "late", true).await.unwrap();
    let key = JobKey::new("late", "m");
    let object = job("m").namespace("late").suspended().build();
    let object = RawJson::from_value(&serde_json::to_value(object).unwrap());
    let create = Request::CreateMirror {
        kind: TemplateKind::Job,
        key,
        object,
        dry_run: false,
    };

    let late = world.effect(Some("late"), create.clone(), Duration::ZERO);
    assert!(matches!(world.outcome(late).await, Outcome::NotSent));
    let mut old = world.effect(Some("late"), create.clone(), Duration::from_secs(5));
    old.epoch -= 1;
    assert!(matches!(world.outcome(old).await, Outcome::NotSent));
    let nobody = Request::GetJob {
        key: JobKey::new("late", "x"),
    };
    world.epochs.insert("nobody".into(), 1);
    assert!(matches!(world.ask(Some("nobody"), nobody).await, Outcome::NotSent));
    let jobs = Api::<Job>::namespaced(world.worker.clone(), "late");
    assert!(jobs.get_opt("m").await.unwrap().is_none());

    link.lose_answers().await.unwrap();
    let start = world.clock.mono();
    let unheard = world.effect(Some("late"), create, Duration::from_secs(2));
    let outcome = world.outcome(unheard).await;
    assert!(matches!(outcome, Outcome::Unknown { .. }), "{outcome:?}");
    assert!(world.clock.mono().saturating_sub(start) < Duration::from_secs(4));
    // One request without an answer made the link look for itself, long before its own turn.
    assert_eq!(world.down("late").await.0, "Timeout");
    assert!(world.clock.mono().saturating_sub(start) < Duration::from_secs(8));
}
