//! Which worker a job goes to.

use bed::JobBuilder;
use multikueue::api::job::Phase;
use serde_json::json;

use crate::fixture::{Submission, World, assignment, status};

/// Where a job runs.
async fn runs_on(world: &World, name: &str) -> String {
    assignment(&world.phase(name, Phase::Running).await).cluster
}

/// Selects nodes by a label of the world's own.
fn on_nodes(job: JobBuilder, key: &str, value: &str) -> JobBuilder {
    let pair = (key.to_owned(), value.to_owned());
    job.pod_spec(move |spec| {
        spec.node_selector.get_or_insert_default().extend([pair]);
    })
}

/// `eu` has the greater total, six GPUs, but two on a node; `us` has four on one.
#[tokio::test]
async fn real_room_on_nodes_decides_and_not_the_total() {
    let world = World::shared("real-room").await;
    for node in ["a", "b", "c"] {
        world.add_nodes(&world.eu, [world.node(node, 8)]).await;
        world.squatter(node, node, 6).create(&world.eu.client).await.unwrap();
    }
    world.add_nodes(&world.us, [world.node("d", 8)]).await;
    world.squatter("d", "d", 4).create(&world.us.client).await.unwrap();
    world.until_free(&world.eu, 6).await;
    world.until_free(&world.us, 4).await;

    world.submit_job(world.job("wide").gpus(4).forever()).await;
    assert_eq!(runs_on(&world, "wide").await, "us", "no node of eu has four free");
    world.submit_job(world.job("many").pods(3).gpus(2).forever()).await;
    assert_eq!(runs_on(&world, "many").await, "eu", "two on each of three nodes");
}

#[tokio::test]
async fn a_gang_goes_only_where_all_of_it_fits() {
    let world = World::shared("gang").await;
    let nodes = |names: &[&str]| -> Vec<_> { names.iter().map(|name| world.node(name, 8)).collect() };
    world.add_nodes(&world.eu, nodes(&["a", "b", "c"])).await;
    world.add_nodes(&world.us, nodes(&["d", "e", "f", "g"])).await;

    world.submit_job(world.job("first").pods(4).gpus(8).forever()).await;
    assert_eq!(runs_on(&world, "first").await, "us");
    world.submit_job(world.job("second").pods(4).gpus(8).forever()).await;
    let waiting = world
        .status_is("second", "says why it waits", |status| status.waiting.is_some())
        .await;
    let waiting = status(&waiting).waiting.unwrap();
    let of = |cluster: &str| {
        let found = waiting.nearest.iter().find(|nearest| nearest.cluster == cluster);
        found.unwrap_or_else(|| panic!("{waiting:?}"))
    };
    assert_eq!(
        of("eu").message,
        "24 nvidia.com/gpu free, at most 8 on one node; 4 pods of 8 needed, room for 3"
    );
    assert_eq!(of("eu").reason, "InsufficientDevices");
    assert_eq!(
        of("us").message,
        "0 nvidia.com/gpu free, at most 0 on one node; 4 pods of 8 needed, room for 0"
    );
    assert!(world.eu.find("second").await.is_none());

    world.add_nodes(&world.eu, nodes(&["h"])).await;
    assert_eq!(
        runs_on(&world, "second").await,
        "eu",
        "a fourth node makes room for all"
    );
}

#[tokio::test]
async fn a_node_selector_chooses_the_worker() {
    let world = World::shared("selector").await;
    world
        .add_nodes(&world.eu, [world.node("a", 8).label("chip", "small")])
        .await;
    world
        .add_nodes(&world.us, [world.node("b", 8).label("chip", "large")])
        .await;
    for (name, chip, worker) in [("small", "small", "eu"), ("large", "large", "us")] {
        let job = on_nodes(world.job(name).gpus(1).forever(), "chip", chip);
        world.submit_job(job).await;
        assert_eq!(runs_on(&world, name).await, worker);
    }
    world
        .submit_job(on_nodes(world.job("none").gpus(1), "chip", "absent"))
        .await;
    let waiting = world
        .status_is("none", "says why it waits", |status| status.waiting.is_some())
        .await;
    let waiting = status(&waiting).waiting.unwrap();
    assert_eq!(waiting.reasons.get("SelectorMismatch"), Some(&2), "{waiting:?}");
}

#[tokio::test]
async fn nodes_that_take_no_pods_do_not_count() {
    let world = World::shared("unusable").await;
    world.add_nodes(&world.eu, [world.node("a", 8).cordoned()]).await;
    let tainted = world.node("b", 8).taint("maintenance", "today", "NoSchedule");
    world.add_nodes(&world.us, [tainted]).await;
    world.submit_job(world.job("train").gpus(8).forever()).await;
    let waiting = world
        .status_is("train", "says why it waits", |status| status.waiting.is_some())
        .await;
    let waiting = status(&waiting).waiting.unwrap();
    // Nodes of other tests do not match: of its own, one is the reason on each worker.
    let said = |cluster: &str, part: &str| {
        let mut nearest = waiting.nearest.iter();
        nearest.any(|nearest| nearest.cluster == cluster && nearest.message.contains(part))
    };
    assert!(said("eu", "1 cordoned"), "{waiting:?}");
    assert!(said("us", "1 with a taint that is not tolerated"), "{waiting:?}");
    let node = format!("{}-a", world.name);
    let uncordoned = world.eu.plane.kubectl(&["uncordon", &node]).await.unwrap();
    assert!(uncordoned.status.success(), "{uncordoned:?}");
    assert_eq!(runs_on(&world, "train").await, "eu");
}

#[tokio::test]
async fn labels_of_workers_are_selected_and_preferred() {
    let world = World::shared("preferred").await;
    world.add_nodes(&world.eu, [world.node("a", 2)]).await;
    world.add_nodes(&world.us, [world.node("b", 8)]).await;
    let job = |name| Submission::of(world.job(name).gpus(1).forever());
    // Best fit would put both on the smaller block.
    world.submit(job("fit")).await;
    assert_eq!(runs_on(&world, "fit").await, "eu");
    world.submit(job("preferred").rather_on("us")).await;
    assert_eq!(runs_on(&world, "preferred").await, "us");
    world.submit(job("selected").only_on("us")).await;
    assert_eq!(runs_on(&world, "selected").await, "us");
    world.submit(job("full").rather_on("eu")).await;
    assert_eq!(runs_on(&world, "full").await, "eu");
    world.submit(job("spilled").rather_on("eu")).await;
    assert_eq!(runs_on(&world, "spilled").await, "us", "a preference is not a demand");
}

#[tokio::test]
async fn a_cordoned_or_tainted_worker_keeps_what_it_has_and_takes_nothing_new() {
    let world = World::own_joined("cordoned", &[]).await;
    world.add_nodes(&world.eu, [world.node("a", 8)]).await;
    let job = |name| Submission::of(world.job(name).gpus(1).forever()).only_on("eu");
    world.submit(job("before")).await;
    world.phase("before", Phase::Running).await;
    let pods = world.eu.pod_uids("before").await;

    world.change_cluster("eu", json!({"cordoned": true})).await;
    world
        .until("the cordon to be seen", || async {
            let cluster = world.clusters().get("eu").await?;
            let observed = cluster.status.map_or(0, |status| status.observed_generation);
            if Some(observed) == cluster.metadata.generation {
                Ok(())
            } else {
                Err(format!("generation {observed}").into())
            }
        })
        .await;
    world.submit(job("during")).await;
    let why = |reason: &'static str| {
        world.status_is("during", reason, move |status| {
            let waiting = status.waiting.as_ref();
            waiting.is_some_and(|waiting| waiting.reasons.contains_key(reason))
        })
    };
    why("Cordoned").await;
    let spec = json!({"cordoned": false, "taints": [{"key": "maintenance", "value": "now"}]});
    world.change_cluster("eu", spec).await;
    why("UntoleratedTaint").await;

    let tolerations = json!([{"key": "maintenance", "operator": "Exists"}]);
    let mut tolerant = job("tolerant");
    tolerant.0["spec"]["placement"]["tolerations"] = tolerations;
    world.submit(tolerant).await;
    world.phase("tolerant", Phase::Running).await;
    world.change_cluster("eu", json!({"taints": []})).await;
    world.phase("during", Phase::Running).await;
    assert_eq!(world.eu.pod_uids("before").await, pods);

    let spec = json!({"namespaces": {"allow": ["elsewhere"]}});
    world.change_cluster("eu", spec).await;
    world.submit(job("nowhere")).await;
    world
        .status_is("nowhere", "its namespace is not allowed", |status| {
            let waiting = status.waiting.as_ref();
            waiting.is_some_and(|waiting| waiting.reasons.contains_key("NamespaceNotAllowed"))
        })
        .await;
}
