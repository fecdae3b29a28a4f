//! One job from `kubectl apply` to its result.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::events::v1::Event;
use kube::api::ListParams;
use kube::{Api, Client};
use multikueue::api::job::{AttemptOutcome, Phase};
use multikueue::api::{MultiKueueJob, names};

use crate::fixture::{World, assignment, status};

async fn kube_system_uid(client: &Client) -> String {
    let namespace = Api::<Namespace>::all(client.clone()).get("kube-system").await;
    namespace.unwrap().metadata.uid.unwrap()
}

fn conditions(job: &MultiKueueJob) -> Vec<(String, String)> {
    let conditions = status(job).conditions.into_iter();
    let mut all: Vec<_> = conditions.map(|c| (c.type_, c.status)).collect();
    all.sort();
    all
}

fn pairs(all: &[(&str, &str)]) -> Vec<(String, String)> {
    let own = |(type_, status): &(&str, &str)| ((*type_).to_owned(), (*status).to_owned());
    all.iter().map(own).collect()
}

#[tokio::test]
async fn a_job_applied_on_the_manager_runs_on_a_worker_and_its_result_comes_back() {
    let world = World::shared("life").await;
    world.add_nodes(&world.eu, [world.node("a", 8)]).await;
    world.submit_job(world.job("train").gpus(8).run_seconds(2)).await;

    let running = world.phase("train", Phase::Running).await;
    assert_eq!(
        conditions(&running),
        pairs(&[("Dispatched", "True"), ("Ready", "True"), ("StatusFresh", "True")])
    );
    assert!(status(&running).start_time.is_some());

    let done = world.phase("train", Phase::Succeeded).await;
    let (now, on) = (status(&done), assignment(&done));
    let mirror = world.eu.mirror("train").await;
    assert_eq!((on.cluster.as_str(), on.number, on.run), ("eu", 1, 1));
    assert_eq!(on.mirror_uid, mirror.metadata.uid);
    assert_eq!(on.cluster_uid, kube_system_uid(&world.eu.client).await);
    let theirs = mirror.status.clone().unwrap();
    assert_eq!(now.start_time, theirs.start_time);
    assert_eq!(now.completion_time, theirs.completion_time);
    assert_eq!(now.mirror_status.unwrap().to_value()["succeeded"], 1);
    assert_eq!(Some(now.observed_generation), done.metadata.generation);
    assert_eq!(
        conditions(&done),
        pairs(&[("Dispatched", "True"), ("Ready", "True"), ("StatusFresh", "True")])
    );
    let [attempt] = &now.attempts[..] else {
        panic!("{:?}", now.attempts)
    };
    assert_eq!(
        (attempt.cluster.as_str(), attempt.outcome),
        ("eu", AttemptOutcome::Succeeded)
    );
    assert!(world.us.find("train").await.is_none(), "one worker, and one only");
}

#[tokio::test]
async fn a_mirror_says_whose_it_is_and_so_do_its_pods() {
    let world = World::shared("marks").await;
    world.add_nodes(&world.us, [world.node("a", 1)]).await;
    let job = world
        .submit_job(world.job("train").gpus(1).label("team", "a").forever())
        .await;
    world.phase("train", Phase::Running).await;
    let mirror = world.us.mirror("train").await;
    let (labels, annotations) = (mirror.metadata.labels.unwrap(), mirror.metadata.annotations.unwrap());
    let uid = job.metadata.uid.unwrap();
    assert_eq!(labels["team"], "a", "labels of the template travel");
    assert_eq!(labels[names::JOB_UID], uid);
    assert_eq!(labels[names::ORIGIN].len(), 16);
    assert_eq!(annotations[names::ORIGIN_NAME], "hub");
    assert_eq!(annotations[names::RUN], "1");
    assert_eq!(annotations[names::ATTEMPT], "1");
    assert_eq!(annotations[names::MANAGER_UID], kube_system_uid(&world.client).await);
    assert_eq!(annotations[names::CLUSTER_UID], kube_system_uid(&world.us.client).await);
    let pod = world.us.pods_of("train").await.remove(0);
    assert_eq!(pod.metadata.labels.unwrap()[names::JOB_UID], uid);
}

#[tokio::test]
async fn events_tell_the_life_of_a_job() {
    let world = World::shared("events").await;
    world.add_nodes(&world.eu, [world.node("a", 1)]).await;
    world.submit_job(world.job("train").gpus(1)).await;
    world.phase("train", Phase::Succeeded).await;
    let events = Api::<Event>::namespaced(world.client.clone(), &world.name);
    let wanted: BTreeSet<_> = ["Assigned", "Released", "Succeeded"].map(str::to_owned).into();
    world
        .until("the events", || async {
            let all = events.list(&ListParams::default()).await?.items;
            let about_it = all.iter().filter(|event| {
                let about = event.regarding.as_ref();
                about.is_some_and(|about| about.name.as_deref() == Some("train"))
            });
            let reasons: BTreeSet<_> = about_it.filter_map(|event| event.reason.clone()).collect();
            if reasons.is_superset(&wanted) {
                Ok(())
            } else {
                Err(format!("{reasons:?}").into())
            }
        })
        .await;
}
