//! Templates as people have them.

use multikueue::api::job::Phase;
use serde_json::{Value, json};

use crate::fixture::{Submission, World, assignment};

#[tokio::test]
async fn a_template_pasted_from_kubectl_get_job_works() {
    let world = World::shared("pasted").await;
    world.add_nodes(&world.eu, [world.node("a", 1)]).await;
    // Made and run by hand on the other worker: it carries uid, selector, controller labels, status, managed fields.
    world.add_nodes(&world.us, [world.node("b", 1)]).await;
    world.job("train").gpus(1).create(&world.us.client).await.unwrap();
    bed::wait_for_job(&world.us.client, &world.name, "train", "Complete", crate::fixture::SOON)
        .await
        .unwrap();
    let shown = world
        .us
        .plane
        .kubectl(&[
            "get",
            "job",
            "train",
            "-n",
            &world.name,
            "-o",
            "json",
            "--show-managed-fields",
        ])
        .await
        .unwrap();
    let template: Value = serde_json::from_str(&shown.stdout).unwrap();
    assert!(!template["status"].is_null() && !template["metadata"]["managedFields"].is_null());
    let mut job = Submission::of(world.job("copy")).only_on("eu");
    job.0["spec"]["template"] = template;
    world.submit(job).await;
    world.phase("copy", Phase::Succeeded).await;
    let mirror = world.eu.mirror("copy").await;
    let selector = mirror.spec.unwrap().selector.unwrap().match_labels.unwrap();
    assert_eq!(
        Some(&selector["batch.kubernetes.io/controller-uid"]),
        mirror.metadata.uid.as_ref(),
        "the worker made a selector of its own"
    );
}

#[tokio::test]
async fn what_another_would_act_on_is_left_out_of_the_mirror() {
    let world = World::shared("stripped").await;
    world.add_nodes(&world.eu, [world.node("a", 1)]).await;
    let mut job = Submission::of(world.job("train").gpus(1).forever().suspended());
    let template = &mut job.0["spec"]["template"];
    template["metadata"] = json!({
        "name": "another", "namespace": "another",
        "labels": {"kueue.x-k8s.io/queue-name": "q", "team": "a"},
        "finalizers": ["example.com/hold"],
        "ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "gone", "uid": "0"}],
    });
    template["spec"]["managedBy"] = "kueue.x-k8s.io/multikueue".into();
    template["spec"]["ttlSecondsAfterFinished"] = 0.into();
    world.submit(job).await;
    // `suspend` of the template is not the switch: the job's own is.
    world.phase("train", Phase::Running).await;
    let mirror = world.eu.mirror("train").await;
    let (meta, spec) = (mirror.metadata, mirror.spec.unwrap());
    let labels = meta.labels.unwrap();
    assert_eq!(labels.get("kueue.x-k8s.io/queue-name"), None);
    assert_eq!(labels.get("team").map(String::as_str), Some("a"));
    assert_eq!(meta.owner_references, None);
    assert!(
        !meta
            .finalizers
            .unwrap_or_default()
            .contains(&"example.com/hold".to_owned())
    );
    assert_eq!((spec.managed_by, spec.ttl_seconds_after_finished), (None, None));
    assert_eq!(spec.suspend, Some(false));
}

#[tokio::test]
async fn a_field_that_no_type_of_ours_knows_stops_nothing_and_stays_as_it_was_written() {
    let world = World::shared("unknown-field").await;
    world.add_nodes(&world.us, [world.node("a", 1)]).await;
    let mut job = Submission::of(world.job("train").gpus(1));
    let spec = &mut job.0["spec"]["template"]["spec"];
    spec["futureKnob"] = json!({"level": 11});
    spec["template"]["spec"]["futurePodKnob"] = "yes".into();
    world.submit(job).await;
    let done = world.phase("train", Phase::Succeeded).await;
    let template = done.spec.template.to_value();
    assert_eq!(template["spec"]["futureKnob"]["level"], 11);
    assert_eq!(template["spec"]["template"]["spec"]["futurePodKnob"], "yes");
}

#[tokio::test]
async fn an_indexed_gang_runs_to_its_end() {
    let world = World::shared("indexed").await;
    world.add_nodes(&world.eu, [world.node("a", 4)]).await;
    let job = world.job("train").pods(4).gpus(1).run_seconds(2);
    let job = job.spec(|spec| spec.completion_mode = Some("Indexed".to_owned()));
    world.submit_job(job).await;
    world.phase("train", Phase::Running).await;
    world.phase("train", Phase::Succeeded).await;
    let status = world.eu.mirror("train").await.status.unwrap();
    assert_eq!(status.completed_indexes.as_deref(), Some("0-3"));
}

#[tokio::test]
async fn a_name_as_long_as_a_name_may_be_works() {
    let world = World::shared("long-name").await;
    world.add_nodes(&world.eu, [world.node("a", 1)]).await;
    let name = "n".repeat(63);
    world.submit_job(world.job(&name).gpus(1)).await;
    world.phase(&name, Phase::Succeeded).await;
    world.delete(&name).await;
    world.gone(&name).await;
    world.nothing_left().await;
}

/// A sidecar is an init container that goes on: its device counts beside the container's.
#[tokio::test]
async fn a_sidecar_counts_and_ends_with_its_pod() {
    let world = World::shared("sidecar").await;
    world.add_nodes(&world.eu, [world.node("a", 1)]).await;
    world.add_nodes(&world.us, [world.node("b", 2)]).await;
    let sidecar = json!({
        "name": "sidecar", "image": "registry.invalid/sidecar:1", "restartPolicy": "Always",
        "resources": {"limits": {"nvidia.com/gpu": "1"}},
    });
    let job = world
        .job("train")
        .gpus(1)
        .pod_spec(|pod| pod.init_containers = Some(vec![serde_json::from_value(sidecar).unwrap()]));
    world.submit_job(job).await;
    let done = world.phase("train", Phase::Succeeded).await;
    assert_eq!(assignment(&done).cluster, "us", "two devices on one node");
}
