use serde_json::{Value, json};

use super::*;
use crate::capacity::PodRow;

fn pod(pod: &Value) -> PodRow {
    serde_json::from_str::<PodLite>(&pod.to_string())
        .unwrap()
        .row(&mut Texts::default())
}

fn charged(spec: &Value, status: &Value) -> Vec<(String, i64)> {
    let row = pod(&json!({"metadata": {"name": "p", "namespace": "n", "uid": "u"}, "spec": spec, "status": status}));
    row.charged
        .iter()
        .map(|(name, amount)| (name.to_string(), amount))
        .collect()
}

fn container(name: &str, requests: &Value) -> Value {
    json!({"name": name, "resources": {"requests": requests}})
}

fn named(amounts: &[(&str, i64)]) -> Vec<(String, i64)> {
    amounts
        .iter()
        .map(|(name, amount)| ((*name).to_owned(), *amount))
        .collect()
}

#[test]
fn containers_add_up_and_cpu_counts_in_millis() {
    let spec = json!({"containers": [
        container("a", &json!({"cpu": "1500m", "memory": "1Gi", "nvidia.com/gpu": "2"})),
        container("b", &json!({"cpu": "0.1", "memory": "1", "nvidia.com/gpu": 1})),
    ]});
    let expected = named(&[("cpu", 1_600), ("memory", (1 << 30) + 1), ("nvidia.com/gpu", 3)]);
    assert_eq!(charged(&spec, &json!({})), expected);
}

#[test]
fn a_row_says_whose_the_pod_is_and_how_it_fares() {
    let row = pod(&json!({
        "metadata": {"name": "p", "namespace": "n", "uid": "u", "deletionTimestamp": "2026-01-01T00:00:00Z", "labels": {"multikueue.rs/job-uid": "j"}},
        "spec": {"nodeName": "node-1", "containers": [{"name": "c"}]},
        "status": {"phase": "Running"},
    }));
    assert_eq!(
        (&*row.namespace, &*row.name, &*row.uid, &*row.node),
        ("n", "p", "u", "node-1")
    );
    assert_eq!(
        (row.job_uid.as_deref(), row.running, row.deleting),
        (Some("j"), true, true)
    );
    assert!(row.charged.is_empty());
}

#[test]
fn a_pod_that_cannot_be_read_closes_its_node() {
    let row = pod(&json!({
        "metadata": {"name": "p", "namespace": "n", "uid": "u"},
        "spec": {"nodeName": "node-1", "containers": [{"name": "c", "resources": {"requests": {"cpu": "lots"}}}]},
    }));
    assert_eq!((&*row.node, &*row.name), ("node-1", "p"));
    assert!(row.charged.get("pods") > 1_000_000);
}

#[test]
fn a_node_is_what_the_counting_reads() {
    let node = json!({
        "metadata": {"name": "n1", "labels": {"b": "2", "a": "1"}},
        "spec": {"unschedulable": true, "taints": [
            {"key": "k", "value": "v", "effect": "NoSchedule"}, {"key": "x", "effect": "NoExecute"}, {"key": "y", "effect": "OfTomorrow"}]},
        "status": {
            "allocatable": {"cpu": "7910m", "nvidia.com/gpu": "7", "pods": "110"},
            "capacity": {"cpu": "8", "nvidia.com/gpu": "8", "pods": "110"},
            "conditions": [{"type": "Ready", "status": "True"}],
            "images": [{"names": ["large"]}],
        },
    });
    let row = serde_json::from_str::<NodeLite>(&node.to_string())
        .unwrap()
        .row(&mut Texts::default());
    assert_eq!(&*row.name, "n1");
    assert_eq!(row.labels, [("a".into(), "1".into()), ("b".into(), "2".into())]);
    assert_eq!(row.taints.len(), 2);
    assert!(row.unschedulable && row.ready && !row.deleting);
    assert_eq!(
        (
            row.allocatable.get("cpu"),
            row.allocatable.get("nvidia.com/gpu"),
            row.allocatable.get("pods")
        ),
        (7_910, 7, 110)
    );
    assert_eq!((row.capacity.get("nvidia.com/gpu"), row.capacity.get("cpu")), (8, 0));
}

#[test]
fn a_runtime_class_is_what_it_adds_to_a_pod() {
    let class = json!({
        "metadata": {"name": "kata"}, "handler": "kata", "overhead": {"podFixed": {"cpu": "250m", "memory": "120Mi"}},
        "scheduling": {"nodeSelector": {"kata": "yes"}, "tolerations": [{"key": "kata", "operator": "Exists"}, {"key": "k", "effect": "OfTomorrow"}]},
    });
    let row = serde_json::from_str::<RuntimeClassLite>(&class.to_string())
        .unwrap()
        .row(&mut Texts::default());
    assert_eq!((row.overhead.get("cpu"), row.overhead.get("memory")), (250, 120 << 20));
    assert_eq!(row.node_selector, [("kata".to_owned(), "yes".to_owned())]);
    let [
        Toleration {
            key,
            exists: true,
            effect: None,
            ..
        },
    ] = &row.tolerations[..]
    else {
        panic!("{:?}", row.tolerations)
    };
    assert_eq!(key, "kata");
}
