//! A mirror's requests, one by one, and how each is refused.

use std::sync::Arc;

use bed::{create_namespace, job, pod};
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use multikueue::api::{JobKey, RawJson, names};
use multikueue::dispatcher::{Answer, Outcome, RefusalKind, Request};
use multikueue::lifecycle::view::MirrorView;
use multikueue::workload::TemplateKind;
use serde_json::{Value, json};

use crate::requests::{accepted, refused};
use crate::world::World;

const KIND: TemplateKind = TemplateKind::Job;

/// A world whose worker has the name of the test, and is up.
async fn world(name: &str) -> World {
    let mut world = World::start(name).await;
    world.add(name, &world.eu.kubeconfig().to_string()).await;
    world.up(name).await;
    world
}

fn a_mirror(outcome: Outcome) -> MirrorView {
    match outcome {
        Outcome::Done(Answer::Mirror(view)) => *view,
        other => panic!("no mirror: {other:?}"),
    }
}

fn object(key: &JobKey, nonce: &str) -> Value {
    let mut object = serde_json::to_value(job(&key.name).namespace(&key.namespace).suspended().build()).unwrap();
    object["metadata"]["annotations"][names::NONCE] = json!(nonce);
    object
}

fn create(key: &JobKey, object: &Value, dry_run: bool) -> Request {
    Request::CreateMirror {
        kind: KIND,
        key: key.clone(),
        object: RawJson::from_value(object),
        dry_run,
    }
}

fn get(key: &JobKey) -> Request {
    Request::GetMirror {
        kind: KIND,
        key: key.clone(),
    }
}

fn stop(view: &MirrorView) -> Request {
    let patch = KIND.workload().suspend_patch(&view.uid, view.resource_version, "n3");
    Request::MergePatchMirror {
        kind: KIND,
        key: view.key.clone(),
        patch,
    }
}

fn delete(view: &MirrorView) -> Request {
    Request::DeleteMirror {
        kind: KIND,
        key: view.key.clone(),
        uid: view.uid.clone(),
        resource_version: view.resource_version,
    }
}

#[tokio::test]
async fn a_create_finds_no_namespace_a_dry_run_leaves_nothing_and_a_name_is_taken_once() {
    let (mut world, worker) = (world("creates").await, Some("creates"));
    let key = JobKey::new("creates", "m");
    let good = object(&key, "n1");
    assert_eq!(
        refused(world.ask(worker, create(&key, &good, false)).await),
        RefusalKind::NamespaceNotFound
    );
    let namespace = Request::CreateNamespace { name: "creates".into() };
    accepted(&world.ask(worker, namespace.clone()).await);
    accepted(&world.ask(worker, namespace).await);
    let made = Api::<Namespace>::all(world.worker.clone())
        .get("creates")
        .await
        .unwrap();
    assert!(made.metadata.labels.unwrap().contains_key(names::CREATED_BY));

    accepted(&world.ask(worker, create(&key, &good, true)).await);
    assert_eq!(refused(world.ask(worker, get(&key)).await), RefusalKind::ObjectNotFound);
    let created = a_mirror(world.ask(worker, create(&key, &good, false)).await);
    assert_eq!(
        (created.state.asleep, created.nonce.as_str(), &created.key),
        (true, "n1", &key)
    );
    assert_eq!(
        refused(world.ask(worker, create(&key, &good, false)).await),
        RefusalKind::AlreadyExists
    );
    let other = JobKey::new("creates", "broken");
    let mut broken = object(&other, "n1");
    broken["spec"]["completions"] = json!(-1);
    assert_eq!(
        refused(world.ask(worker, create(&other, &broken, true)).await),
        RefusalKind::Invalid
    );

    let list = Request::ListPods {
        namespace: "creates".into(),
        job_uid: "j".into(),
    };
    for (name, uid) in [("a", "j"), ("b", "j"), ("c", "other")] {
        // A Pod names a service account, which no controller makes here in time.
        let member = pod(name).namespace("creates").label(names::JOB_UID, uid);
        bed::eventually(crate::world::LONG, "the namespace to take pods", || async {
            Ok(member.clone().create(&world.worker).await?)
        })
        .await
        .unwrap();
    }
    let counted = world.ask(worker, list).await;
    assert!(matches!(counted, Outcome::Done(Answer::Pods(2))), "{counted:?}");
}

#[tokio::test]
async fn a_release_is_bound_to_uid_and_nonce() {
    let (mut world, worker) = (world("releases").await, Some("releases"));
    create_namespace(&world.worker, "releases", false).await.unwrap();
    let key = JobKey::new("releases", "m");
    let created = a_mirror(world.ask(worker, create(&key, &object(&key, "n1"), false)).await);
    let patch = |patch| Request::JsonPatchMirror {
        kind: KIND,
        key: key.clone(),
        patch,
    };
    let release = |uid: &str, nonce: &str| patch(KIND.workload().release_patch(uid, nonce, "n2"));
    assert_eq!(
        refused(world.ask(worker, release("other", "n1")).await),
        RefusalKind::Conflict
    );
    assert_eq!(
        refused(world.ask(worker, release(&created.uid, "old")).await),
        RefusalKind::Conflict
    );
    let released = a_mirror(world.ask(worker, release(&created.uid, "n1")).await);
    assert_eq!((released.state.asleep, released.nonce.as_str()), (false, "n2"));
    assert_eq!(
        refused(world.ask(worker, release(&created.uid, "n1")).await),
        RefusalKind::Conflict
    );
    // A patch that applies, to something that is not valid, is no conflict.
    let invalid = patch(json!([{"op": "add", "path": "/spec/backoffLimit", "value": -1}]));
    assert_eq!(refused(world.ask(worker, invalid).await), RefusalKind::Invalid);
    let absent = Request::JsonPatchMirror {
        kind: KIND,
        key: JobKey::new("releases", "absent"),
        patch: json!([]),
    };
    assert_eq!(refused(world.ask(worker, absent).await), RefusalKind::ObjectNotFound);
}

#[tokio::test]
async fn a_stop_and_a_delete_are_bound_to_uid_and_version() {
    let (mut world, worker) = (world("stops").await, Some("stops"));
    create_namespace(&world.worker, "stops", false).await.unwrap();
    let key = JobKey::new("stops", "m");
    let created = a_mirror(world.ask(worker, create(&key, &object(&key, "n1"), false)).await);
    // Its controller writes too: what is refused as old is tried on what is there now.
    let stopped = loop {
        let now = a_mirror(world.ask(worker, get(&key)).await);
        match world.ask(worker, stop(&now)).await {
            Outcome::Done(Answer::Mirror(view)) => break *view,
            other => assert_eq!(refused(other), RefusalKind::Conflict),
        }
    };
    assert!(stopped.state.asleep && stopped.nonce == "n3");
    assert_eq!(refused(world.ask(worker, stop(&created)).await), RefusalKind::Conflict);
    let stranger = MirrorView {
        uid: Arc::from("other"),
        ..stopped.clone()
    };
    assert_eq!(
        refused(world.ask(worker, delete(&stranger)).await),
        RefusalKind::Conflict
    );
    assert_eq!(
        refused(world.ask(worker, delete(&created)).await),
        RefusalKind::Conflict
    );
    loop {
        let now = a_mirror(world.ask(worker, get(&key)).await);
        match world.ask(worker, delete(&now)).await {
            Outcome::Done(Answer::Accepted) => break,
            other => assert_eq!(refused(other), RefusalKind::Conflict),
        }
    }
    loop {
        match world.ask(worker, get(&key)).await {
            Outcome::Done(Answer::Mirror(view)) => assert!(view.deleting),
            other => break assert_eq!(refused(other), RefusalKind::ObjectNotFound),
        }
    }
}
