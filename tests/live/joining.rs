//! Joining workers: kubeconfigs, rights, identity.

use bed::{Kubeconfig, apply_yaml};
use kube::api::{DeleteParams, DynamicObject};
use multikueue::api::job::Phase;
use serde_json::json;

use crate::fixture::{Entry, Join, Site, World, assignment, operator_on, status};

/// A role that lacks something, for an account of its own.
fn role(account: &str, world: &str, rules: &str) -> String {
    format!(
        "
apiVersion: v1
kind: ServiceAccount
metadata: {{name: {account}, namespace: {world}}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {{name: {world}-{account}}}
rules:
- {{apiGroups: [''], resources: [namespaces], verbs: [get]}}
- {{apiGroups: [authorization.k8s.io], resources: [selfsubjectaccessreviews], verbs: [create]}}
- {{apiGroups: [node.k8s.io], resources: [runtimeclasses], verbs: [list, watch]}}
- {{apiGroups: [coordination.k8s.io], resources: [leases], verbs: [get, create, update]}}
{rules}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {{name: {world}-{account}}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: {world}-{account}}}
subjects:
- {{kind: ServiceAccount, name: {account}, namespace: {world}}}
"
    )
}

async fn account(world: &World, site: &Site, name: &str, rules: &str) -> Kubeconfig {
    let applied: Vec<DynamicObject> = apply_yaml(&site.client, &role(name, &world.name, rules)).await.unwrap();
    assert_eq!(applied.len(), 3);
    site.plane.kubeconfig_service_account(&world.name, name).await.unwrap()
}

/// Replaces the value of one key in a kubeconfig's YAML.
fn with(kubeconfig: &Kubeconfig, key: &str, value: &str) -> String {
    let text = kubeconfig.to_string();
    let replaced: Vec<_> = text
        .lines()
        .map(|line| match line.split_once(&format!("{key}:")) {
            Some((indent, _)) => format!("{indent}{key}: {value}"),
            None => line.to_owned(),
        })
        .collect();
    let replaced = replaced.join("\n");
    assert_ne!(replaced, text, "no {key} in it");
    replaced
}

fn value(kubeconfig: &Kubeconfig, key: &str) -> String {
    let text = kubeconfig.to_string();
    let found = text
        .lines()
        .find_map(|line| line.trim().strip_prefix(&format!("{key}: ")));
    found.unwrap().to_owned()
}

#[tokio::test]
async fn a_kubeconfig_that_cannot_work_is_named_precisely_and_its_correction_is_seen() {
    let world = World::own("kubeconfigs").await;
    world.operator().start().await;
    let (eu, us) = (operator_on(&world.eu.plane).await, operator_on(&world.us.plane).await);
    let touched = world.manager.folder().join("touched-by-the-operator");
    let exec = format!(
        "exec: {{apiVersion: client.authentication.k8s.io/v1, command: touch, args: ['{}']}}",
        touched.display()
    );
    let token = format!("token: {}", value(&eu, "token"));
    let program = eu.to_string().replace(&token, &exec);
    let cases = [
        ("program", program, "InvalidKubeconfig"),
        ("not-yaml", "{".to_owned(), "InvalidKubeconfig"),
        (
            "stranger",
            with(
                &eu,
                "certificate-authority-data",
                &value(&us, "certificate-authority-data"),
            ),
            "UnknownAuthority",
        ),
        ("nobody", with(&eu, "token", "nonsense"), "Unauthorized"),
        (
            "other-host",
            eu.clone().with_tls_server_name("elsewhere.example").to_string(),
            "HostNameMismatch",
        ),
        (
            "nothing-there",
            eu.clone().with_server("https://127.0.0.1:9").to_string(),
            "ConnectionRefused",
        ),
        (
            "no-name",
            eu.clone().with_server("https://nowhere.invalid:6443").to_string(),
            "NameResolutionFailed",
        ),
    ];
    for (name, kubeconfig, _) in &cases {
        world.join_as(name, kubeconfig, json!({}), "nowhere").await;
    }
    for (name, _, reason) in &cases {
        let message = world.cluster_says(name, "Connected", "False", reason).await;
        assert!(!message.is_empty(), "{name}");
    }
    assert!(!touched.exists(), "a program of the kubeconfig was run");

    // What was wrong is put right, and the operator needs no restart and no patience.
    world.put_secret("nobody", "kubeconfig", &eu.to_string()).await;
    world.connected("nobody").await;
}

#[tokio::test]
async fn a_secret_that_is_missing_is_named_and_its_creation_is_seen() {
    let world = World::own("secrets").await;
    world.operator().start().await;
    let kubeconfig = operator_on(&world.us.plane).await.to_string();
    world.join_as("us", &kubeconfig, json!({}), "us").await;
    world.connected("us").await;
    let source = |name: &str, key: &str| json!({"kubeconfig": {"secretRef": {"name": name, "key": key}}});
    world.change_cluster("us", source("absent", "kubeconfig")).await;
    let message = world.cluster_says("us", "Connected", "False", "SecretNotFound").await;
    assert!(message.contains("absent"), "{message}");
    world.put_secret("absent", "other", &kubeconfig).await;
    let message = world
        .cluster_says("us", "Connected", "False", "SecretKeyNotFound")
        .await;
    assert!(message.contains("kubeconfig"), "{message}");
    world.change_cluster("us", source("absent", "other")).await;
    world.connected("us").await;
}

#[tokio::test]
async fn rights_that_are_missing_are_named() {
    let world = World::own("rights").await;
    world.operator().start().await;
    let jobs = "- {apiGroups: [batch], resources: [jobs], verbs: [get, list, watch, create, patch, delete]}";
    let no_nodes = "- {apiGroups: [''], resources: [pods], verbs: [list, watch]}";
    let all = "- {apiGroups: [''], resources: [nodes, pods], verbs: [list, watch]}";
    let few_jobs = "- {apiGroups: [batch], resources: [jobs], verbs: [get, list, watch, create]}";
    let blind = account(&world, &world.eu, "blind", &format!("{jobs}\n{no_nodes}")).await;
    let weak = account(&world, &world.us, "weak", &format!("{few_jobs}\n{all}")).await;
    world.join(&world.eu, Join::with(blind)).await;
    world.join(&world.us, Join::with(weak)).await;

    let message = world
        .cluster_says("us", "Authorized", "False", "PermissionsMissing")
        .await;
    assert!(
        message.contains("patch jobs") && message.contains("delete jobs"),
        "{message}"
    );
    // Without nodes nothing is known of its room; the rest works.
    let message = world.cluster_says("eu", "Authorized", "True", "Authorized").await;
    assert!(
        message.contains("list nodes") && message.contains("watch nodes"),
        "{message}"
    );
    let message = world.cluster_says("eu", "CapacityKnown", "False", "WatchFailed").await;
    assert!(message.contains("nodes"), "{message}");

    world.submit_job(world.job("train").request("cpu", "1")).await;
    let job = world
        .status_is("train", "says why it waits", |status| {
            let waiting = status.waiting.as_ref();
            waiting.is_some_and(|waiting| {
                waiting.reasons.contains_key("NotAuthorized") && waiting.reasons.contains_key("CapacityUnknown")
            })
        })
        .await;
    assert_eq!(status(&job).phase, Phase::Queued);
}

#[tokio::test]
async fn a_cluster_that_is_joined_twice_is_used_once_and_the_other_inherits_its_jobs() {
    let world = World::own("twice").await;
    world.operator().start().await;
    let kubeconfig = operator_on(&world.eu.plane).await;
    world.join(&world.eu, Join::with(kubeconfig.clone())).await;
    world.connected("eu").await;
    // Ages are whole seconds.
    tokio::time::sleep(std::time::Duration::from_millis(1100)).await;
    world.join_as("again", &kubeconfig.to_string(), json!({}), "eu").await;
    let message = world
        .cluster_says("again", "Connected", "False", "DuplicateCluster")
        .await;
    assert!(message.contains("eu"), "{message}");
    world.add_nodes(&world.eu, [world.node("a", 1)]).await;
    world.submit_job(world.job("train").gpus(1).run_seconds(15)).await;
    let running = world.phase("train", Phase::Running).await;
    assert_eq!(assignment(&running).cluster, "eu");
    let pods = world.eu.pod_uids("train").await;

    let deleted = world.clusters().delete("eu", &DeleteParams::default()).await;
    deleted.unwrap();
    world
        .until("the first to go", || async {
            match world.clusters().get_opt("eu").await? {
                None => Ok(()),
                Some(cluster) => Err(format!("{:?}", cluster.metadata).into()),
            }
        })
        .await;
    world.connected("again").await;
    assert_eq!(
        status(&world.get("train").await).phase,
        Phase::Running,
        "it waited for its job"
    );
    assert_eq!(world.eu.pod_uids("train").await, pods);
    let done = world.phase("train", Phase::Succeeded).await;
    assert_eq!(status(&done).last_attempt, 1);
}

#[tokio::test]
async fn a_workercluster_goes_at_once_without_jobs_and_after_them_with_some() {
    let world = World::own_joined("leaving", &[]).await;
    world.add_nodes(&world.eu, [world.node("a", 1)]).await;
    world.submit_job(world.job("train").gpus(1).forever()).await;
    world.phase("train", Phase::Running).await;
    for name in ["eu", "us"] {
        let deleted = world.clusters().delete(name, &DeleteParams::default()).await;
        deleted.unwrap();
    }
    let there = async |name: &str| world.clusters().get_opt(name).await.unwrap().is_some();
    world
        .until("the empty one to go", || async {
            if there("us").await {
                Err("it is there".into())
            } else {
                Ok(())
            }
        })
        .await;
    world
        .stays("the other, with its job", || async {
            match (there("eu").await, status(&world.get("train").await).phase) {
                (true, Phase::Running) => Ok(()),
                other => Err(format!("{other:?}").into()),
            }
        })
        .await;
    world.delete("train").await;
    world.gone("train").await;
    world.nothing_left().await;
    world
        .until("the other to go", || async {
            if there("eu").await {
                Err("it is there".into())
            } else {
                Ok(())
            }
        })
        .await;
}

/// The old way is cut afterwards, so that only the new one can bring the result.
#[tokio::test]
async fn a_rotated_kubeconfig_is_used_and_nothing_that_runs_is_touched() {
    let world = World::own("rotated").await;
    world.operator().start().await;
    let (old, new) = (
        world.fleet.bed.link(&world.eu.plane).await.unwrap(),
        world.fleet.bed.link(&world.eu.plane).await.unwrap(),
    );
    let before = operator_on(&world.eu.plane).await.via(&old);
    world.join(&world.eu, Join::with(before)).await;
    world.connected("eu").await;
    world.add_nodes(&world.eu, [world.node("a", 2)]).await;
    world.submit_job(world.job("train").gpus(1).forever()).await;
    world.submit_job(world.job("short").gpus(1).run_seconds(10)).await;
    world.phase("train", Phase::Running).await;
    world.phase("short", Phase::Running).await;
    let mirror = world.at_rest(&world.eu, "train").await;
    let pods = world.eu.pod_uids("train").await;

    let after = operator_on(&world.eu.plane).await.via(&new);
    world.put_secret("eu", "kubeconfig", &after.to_string()).await;
    old.black_hole().await.unwrap();
    world.phase("short", Phase::Succeeded).await;
    world.submit_job(world.job("next").gpus(1)).await;
    world.phase("next", Phase::Succeeded).await;
    world.connected("eu").await;
    let now = world.eu.mirror("train").await;
    assert_eq!(now.metadata.uid, mirror.metadata.uid);
    assert_eq!(now.metadata.resource_version, mirror.metadata.resource_version);
    assert_eq!(world.eu.pod_uids("train").await, pods);
    assert_eq!(status(&world.get("train").await).last_attempt, 1);
}

#[tokio::test]
async fn another_cluster_behind_the_same_name_is_noticed_and_left_alone() {
    let world = World::own("identity").await;
    world.operator().start().await;
    let (eu, us) = (operator_on(&world.eu.plane).await, operator_on(&world.us.plane).await);
    world.join(&world.eu, Join::with(eu.clone())).await;
    world.connected("eu").await;
    world.add_nodes(&world.eu, [world.node("a", 2)]).await;
    bed::create_nodes(&world.us.client, [world.node("b", 2)]).await.unwrap();
    world.submit_job(world.job("train").gpus(1).forever()).await;
    world.phase("train", Phase::Running).await;
    let pods = world.eu.pod_uids("train").await;

    world.put_secret("eu", "kubeconfig", &us.to_string()).await;
    let message = world.cluster_says("eu", "Connected", "False", "IdentityChanged").await;
    assert!(!message.is_empty());
    world.submit_job(world.job("next").gpus(1)).await;
    world
        .status_is("next", "says why it waits", |status| {
            let waiting = status.waiting.as_ref();
            waiting.is_some_and(|waiting| waiting.reasons.contains_key("IdentityChanged"))
        })
        .await;
    world.put_secret("eu", "kubeconfig", &eu.to_string()).await;
    world.connected("eu").await;
    world.phase("next", Phase::Succeeded).await;
    assert_eq!(world.eu.pod_uids("train").await, pods);
    assert_eq!(status(&world.get("train").await).phase, Phase::Running);
    let elsewhere: Vec<_> = world
        .us
        .audit()
        .into_iter()
        .filter(Entry::is_change_by_the_operator)
        .collect();
    assert!(elsewhere.is_empty(), "{elsewhere:?}");
}

#[tokio::test]
async fn a_kubeconfig_that_is_rewritten_all_the_time_disturbs_no_job() {
    let world = World::own_joined("rewritten", &[]).await;
    world.add_nodes(&world.eu, [world.node("a", 4)]).await;
    let names: Vec<_> = (0..20).map(|number| format!("job-{number}")).collect();
    for name in &names {
        world.submit_job(world.job(name).gpus(1).run_seconds(0)).await;
        let kubeconfig = operator_on(&world.eu.plane).await;
        world.put_secret("eu", "kubeconfig", &kubeconfig.to_string()).await;
    }
    for name in &names {
        let done = status(&world.phase(name, Phase::Succeeded).await);
        assert_eq!(done.failed_attempts, 0, "{name}");
    }
    let creations = world.eu.creations();
    assert!(creations.values().all(|times| *times == 1), "{creations:?}");
}

/// Two managers that were given one origin: each must see that it is not alone, before it takes the other's mirrors for its own.
#[tokio::test]
async fn a_second_manager_of_the_same_origin_is_told_so_and_touches_nothing() {
    let (first, second) = (World::own("clash").await, World::own("clash-2").await);
    let (eu, us) = (operator_on(&first.eu.plane).await, operator_on(&first.us.plane).await);
    first.operator().start().await;
    first.join(&first.eu, Join::with(eu.clone())).await;
    first.connected("eu").await;
    first.add_nodes(&first.eu, [first.node("a", 1)]).await;
    first.submit_job(first.job("train").gpus(1).forever()).await;
    first.phase("train", Phase::Running).await;
    let mirror = first.at_rest(&first.eu, "train").await;

    let intruder = second.operator_of("clash");
    intruder.start().await;
    second.join(&second.eu, Join::with(eu)).await;
    second.join(&second.us, Join::with(us)).await;
    let message = second.cluster_says("eu", "Authorized", "False", "OriginClash").await;
    assert!(message.contains("origin"), "{message}");
    second.connected("us").await;
    first
        .stays("the first manager's job", || async {
            let now = first.eu.mirror("train").await.metadata;
            if (&now.uid, &now.resource_version) == (&mirror.metadata.uid, &mirror.metadata.resource_version) {
                Ok(())
            } else {
                Err(format!("{now:?}").into())
            }
        })
        .await;
    first.connected("eu").await;
    assert_eq!(status(&first.get("train").await).phase, Phase::Running);
}
