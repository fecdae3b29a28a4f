//! What a link says of its worker.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::path::Path;
use std::time::Duration;

use bed::{apply_yaml, create_namespace, gpu_node, job, pod};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams};
use multikueue::api::{WorkerCluster, names};
use multikueue::dispatcher::event::Access;
use multikueue::dispatcher::{Event, LinkEvent, WorkerEvent};
use serde_json::json;

use crate::world::{ORIGIN, World, bed, service_account};

/// Name, kubeconfig, reason and a part of the sentence.
type Case = (&'static str, String, &'static str, &'static str);

/// Everything that can be wrong with a kubeconfig or with what it leads to.
async fn cases(world: &World, touched: &Path) -> Vec<Case> {
    let good = service_account(world).await;
    let nobody = "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: nobody, namespace: default}\n";
    apply_yaml(&world.worker, nobody).await.unwrap();
    let nobody = world.eu.kubeconfig_service_account("default", "nobody").await.unwrap();
    let expired = world
        .eu
        .kubeconfig_client_certificate("late", None, Duration::ZERO)
        .unwrap();
    let silent = bed().await.link(&world.eu).await.unwrap();
    silent.black_hole().await.unwrap();
    let resetting = bed().await.link(&world.eu).await.unwrap();
    resetting.reset().await.unwrap();
    // A port that was free a moment ago, and whose listener is gone.
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let text = good.to_string();
    let token = text.lines().find(|line| line.contains("token:")).unwrap().to_owned();
    let exec = format!(
        "    exec: {{apiVersion: client.authentication.k8s.io/v1, command: /bin/touch, args: [{}]}}",
        touched.display()
    );

    vec![
        (
            "r-ca",
            world
                .manager
                .kubeconfig()
                .clone()
                .with_server(world.eu.server())
                .to_string(),
            "UnknownAuthority",
            "give the CA",
        ),
        (
            "r-name",
            good.clone().with_tls_server_name("api.internal").to_string(),
            "HostNameMismatch",
            "kubernetes.default.svc",
        ),
        (
            "r-token",
            text.replace(&token, "    token: nonsense"),
            "Unauthorized",
            "401",
        ),
        ("r-expired", expired.to_string(), "CertificateExpired", "new kubeconfig"),
        ("r-rights", nobody.to_string(), "Forbidden", "namespaces"),
        (
            "r-closed",
            good.clone().with_server(format!("https://{closed}")).to_string(),
            "ConnectionRefused",
            "nothing listens",
        ),
        ("r-silent", good.clone().via(&silent).to_string(), "Timeout", "in time"),
        (
            "r-reset",
            good.clone().via(&resetting).to_string(),
            "ConnectionLost",
            "cut",
        ),
        // A label of 64 characters is no name: the resolver says so without asking anybody.
        (
            "r-dns",
            good.clone()
                .with_server(format!("https://{}.test:6443", "a".repeat(64)))
                .with_tls_server_name("kubernetes.default.svc")
                .to_string(),
            "NameResolutionFailed",
            "host name",
        ),
        ("r-exec", text.replace(&token, &exec), "InvalidKubeconfig", "exec"),
        ("r-empty", String::new(), "InvalidKubeconfig", "empty"),
    ]
}

#[tokio::test]
async fn each_failure_has_its_reason_and_a_sentence_that_helps() {
    let mut world = World::start("reasons").await;
    let touched = std::env::temp_dir().join(format!("rim-exec-{}", std::process::id()));
    let cases = cases(&world, &touched).await;
    for (name, kubeconfig, ..) in &cases {
        world.add(name, kubeconfig).await;
    }
    world.worker_cluster("r-secret", "absent", "kubeconfig").await;
    world.worker_cluster("r-key", "r-ca", "config").await;
    let mut wanted: BTreeMap<_, _> = cases
        .iter()
        .map(|(name, _, reason, hint)| (*name, (*reason, *hint)))
        .collect();
    wanted.insert("r-secret", ("SecretNotFound", "absent"));
    wanted.insert("r-key", ("SecretKeyNotFound", "config"));

    let mut said = BTreeMap::new();
    while said.len() < wanted.len() {
        let (name, reason, message) = world
            .until(|event| match event {
                Event::Worker {
                    name,
                    event: WorkerEvent::Link(link),
                    ..
                } if name.starts_with("r-") => Some(match link {
                    LinkEvent::Down { reason, message } => (name.to_string(), reason.clone(), message.clone()),
                    LinkEvent::Up { .. } => panic!("{name} is up"),
                }),
                _ => None,
            })
            .await;
        said.insert(name, (reason, message));
    }
    for (name, (reason, hint)) in wanted {
        let (found, message) = &said[name];
        assert_eq!(found, reason, "{name}: {message}");
        assert!(message.contains(hint), "{name}: {message}");
    }
    assert!(!touched.exists(), "a program was run");
}

/// Rights, nodes, pods, runtime classes and mirrors, in any order.
async fn first_words(world: &mut World, worker: &str) -> Access {
    let (mut access, mut listed) = (None, 0);
    while access.is_none() || listed < 4 {
        world
            .worker_says(worker, |event| match event {
                WorkerEvent::Access(seen) => {
                    access = Some(seen.clone());
                    Some(())
                }
                WorkerEvent::NodesListed(_)
                | WorkerEvent::PodsListed(_)
                | WorkerEvent::RuntimeClasses(_)
                | WorkerEvent::MirrorsListed(_) => {
                    listed += 1;
                    Some(())
                }
                WorkerEvent::CapacityLost { message, .. } => panic!("{message}"),
                _ => None,
            })
            .await;
    }
    access.unwrap()
}

#[tokio::test]
async fn a_worker_with_its_role_is_up_and_its_rows_follow_what_happens_there() {
    let mut world = World::start("rows").await;
    let kubeconfig = service_account(&world).await;
    world.add("rows", &kubeconfig.to_string()).await;
    let uid = world.up("rows").await;
    let system = Api::<k8s_openapi::api::core::v1::Namespace>::all(world.worker.clone())
        .get("kube-system")
        .await
        .unwrap();
    assert_eq!(Some(uid), system.metadata.uid);

    let access = first_words(&mut world, "rows").await;
    let expected = Access {
        kinds: ["batch/v1/Job".to_owned()].into(),
        ..Access::default()
    };
    assert_eq!(access, expected);

    gpu_node("rows-1").gpus(4).create(&world.worker).await.unwrap();
    let free = world
        .worker_says("rows", |event| match event {
            WorkerEvent::Node(row) if &*row.name == "rows-1" => Some(row.allocatable.get("nvidia.com/gpu")),
            _ => None,
        })
        .await;
    assert_eq!(free, 4);
    create_namespace(&world.worker, "rows", true).await.unwrap();
    pod("member")
        .namespace("rows")
        .on("rows-1")
        .gpus(3)
        .label(names::JOB_UID, "j1")
        .create(&world.worker)
        .await
        .unwrap();
    let row = world
        .worker_says("rows", |event| match event {
            WorkerEvent::Pod(row) if &*row.name == "member" => Some(row.clone()),
            _ => None,
        })
        .await;
    assert_eq!(
        (&*row.node, row.charged.get("nvidia.com/gpu"), row.job_uid.as_deref()),
        ("rows-1", 3, Some("j1"))
    );

    // A pod that is finished leaves the selection, and that shows as its deletion.
    let finished = json!({"status": {"phase": "Succeeded"}});
    let pods = Api::<Pod>::namespaced(world.worker.clone(), "rows");
    pods.patch_status("member", &PatchParams::default(), &Patch::Merge(&finished))
        .await
        .unwrap();
    world
        .worker_says("rows", |event| match event {
            WorkerEvent::PodDeleted(namespace, name) => ((&**namespace, &**name) == ("rows", "member")).then_some(()),
            _ => None,
        })
        .await;
    Api::<Node>::all(world.worker.clone())
        .delete("rows-1", &DeleteParams::default())
        .await
        .unwrap();
    world
        .worker_says("rows", |event| match event {
            WorkerEvent::NodeDeleted(name) => (&**name == "rows-1").then_some(()),
            _ => None,
        })
        .await;

    job("mirror")
        .namespace("rows")
        .suspended()
        .label(names::ORIGIN, ORIGIN)
        .create(&world.worker)
        .await
        .unwrap();
    job("stranger")
        .namespace("rows")
        .suspended()
        .create(&world.worker)
        .await
        .unwrap();
    let view = world
        .worker_says("rows", |event| match event {
            WorkerEvent::Mirror(view) => Some(view.clone()),
            _ => None,
        })
        .await;
    assert_eq!(
        (view.key.to_string().as_str(), view.state.asleep, view.identity),
        ("rows/mirror", true, None)
    );
}

/// As `kubectl replace --force` does: the former object's end and the new one's beginning may be one change for the link.
#[tokio::test]
async fn a_worker_cluster_that_is_made_again_connects_again() {
    let mut world = World::start("again").await;
    let kubeconfig = service_account(&world).await;
    world.add("again", &kubeconfig.to_string()).await;
    let uid = world.up("again").await;
    for _ in 0..3 {
        let before = world.epochs["again"];
        let workers = Api::<WorkerCluster>::all(world.client.clone());
        workers.delete("again", &DeleteParams::default()).await.unwrap();
        world.worker_cluster("again", "again", "kubeconfig").await;
        assert_eq!(world.up("again").await, uid);
        assert!(world.epochs["again"] > before);
    }
}

#[tokio::test]
async fn a_role_that_lacks_verbs_is_named_verb_by_verb_and_degrades_what_needs_them() {
    let mut world = World::start("roles").await;
    service_account(&world).await;
    let role = "
apiVersion: v1
kind: ServiceAccount
metadata: {name: less, namespace: multikueue-system}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: less}
rules:
- {apiGroups: [batch], resources: [jobs], verbs: [get, list, watch, create]}
- {apiGroups: [''], resources: [nodes], verbs: [list, watch]}
- {apiGroups: [''], resources: [namespaces], resourceNames: [kube-system], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: less}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: less}
subjects: [{kind: ServiceAccount, name: less, namespace: multikueue-system}]
";
    apply_yaml(&world.worker, role).await.unwrap();
    let kubeconfig = world
        .eu
        .kubeconfig_service_account("multikueue-system", "less")
        .await
        .unwrap();
    world.add("roles", &kubeconfig.to_string()).await;
    world.up("roles").await;
    let (mut access, mut lost) = (None, None);
    while access.is_none() || lost.is_none() {
        world
            .worker_says("roles", |event| match event {
                WorkerEvent::Access(seen) => {
                    access = Some(seen.clone());
                    Some(())
                }
                WorkerEvent::CapacityLost { watched, message } => {
                    lost = Some((*watched, message.clone()));
                    Some(())
                }
                _ => None,
            })
            .await;
    }
    let access = access.unwrap();
    let lease = |verb: &str| format!("{verb} leases in {}", names::WORKER_LEASE_NAMESPACE);
    let missing = [
        "patch jobs".into(),
        "delete jobs".into(),
        lease("get"),
        lease("create"),
        lease("update"),
    ];
    assert_eq!(access.missing, missing);
    assert_eq!(
        access.degraded,
        ["list pods", "watch pods", "list runtimeclasses", "watch runtimeclasses"]
    );
    let (watched, message) = lost.unwrap();
    assert!(
        watched == multikueue::capacity::Watched::Pods && message.contains("403"),
        "{message}"
    );
}

#[tokio::test]
async fn a_worker_that_is_cut_off_is_down_within_seconds_and_comes_back_under_a_new_epoch() {
    let mut world = World::start("cuts").await;
    let kubeconfig = service_account(&world).await;
    let link = bed().await.link(&world.eu).await.unwrap();
    world.add("cuts", &kubeconfig.clone().via(&link).to_string()).await;
    world.up("cuts").await;
    let first = world.epochs["cuts"];

    link.black_hole().await.unwrap();
    let (reason, _) = world.down("cuts").await;
    assert_eq!((reason.as_str(), world.epochs["cuts"]), ("Timeout", first));
    link.heal().await.unwrap();
    world.up("cuts").await;
    let second = world.epochs["cuts"];
    assert!(second > first);
    // What was listed before counts for nothing: it is listed again.
    world
        .worker_says("cuts", |event| {
            matches!(event, WorkerEvent::NodesListed(_)).then_some(())
        })
        .await;

    link.refuse().await.unwrap();
    assert_eq!(world.down("cuts").await.0, "ConnectionRefused");
    // Another kubeconfig is tried at once, whatever the pause had grown to.
    world.secret("cuts", &kubeconfig.to_string()).await;
    world.up("cuts").await;
    assert!(world.epochs["cuts"] > second);
    // The same text once more is no change: the link stays, as an edit shows that reaches it later.
    world.worker_cluster("cuts", "cuts", "kubeconfig").await;
    world.worker_cluster("cuts", "absent", "kubeconfig").await;
    assert_eq!(world.down("cuts").await.0, "SecretNotFound");
}
