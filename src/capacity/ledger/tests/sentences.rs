//! Every waiting job is told why, with numbers.

use super::*;

fn why(ledger: &mut Ledger, shape: &Arc<Shape>, wanted: i64) -> (Reason, String) {
    let shortfall = ledger.explain(&[set(shape, wanted)]).expect("does not fit");
    (shortfall.reason, shortfall.message)
}

#[test]
fn devices_are_short() {
    let nodes: Vec<NodeRow> = (0..3).map(|i| node(&format!("n{i}"), 8)).collect();
    let used = [pod("a", "n0", 5), pod("b", "n1", 5), pod("c", "n2", 6)];
    let mut ledger = ledger(&nodes, &used);
    assert_eq!(
        why(&mut ledger, &gpu(4), 1),
        (
            Reason::InsufficientDevices,
            "8 nvidia.com/gpu free, at most 3 on one node; 4 needed".into()
        )
    );
    assert_eq!(
        why(&mut ledger, &gpu(2), 4).1,
        "8 nvidia.com/gpu free, at most 3 on one node; 4 pods of 2 needed, room for 3"
    );
    assert_eq!(ledger.explain(&[set(&gpu(2), 3)]), None);
}

#[test]
fn another_resource_is_short() {
    let mut ledger = ledger(&[node("n0", 8), node("n1", 8)], &[pod("a", "n1", 8)]);
    let hungry = |cpu, memory| Arc::new(asks(&[("nvidia.com/gpu", 1), ("cpu", cpu), ("memory", memory)]));
    assert_eq!(
        why(&mut ledger, &hungry(100_000, 0), 1),
        (
            Reason::InsufficientCpu,
            "96 cpu free on nodes with room for the rest, at most 96 on one node; 100 needed".into()
        )
    );
    assert_eq!(
        why(&mut ledger, &hungry(500, (1 << 40) + (1 << 29)), 1),
        (
            Reason::InsufficientMemory,
            "1Ti memory free on nodes with room for the rest, at most 1Ti on one node; 1Ti needed".into()
        )
    );
}

#[test]
fn pods_are_short() {
    let mut row = node("n", 8);
    row.allocatable.set("pods".into(), 1);
    let mut ledger = ledger(&[row], &[pod("a", "n", 0)]);
    assert_eq!(
        why(&mut ledger, &gpu(1), 1),
        (
            Reason::InsufficientPods,
            "0 pods free, at most 0 on one node; 1 needed".into()
        )
    );
}

#[test]
fn nodes_are_not_for_the_shape() {
    let gpu_taint = |row| tainted(row, "nvidia.com/gpu", NodeTaintEffect::NoSchedule);
    let mut tainted_gpus = ledger(
        &[gpu_taint(node("g0", 8)), gpu_taint(node("g1", 8)), node("cpu", 0)],
        &[],
    );
    assert_eq!(
        why(&mut tainted_gpus, &gpu(1), 1),
        (
            Reason::UntoleratedTaint,
            "none of 2 nodes with nvidia.com/gpu can be used: 2 with a taint that is not tolerated".into()
        )
    );
    let eu = Arc::new(Shape {
        node_selector: vec![("zone".into(), "eu".into())],
        ..asks(&[("cpu", 1000)])
    });
    let away = NodeRow {
        ready: false,
        ..labelled(node("away", 0), &[("zone", "eu")])
    };
    let mut mixed = ledger(&[node("n0", 0), node("n1", 0), away], &[]);
    assert_eq!(
        why(&mut mixed, &eu, 1),
        (
            Reason::SelectorMismatch,
            "none of 3 nodes can be used: 2 not matched by the node selector, 1 not ready".into()
        )
    );
    assert_eq!(
        why(&mut ledger(&[node("n", 0)], &[]), &gpu(2), 1),
        (
            Reason::InsufficientDevices,
            "no node that it may use has nvidia.com/gpu; 2 needed".into()
        )
    );
}

#[test]
fn a_worker_without_nodes_says_so() {
    assert_eq!(
        why(&mut ledger(&[], &[]), &gpu(1), 1),
        (Reason::NoNodes, "the worker has no nodes".into())
    );
}

#[test]
fn the_unknown_is_named() {
    let mut ledger = ledger(&[node("n", 8)], &[]);
    let kata = Arc::new(Shape {
        runtime_class: Some("kata".into()),
        ..asks(&[])
    });
    assert_eq!(why(&mut ledger, &kata, 1).0, Reason::CapacityUnknown);
    ledger.set_runtime_classes(BTreeMap::new());
    assert_eq!(
        why(&mut ledger, &kata, 1),
        (
            Reason::RuntimeClassMissing,
            "the worker has no RuntimeClass kata".into()
        )
    );
    ledger.watch_lost(Watched::Pods, "pods cannot be listed: forbidden");
    assert_eq!(
        why(&mut ledger, &gpu(1), 1),
        (Reason::CapacityUnknown, "pods cannot be listed: forbidden".into())
    );
}
