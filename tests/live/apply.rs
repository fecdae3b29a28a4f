//! `kubectl apply` and tools that compare what is there with what was written.

use multikueue::api::job::Phase;
use serde_json::Value;

use crate::fixture::{Submission, World, status};

#[tokio::test]
async fn applying_the_same_file_again_changes_nothing_and_shows_no_difference() {
    let world = World::shared("apply").await;
    world.add_nodes(&world.eu, [world.node("a", 1)]).await;
    let file = Submission::of(world.job("train").gpus(1).forever()).yaml();
    let kubectl = async |args: &[&str]| world.manager.kubectl_with_input(args, &file).await.unwrap();
    let created = kubectl(&["apply", "-f", "-"]).await;
    assert!(created.stdout.contains("created"), "{created:?}");
    let before = world.phase("train", Phase::Running).await;
    let mirror = world.at_rest(&world.eu, "train").await;
    let theirs = serde_json::to_value(&mirror.status).unwrap();
    let mirror = mirror.metadata.resource_version;
    world
        .status_is("train", "says what its worker says", |status| {
            status
                .mirror_status
                .as_ref()
                .is_some_and(|ours| ours.to_value() == theirs)
        })
        .await;

    let difference = kubectl(&["diff", "-f", "-"]).await;
    assert!(difference.status.success(), "{difference:?}");
    assert_eq!(difference.stdout, "");
    let again = kubectl(&["apply", "-f", "-"]).await;
    assert!(again.stdout.contains("unchanged"), "{again:?}");
    let again = kubectl(&["apply", "--server-side", "--force-conflicts", "-f", "-"]).await;
    assert!(again.status.success(), "{again:?}");
    let after = world.get("train").await;
    assert_eq!(after.metadata.generation, Some(1));
    assert_eq!(after.spec, before.spec);
    world
        .stays("job and mirror", || async {
            let now = world.eu.mirror("train").await.metadata.resource_version;
            let job = world.get("train").await;
            if now == mirror && job.metadata.resource_version == after.metadata.resource_version {
                Ok(())
            } else {
                Err(format!("{now:?} {:?}", status(&job)).into())
            }
        })
        .await;
}

#[tokio::test]
async fn of_a_users_object_the_operator_owns_status_and_finalizer_only() {
    let world = World::shared("owned").await;
    world.add_nodes(&world.us, [world.node("a", 1)]).await;
    world.submit_job(world.job("train").gpus(1)).await;
    let job = world.phase("train", Phase::Succeeded).await;
    assert_eq!(job.metadata.generation, Some(1), "the spec was written once");
    let fields = job.metadata.managed_fields.unwrap();
    let mut ours = fields
        .iter()
        .filter(|entry| entry.manager.as_deref() == Some(multikueue::api::names::MANAGER))
        .peekable();
    assert!(ours.peek().is_some(), "{fields:?}");
    for entry in ours {
        let owned = entry.fields_v1.as_ref().unwrap().0.as_object().unwrap();
        let metadata = owned.get("f:metadata").and_then(Value::as_object);
        let in_metadata: Vec<_> = metadata.into_iter().flatten().map(|(key, _)| key.as_str()).collect();
        assert!(
            owned
                .keys()
                .all(|key| ["f:metadata", "f:status"].contains(&key.as_str())),
            "{owned:?}"
        );
        assert!(in_metadata.iter().all(|key| *key == "f:finalizers"), "{in_metadata:?}");
    }
}

/// Argo CD and Flux wait for what kstatus calls current; `kubectl wait` for a condition.
#[tokio::test]
async fn kubectl_wait_sees_a_job_become_ready() {
    let world = World::shared("wait").await;
    world.add_nodes(&world.eu, [world.node("a", 1)]).await;
    world.submit_job(world.job("train").gpus(1)).await;
    let waited = world
        .manager
        .kubectl(&[
            "wait",
            "multikueuejob/train",
            "-n",
            &world.name,
            "--for=jsonpath={.status.phase}=Succeeded",
            "--timeout=60s",
        ])
        .await
        .unwrap();
    assert!(waited.status.success(), "{waited:?}");
    let waited = world
        .manager
        .kubectl(&[
            "wait",
            "mkj/train",
            "-n",
            &world.name,
            "--for=condition=Ready",
            "--timeout=5s",
        ])
        .await
        .unwrap();
    assert!(waited.status.success(), "{waited:?}");
}
