//! Which worker a job goes to.

use super::*;
use crate::api::job::{ClusterToleration, Preference, TolerationOperator};
use crate::api::worker_cluster::{ClusterTaint, TaintEffect};
use crate::scheduling::site::Blocked;

#[test]
fn jobs_of_one_cycle_see_each_other() {
    let mut sites = fleet(&[("w1", &[2]), ("w2", &[2])]);
    let jobs: Vec<QueuedJob> = (0..20).map(|i| job(&format!("j{i:02}"), i, 1, 1)).collect();
    let (mut scheduler, placed) = run(jobs, &mut sites);
    let names: Vec<&str> = placed.iter().map(|(job, _)| job.as_str()).collect();
    assert_eq!(names, ["j00", "j01", "j02", "j03"], "the oldest four");
    assert_eq!(scheduler.len(), 16);
    // A restart in the middle: promises are made again from the assignments, and nothing more is placed.
    let mut again = fleet(&[("w1", &[2]), ("w2", &[2])]);
    for (name, site) in &placed {
        let sets = job(name, 0, 1, 1).pod_sets;
        again
            .get_mut(site.as_str())
            .unwrap()
            .ledger
            .promise(&format!("uid-{name}").into(), &sets);
    }
    assert_eq!(scheduler.cycle(&mut again, at(1), ALL).placed, []);
}

#[test]
fn the_largest_slot_counts_and_not_the_sum() {
    let mut sites = fleet(&[("w1", &[10]), ("w2", &[10])]);
    let jobs = vec![
        job("a", 0, 1, 7),
        job("b", 1, 1, 7),
        job("c", 2, 1, 6),
        job("d", 3, 1, 3),
    ];
    let (mut scheduler, placed) = run(jobs, &mut sites);
    assert_eq!(placed, pairs(&[("a", "w1"), ("b", "w2"), ("d", "w1")]));
    assert_eq!(
        sentence(&mut scheduler, &mut sites, "c"),
        (
            "InsufficientDevices".into(),
            "3 nvidia.com/gpu free, at most 3 on one node; 6 needed".into()
        )
    );
}

#[test]
fn the_best_worker_is_the_one_with_real_room() {
    let fragments = || {
        let mut sites = fleet(&[("w1", &[8; 8]), ("w2", &[8])]);
        let ledger = &mut sites.get_mut("w1").unwrap().ledger;
        (0..8).for_each(|i| ledger.upsert_pod(&pod(&format!("p{i}"), &format!("n{i}"), 7)));
        sites
    };
    for (count, gpus, expected) in [(1, 8, "w2"), (8, 1, "w1"), (2, 4, "w2")] {
        let (_, placed) = run(vec![job("j", 0, count, gpus)], &mut fragments());
        assert_eq!(placed, pairs(&[("j", expected)]), "{count} pods of {gpus}");
    }
    let mut sites = fragments();
    sites.get_mut("w2").unwrap().ledger.upsert_pod(&pod("p", "n0", 1));
    let (mut scheduler, placed) = run(vec![job("j", 0, 2, 4)], &mut sites);
    assert_eq!(placed, []);
    assert_eq!(
        sentence(&mut scheduler, &mut sites, "j").1,
        "7 nvidia.com/gpu free, at most 7 on one node; 2 pods of 4 needed, room for 1"
    );
}

#[test]
fn a_gang_of_two_roles_goes_where_both_fit() {
    let roles = QueuedJob {
        pod_sets: Arc::new([
            PodSet {
                shape: gpu(8),
                count: 1,
            },
            PodSet {
                shape: gpu(8),
                count: 1,
            },
        ]),
        ..job("gang", 0, 0, 0)
    };
    let (_, placed) = run(vec![roles.clone()], &mut fleet(&[("w1", &[8]), ("w2", &[8, 8])]));
    assert_eq!(placed, pairs(&[("gang", "w2")]));
    let (_, placed) = run(vec![roles], &mut fleet(&[("w1", &[8])]));
    assert_eq!(placed, []);
}

#[test]
fn preferences_decide_before_packing() {
    let prefer = |tier: &str| {
        Arc::new(Placement {
            preferences: vec![Preference {
                weight: 50,
                selector: select("tier", tier),
            }],
            ..Placement::default()
        })
    };
    let mut sites = fleet(&[("a-cloud", &[1]), ("z-onprem", &[8])]);
    change(&mut sites, "z-onprem", |m| {
        m.labels.insert("tier".into(), "onprem".into());
    });
    let jobs = (0..9).map(|i| QueuedJob {
        placement: prefer("onprem"),
        ..job(&format!("j{i}"), i, 1, 1)
    });
    let (_, placed) = run(jobs.collect(), &mut sites);
    assert_eq!(placed.iter().filter(|(_, w)| w == "z-onprem").count(), 8);
    assert_eq!(
        placed[8],
        ("j8".into(), "a-cloud".into()),
        "spills when the better one is full"
    );
}

#[test]
fn scarce_models_are_left_to_those_who_need_them() {
    let labelled = |mut row: NodeRow, model: &str, memory: &str| {
        row.labels = vec![
            ("nvidia.com/gpu.memory".into(), memory.into()),
            ("nvidia.com/gpu.product".into(), model.into()),
        ];
        row
    };
    let mut sites = fleet(&[("a", &[]), ("b", &[])]);
    sites
        .get_mut("a")
        .unwrap()
        .ledger
        .upsert_node(&labelled(node("n", 2), "H100", "81559"));
    sites
        .get_mut("b")
        .unwrap()
        .ledger
        .upsert_node(&labelled(node("n", 8), "T4", "15360"));
    let h100 = Arc::new(Shape {
        node_selector: vec![("nvidia.com/gpu.product".into(), "H100".into())],
        ..(*gpu(2)).clone()
    });
    let needs = QueuedJob {
        pod_sets: Arc::new([PodSet { shape: h100, count: 1 }]),
        ..job("needs", 1, 1, 2)
    };
    let (_, placed) = run(vec![job("any", 0, 1, 2), needs], &mut sites);
    assert_eq!(placed, pairs(&[("any", "b"), ("needs", "a")]));
}

#[test]
fn what_a_worker_cluster_says_is_obeyed() {
    type Change = fn(&mut SiteMeta);
    let cases: [(&str, Change); 7] = [
        ("Cordoned", |m| m.cordoned = true),
        ("UntoleratedTaint", |m| {
            m.taints.push(ClusterTaint {
                key: "maintenance".into(),
                value: Some("today".into()),
                effect: TaintEffect::NoSchedule,
            });
        }),
        ("KindNotServed", |m| m.kinds.clear()),
        ("NamespaceNotAllowed", |m| m.namespaces.allow = vec!["other".into()]),
        ("Unreachable", |m| {
            m.blocked = Some(Blocked {
                reason: "Unreachable",
                message: "no answer for 12 s".into(),
            });
        }),
        ("NameTaken", |m| m.cluster_uid = "taken".into()),
        ("SelectorMismatch", |m| m.labels.clear()),
    ];
    for (reason, f) in cases {
        let mut sites = fleet(&[("w", &[8])]);
        let asks = QueuedJob {
            placement: Arc::new(Placement {
                cluster_selector: Some(select("name", "w")),
                ..Placement::default()
            }),
            excluded: [(
                "taken".into(),
                Exclusion {
                    reason: "NameTaken",
                    message: "an object of that name exists".into(),
                },
            )]
            .into(),
            ..job("j", 0, 1, 1)
        };
        let mut changed = fleet(&[("w", &[8])]);
        change(&mut changed, "w", f);
        let (mut scheduler, placed) = run(vec![asks.clone()], &mut changed);
        assert_eq!(placed, [], "{reason}");
        assert_eq!(sentence(&mut scheduler, &mut changed, "j").0, reason);
        // As soon as the WorkerCluster says otherwise, the job goes.
        let meta = sites["w"].meta().clone();
        change(&mut changed, "w", |m| *m = meta);
        assert_eq!(
            placed_names(&scheduler.cycle(&mut changed, at(1), ALL)),
            ["j"],
            "{reason}"
        );
        assert_eq!(run(vec![asks], &mut sites).1.len(), 1);
    }
}

fn placed_names(cycle: &Cycle) -> Vec<String> {
    cycle.placed.iter().map(|p| p.key.name.to_string()).collect()
}

#[test]
fn tolerations_of_workers() {
    use TolerationOperator::{Equal, Exists};
    let tolerate = |key: Option<&str>, operator, value: Option<&str>| {
        Arc::new(Placement {
            tolerations: vec![ClusterToleration {
                key: key.map(Into::into),
                operator,
                value: value.map(Into::into),
            }],
            ..Placement::default()
        })
    };
    for (placement, expected) in [
        (Arc::default(), 0),
        (tolerate(None, Exists, None), 1),
        (tolerate(Some("k"), Exists, None), 1),
        (tolerate(Some("k"), Equal, Some("v")), 1),
        (tolerate(Some("k"), Equal, None), 0),
        (tolerate(Some("other"), Exists, None), 0),
    ] {
        let mut sites = fleet(&[("w", &[8])]);
        change(&mut sites, "w", |m| {
            m.taints = vec![ClusterTaint {
                key: "k".into(),
                value: Some("v".into()),
                effect: TaintEffect::NoSchedule,
            }];
        });
        let asks = QueuedJob {
            placement,
            ..job("j", 0, 1, 1)
        };
        assert_eq!(
            run(vec![asks.clone()], &mut sites).1.len(),
            expected,
            "{:?}",
            asks.placement
        );
    }
}

#[test]
fn namespaces_of_the_system_and_of_the_operator_are_not_used_unless_named() {
    for (namespace, allow, expected) in [
        ("team", &[][..], 1),
        ("kube-system", &[], 0),
        ("multikueue-system", &[], 0),
        ("team", &["other"], 0),
        ("kube-public", &["kube-public"], 1),
    ] {
        let mut sites = fleet(&[("w", &[8])]);
        change(&mut sites, "w", |m| {
            m.namespaces.allow = allow.iter().map(ToString::to_string).collect();
        });
        let asks = QueuedJob {
            key: JobKey::new(namespace, "j"),
            ..job("j", 0, 1, 1)
        };
        assert_eq!(run(vec![asks], &mut sites).1.len(), expected, "{namespace} {allow:?}");
    }
}

#[test]
fn an_unknown_worker_is_neither_full_nor_free() {
    let mut sites = fleet(&[("w1", &[8])]);
    sites.insert("w2".into(), Site::new(sites["w1"].meta().clone()));
    let (mut scheduler, placed) = run(vec![job("a", 0, 1, 8), job("b", 1, 1, 8)], &mut sites);
    assert_eq!(placed, pairs(&[("a", "w1")]));
    let waiting = scheduler.waiting(&JobKey::new("team", "b"), &mut sites).unwrap();
    assert_eq!(
        waiting.reasons,
        [("CapacityUnknown".to_owned(), 1), ("InsufficientDevices".to_owned(), 1)].into()
    );
    let ledger = &mut sites.get_mut("w2").unwrap().ledger;
    ledger.reset_nodes(&[node("n", 8)]);
    ledger.reset_pods(&[]);
    assert_eq!(placed_names(&scheduler.cycle(&mut sites, at(1), ALL)), ["b"]);
}
