//! What nodes and pods count for: cases that people have suffered, by their numbers.

use super::*;

#[test]
fn free_devices_are_counted_by_node_not_in_total() {
    let one_each: Vec<NodeRow> = (0..8).map(|i| node(&format!("n{i}"), 8)).collect();
    let full: Vec<PodRow> = (0..8).map(|i| pod(&format!("p{i}"), &format!("n{i}"), 7)).collect();
    let mut w1 = ledger(&one_each, &full);
    let mut w2 = ledger(&[node("n", 8)], &[]);
    assert_eq!((fits(&mut w1, &gpu(8)), fits(&mut w2, &gpu(8))), (0, 1));
    assert_eq!((fits(&mut w1, &gpu(1)), fits(&mut w2, &gpu(1))), (8, 8));
    // Eight single devices break no block on w1.
    let eight = [set(&gpu(1), 8)];
    assert!(w1.plan(&eight) < w2.plan(&eight));
    w2.upsert_pod(&pod("p", "n", 1));
    assert_eq!(fits(&mut w2, &gpu(4)), 1);
}

#[test]
fn pods_of_every_phase_but_the_last_hold_their_devices() {
    // Rows exist for bound, live pods only: a finished pod is one that is deleted.
    let mut ledger = ledger(&[node("n", 4)], &[pod("done", "n", 2), pod("crashing", "n", 1)]);
    ledger.delete_pod("team", "done");
    assert_eq!(fits(&mut ledger, &gpu(1)), 3);
    ledger.upsert_pod(&PodRow {
        deleting: true,
        running: false,
        ..pod("crashing", "n", 1)
    });
    assert_eq!(
        fits(&mut ledger, &gpu(1)),
        3,
        "a pod holds its devices until it is gone"
    );
}

#[test]
fn nodes_out_of_service_are_unavailable_and_not_used() {
    let healthy = node("n", 4);
    let cases = [
        NodeRow {
            ready: false,
            ..healthy.clone()
        },
        NodeRow {
            unschedulable: true,
            ..healthy.clone()
        },
        NodeRow {
            deleting: true,
            ..healthy.clone()
        },
        tainted(
            healthy.clone(),
            "node.kubernetes.io/unreachable",
            NodeTaintEffect::NoExecute,
        ),
    ];
    for row in cases {
        let mut ledger = ledger(std::slice::from_ref(&row), &[pod("p", "n", 1)]);
        assert_eq!(fits(&mut ledger, &gpu(1)), 0, "{row:?}");
        let devices = &ledger.devices().by_model["nvidia.com/gpu"];
        assert_eq!((devices.free, devices.used, devices.unavailable), (0, 1, 3), "{row:?}");
    }
}

#[test]
fn a_node_that_comes_back_finds_its_pods_still_counted() {
    let mut ledger = ledger(&[node("n", 8)], &[own("p", "n", 4, "job")]);
    ledger.promise(&"job".into(), &[set(&gpu(4), 1)]);
    for ready in [false, true, false, true] {
        ledger.upsert_node(&NodeRow { ready, ..node("n", 8) });
        assert_eq!(fits(&mut ledger, &gpu(4)), i64::from(ready));
        assert_eq!(ledger.unplaced(), 0);
    }
}

#[test]
fn a_label_without_devices_is_no_capacity() {
    let h100 = [("nvidia.com/gpu.product", "H100")];
    let broken = labelled(node("broken", 0), &h100);
    let mut zero = labelled(node("zero", 0), &h100);
    zero.capacity.set("nvidia.com/gpu".into(), 8);
    let mut ledger = ledger(&[broken, zero], &[]);
    let shape = Arc::new(Shape {
        node_selector: vec![("nvidia.com/gpu.product".into(), "H100".into())],
        ..asks(&[("nvidia.com/gpu", 1)])
    });
    assert_eq!(fits(&mut ledger, &shape), 0);
    assert_eq!(ledger.devices().by_model["H100"].unavailable, 8);
}

#[test]
fn partitions_are_resources_of_their_own() {
    let mut row = node("n", 0);
    row.allocatable.set("nvidia.com/mig-1g.10gb".into(), 7);
    let mut ledger = ledger(&[labelled(row, &[("nvidia.com/gpu.product", "A100")])], &[]);
    let slice = |name: &str| Arc::new(asks(&[(name, 1)]));
    assert_eq!(fits(&mut ledger, &gpu(1)), 0);
    assert_eq!(fits(&mut ledger, &slice("nvidia.com/mig-1g.10gb")), 7);
    assert_eq!(fits(&mut ledger, &slice("nvidia.com/mig-9g.80gb")), 0);
    assert_eq!(ledger.devices().by_model["A100-MIG-1g.10gb"].free, 7);
    // Cut anew: the name is gone, and a member promised there has no room.
    ledger.promise(&"job".into(), &[set(&slice("nvidia.com/mig-1g.10gb"), 1)]);
    ledger.upsert_node(&node("n", 0));
    assert_eq!(fits(&mut ledger, &slice("nvidia.com/mig-1g.10gb")), 0);
    assert_eq!(ledger.unplaced(), 1);
}

#[test]
fn pod_slots_and_overhead_are_dimensions_of_the_packing() {
    let mut row = node("n", 8);
    row.allocatable.set("pods".into(), 3);
    let daemons: Vec<PodRow> = (0..3).map(|i| pod(&format!("ds{i}"), "n", 0)).collect();
    assert_eq!(fits(&mut ledger(&[row], &daemons), &gpu(1)), 0);

    let kata = RuntimeClassRow {
        overhead: amounts(&[("cpu", 40_000)]),
        node_selector: vec![("kata".into(), "yes".into())],
        tolerations: Vec::new(),
    };
    let mut ledger = ledger(&[labelled(node("n", 8), &[("kata", "yes")]), node("plain", 8)], &[]);
    let shape = Arc::new(Shape {
        runtime_class: Some("kata".into()),
        ..asks(&[("nvidia.com/gpu", 1)])
    });
    assert!(
        matches!(ledger.fit(&shape), Fit::Unknown(_)),
        "classes are not listed yet"
    );
    ledger.set_runtime_classes(BTreeMap::new());
    assert_eq!(fits(&mut ledger, &shape), 0, "the class is missing");
    let generation = ledger.generation();
    ledger.set_runtime_classes([("kata".into(), kata)].into());
    assert_eq!(
        fits(&mut ledger, &shape),
        2,
        "96 cpu hold two members of 40 on the one node of the class"
    );
    assert!(ledger.generation() > generation);
}

#[test]
fn nothing_is_known_before_both_lists_and_after_a_watch_broke() {
    let mut ledger = Ledger::new();
    ledger.reset_nodes(&[node("n", 8)]);
    assert_eq!(ledger.fit(&gpu(1)), Fit::Unknown("pods are not listed yet".into()));
    ledger.reset_pods(&[]);
    assert_eq!(fits(&mut ledger, &gpu(1)), 8);
    ledger.watch_lost(Watched::Nodes, "the watch of nodes is broken");
    assert_eq!(ledger.fit(&gpu(1)), Fit::Unknown("the watch of nodes is broken".into()));
    assert_eq!(ledger.plan(&[set(&gpu(1), 1)]), None);
    let generation = ledger.generation();
    ledger.reset_nodes(&[node("n", 4)]);
    assert_eq!(fits(&mut ledger, &gpu(1)), 4);
    assert!(ledger.generation() > generation);
    ledger.set_unknown("away");
    ledger.reset_pods(&[]);
    assert_eq!(ledger.fit(&gpu(1)), Fit::Unknown("away".into()));
}

#[test]
fn rules_that_are_not_counted_make_capacity_unknown_and_broken_templates_an_error() {
    let mut ledger = ledger(&[node("n", 8)], &[]);
    let spread = Shape {
        uncounted: vec!["topologySpreadConstraints".into(), "podAffinity".into()],
        ..asks(&[])
    };
    assert_eq!(
        ledger.fit(&Arc::new(spread)),
        Fit::Unknown("the template uses topologySpreadConstraints, podAffinity, which is not counted yet".into())
    );
    assert_eq!(
        ledger.fit(&Arc::new(asks(&[("cpu", -1)]))),
        Fit::Error("the request of cpu is -1; it must not be negative".into())
    );
}

#[test]
fn a_driver_being_replaced_takes_the_devices_but_not_the_node() {
    let mut ledger = ledger(
        &[labelled(
            node("n", 8),
            &[("nvidia.com/gpu-driver-upgrade-state", "drain-required")],
        )],
        &[],
    );
    assert_eq!(fits(&mut ledger, &gpu(1)), 0);
    assert_eq!(fits(&mut ledger, &Arc::new(asks(&[("cpu", 48_000)]))), 2);
}

#[test]
fn a_heartbeat_that_says_nothing_new_changes_nothing() {
    let mut ledger = ledger(&[node("n", 8)], &[pod("p", "n", 2)]);
    fits(&mut ledger, &gpu(1));
    let before = (ledger.version(), ledger.work());
    ledger.upsert_node(&node("n", 8));
    ledger.upsert_pod(&pod("p", "n", 2));
    fits(&mut ledger, &gpu(1));
    assert_eq!((ledger.version(), ledger.work()), before);
}

#[test]
fn names_of_nodes_that_came_and_went_are_forgotten() {
    let mut ledger = ledger(&[], &[]);
    let shape = Arc::new(Shape {
        node_selector: vec![("zone".into(), "a".into())],
        ..asks(&[("nvidia.com/gpu", 1)])
    });
    for i in 0..10_000 {
        let name = format!("n{i}");
        ledger.upsert_node(&labelled(
            node(&name, 8),
            &[("kubernetes.io/hostname", &name), ("zone", "a")],
        ));
        if i % 1000 == 0 {
            assert_eq!(fits(&mut ledger, &shape), 8);
        }
        ledger.delete_node(&name);
        assert_eq!(fits(&mut ledger, &shape), 0);
    }
    assert!(ledger.nodes.list.len() < 4, "{} nodes", ledger.nodes.list.len());
    assert!(ledger.nodes.texts_len() < 5000, "{} texts", ledger.nodes.texts_len());
}

#[test]
fn chips_of_several_names_can_be_asked_for_by_each() {
    let named = |name: &str, resources: &[(&str, i64)]| {
        let mut row = node(name, 0);
        for (resource, n) in resources {
            row.allocatable.set((*resource).into(), *n);
        }
        row
    };
    let both = named(
        "both",
        &[("aws.amazon.com/neuron", 2), ("aws.amazon.com/neuroncore", 4)],
    );
    let cores = named("cores", &[("aws.amazon.com/neuroncore", 2)]);
    let mut ledger = ledger(&[both, cores], &[]);
    let core = Arc::new(asks(&[("aws.amazon.com/neuroncore", 1)]));
    assert_eq!(fits(&mut ledger, &core), 6);
    assert!(ledger.plan(&[set(&core, 6)]).is_some());
    assert_eq!(
        ledger.devices().free,
        4,
        "two chips on one node, two cores on the other"
    );
}
