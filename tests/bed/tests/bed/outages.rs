//! Programs that stop, freeze and come back, and the end of all of them with their parent.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use bed::{ControlPlaneOptions, create_namespace, eventually};
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use tokio::time::timeout;

use crate::world::{BED, SOON};

#[tokio::test]
async fn an_api_server_keeps_its_objects_over_a_stop_and_a_start() {
    let bed = BED.get().await.unwrap();
    let plane = bed
        .add_control_plane("stopped", ControlPlaneOptions::bare())
        .await
        .unwrap();
    let client = plane.client().await.unwrap();
    create_namespace(&client, "kept", false).await.unwrap();
    plane.api_server().stop();
    assert!(!plane.api_server().is_running());
    client.apiserver_version().await.expect_err("nobody listens");
    plane.start_api_server().await.unwrap();
    let namespaces = Api::<Namespace>::all(client);
    namespaces
        .get("kept")
        .await
        .expect("the namespace, by the client of before");
}

#[tokio::test]
async fn a_frozen_api_server_is_silent_until_it_goes_on() {
    let bed = BED.get().await.unwrap();
    let plane = bed
        .add_control_plane("frozen", ControlPlaneOptions::bare())
        .await
        .unwrap();
    let client = plane.client().await.unwrap();
    client.apiserver_version().await.unwrap();
    plane.api_server().pause().unwrap();
    timeout(Duration::from_secs(2), client.apiserver_version())
        .await
        .expect_err("silence");
    plane.api_server().resume().unwrap();
    eventually(SOON, "an answer", || async { Ok(client.apiserver_version().await?) })
        .await
        .unwrap();
}

#[tokio::test]
async fn a_dropped_bed_leaves_no_process_and_no_folder() {
    let bed = bed::Bed::start(bed::BedOptions::new().control_plane("brief", ControlPlaneOptions::bare()))
        .await
        .unwrap();
    let folder = bed.folder().to_owned();
    let held = bed.control_plane("brief").unwrap();
    assert_eq!(processes_of(&folder).len(), 2, "etcd and the API server");
    drop(bed);
    assert_eq!(processes_of(&folder), BTreeSet::new());
    assert!(!folder.exists());
    assert!(!held.api_server().is_running());
}

#[tokio::test]
async fn nothing_outlives_a_parent_that_is_killed() {
    let mut parent = Command::new(env!("CARGO_BIN_EXE_bed-up"))
        .args(["manager", "worker"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(parent.stdout.take().unwrap()).lines();
    let first = lines.next().unwrap().unwrap();
    let kubeconfig = first.strip_prefix("manager ").unwrap();
    let folder = Path::new(kubeconfig).ancestors().nth(2).unwrap().to_owned();
    assert!(lines.next().unwrap().unwrap().starts_with("worker "));
    let children = processes_of(&folder);
    assert_eq!(
        children.len(),
        7,
        "etcd, two API servers, two controller managers, a scheduler, KWOK: {children:?}"
    );
    for pid in &children {
        assert_eq!(listeners_beyond_loopback(*pid), Vec::<String>::new(), "process {pid}");
    }

    parent.kill().unwrap();
    parent.wait().unwrap();
    eventually(SOON, "all children to be gone", || async {
        let left = processes_of(&folder);
        if left.is_empty() {
            Ok(())
        } else {
            Err(format!("{left:?} are left").into())
        }
    })
    .await
    .unwrap();

    assert!(folder.exists(), "nobody was there to remove it");
    drop(bed::Bed::start(bed::BedOptions::new()).await.unwrap());
    assert!(!folder.exists(), "the next bed removes it");
}

/// Processes that live and have this folder in their command line, as all programs of a bed have.
fn processes_of(folder: &Path) -> BTreeSet<u32> {
    let folder = folder.to_str().unwrap();
    let pids = fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    pids.filter(|pid| fs::read_to_string(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line.contains(folder)))
        .collect()
}

/// Local addresses on which a process listens, other than 127.0.0.1, as `/proc/net` writes them.
fn listeners_beyond_loopback(pid: u32) -> Vec<String> {
    const LISTEN: &str = "0A";
    const LOOPBACK: &str = "0100007F:";
    let sockets: BTreeSet<String> = fs::read_dir(format!("/proc/{pid}/fd"))
        .unwrap()
        .filter_map(|entry| fs::read_link(entry.ok()?.path()).ok()?.to_str().map(ToOwned::to_owned))
        .collect();
    ["tcp", "tcp6"]
        .into_iter()
        .flat_map(|table| {
            let text = fs::read_to_string(format!("/proc/{pid}/net/{table}")).unwrap();
            text.lines().map(ToOwned::to_owned).collect::<Vec<_>>()
        })
        .filter_map(|line| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let own = sockets.contains(&format!("socket:[{}]", fields.get(9)?));
            (own && fields[3] == LISTEN && !fields[1].starts_with(LOOPBACK)).then(|| fields[1].to_owned())
        })
        .collect()
}
