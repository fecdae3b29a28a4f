//! What the operator did not create.

use k8s_openapi::api::core::v1::ResourceQuota;
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use multikueue::api::job::Phase;
use multikueue::api::names;
use serde_json::json;

use crate::fixture::{Site, Submission, World, assignment, status};

/// Somebody's Job, once it runs and its status has come to rest: what another then writes shows in its version.
async fn strangers_job(world: &World, site: &Site, label: Option<(&str, &str)>) -> (String, String) {
    let mut job = world.job("train").forever();
    if let Some((key, value)) = label {
        job = job.label(key, value);
    }
    job.create(&site.client).await.unwrap();
    world
        .until("the stranger's Job to run", || async {
            let status = site.mirror("train").await.status.unwrap_or_default();
            match (status.active, status.ready) {
                (Some(1), Some(1)) => Ok(()),
                _ => Err(format!("{status:?}").into()),
            }
        })
        .await;
    let meta = site.mirror("train").await.metadata;
    (meta.uid.unwrap(), meta.resource_version.unwrap())
}

async fn is_untouched(site: &Site, before: &(String, String)) {
    let meta = site.mirror("train").await.metadata;
    assert_eq!((meta.uid.unwrap(), meta.resource_version.unwrap()), *before);
    let audit = site.audit();
    let touched: Vec<_> = audit
        .iter()
        .filter(|entry| entry.resource == "jobs" && entry.is_change_by_the_operator())
        .collect();
    assert!(touched.is_empty(), "{touched:?}");
    // Not only refused by a precondition: never tried. A create that meets it is no harm.
    let tried: Vec<_> = audit
        .iter()
        .filter(|entry| entry.is_by_the_operator() && ["delete", "patch", "update"].contains(&entry.verb.as_str()))
        .collect();
    assert!(tried.is_empty(), "{tried:?}");
}

#[tokio::test]
async fn a_strangers_object_of_the_same_name_is_never_touched_and_another_worker_is_used() {
    let world = World::shared("stranger").await;
    world.add_nodes(&world.eu, [world.node("a", 1)]).await;
    world.add_nodes(&world.us, [world.node("b", 1)]).await;
    let stranger = strangers_job(&world, &world.eu, None).await;
    let job = Submission::of(world.job("train").gpus(1)).rather_on("eu");
    world.submit(job).await;
    let done = world.phase("train", Phase::Succeeded).await;
    assert_eq!(assignment(&done).cluster, "us");
    assert_eq!(status(&done).failed_attempts, 0);
    is_untouched(&world.eu, &stranger).await;
    world.delete("train").await;
    world.gone("train").await;
    is_untouched(&world.eu, &stranger).await;
}

#[tokio::test]
async fn a_job_whose_name_is_taken_everywhere_says_so_and_goes_once_it_is_free() {
    let world = World::shared("taken").await;
    world.add_nodes(&world.eu, [world.node("a", 1)]).await;
    let stranger = strangers_job(&world, &world.eu, None).await;
    world
        .submit(Submission::of(world.job("train").gpus(1)).only_on("eu"))
        .await;
    world
        .status_is("train", "its name is taken", |status| {
            let waiting = status.waiting.as_ref();
            waiting.is_some_and(|waiting| waiting.reasons.contains_key("NameTaken"))
        })
        .await;
    is_untouched(&world.eu, &stranger).await;
    let deleted = world.eu.jobs().delete("train", &DeleteParams::background()).await;
    deleted.unwrap();
    world.phase("train", Phase::Succeeded).await;
}

/// Labels alone prove nothing: anybody can write them.
#[tokio::test]
async fn an_object_that_only_pretends_to_be_ours_is_a_strangers() {
    let world = World::shared("pretender").await;
    world.add_nodes(&world.us, [world.node("a", 1)]).await;
    let pretender = strangers_job(&world, &world.us, Some((names::JOB_UID, "0000"))).await;
    world
        .submit(Submission::of(world.job("train").gpus(1)).only_on("us"))
        .await;
    world
        .status_is("train", "its name is taken", |status| {
            let waiting = status.waiting.as_ref();
            waiting.is_some_and(|waiting| waiting.reasons.contains_key("NameTaken"))
        })
        .await;
    is_untouched(&world.us, &pretender).await;
    world.delete("train").await;
    world.gone("train").await;
    is_untouched(&world.us, &pretender).await;
}

/// A quota of the worker's own, as any other word of its admission.
#[tokio::test]
async fn a_worker_that_refuses_the_object_is_quoted_and_another_is_used() {
    let world = World::shared("refused").await;
    world.add_nodes(&world.eu, [world.node("a", 2)]).await;
    world.add_nodes(&world.us, [world.node("b", 1)]).await;
    let quotas = Api::<ResourceQuota>::namespaced(world.eu.client.clone(), &world.name);
    let quota = json!({"metadata": {"name": "none"}, "spec": {"hard": {"count/jobs.batch": "0"}}});
    let quota: ResourceQuota = serde_json::from_value(quota).unwrap();
    quotas.create(&PostParams::default(), &quota).await.unwrap();
    world
        .until("the quota to count", || async {
            let status = quotas.get("none").await?.status.unwrap_or_default();
            status.used.map(drop).ok_or_else(|| "it does not yet".into())
        })
        .await;
    world
        .submit(Submission::of(world.job("train").gpus(1)).rather_on("eu"))
        .await;
    let done = world.phase("train", Phase::Succeeded).await;
    assert_eq!(
        (assignment(&done).cluster.as_str(), status(&done).failed_attempts),
        ("us", 0)
    );

    world
        .submit(Submission::of(world.job("only").gpus(1)).only_on("eu"))
        .await;
    let job = world
        .status_is("only", "is refused", |status| {
            let waiting = status.waiting.as_ref();
            waiting.is_some_and(|waiting| waiting.reasons.contains_key("Refused"))
        })
        .await;
    let waiting = status(&job).waiting.unwrap();
    let eu = waiting.nearest.iter().find(|nearest| nearest.cluster == "eu").unwrap();
    assert!(eu.message.contains("exceeded quota: none"), "{}", eu.message);
    quotas.delete("none", &DeleteParams::default()).await.unwrap();
    world.phase("only", Phase::Succeeded).await;
}
