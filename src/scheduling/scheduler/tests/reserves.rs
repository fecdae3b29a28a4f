//! Backfill with a bound.

use super::*;

/// A worker of one node of 8 with 4 used by a job of ours, and a job of 8 that waits since second 0.
fn blocked() -> (Scheduler, Sites) {
    let mut sites = fleet(&[("w", &[8])]);
    let ledger = &mut sites.get_mut("w").unwrap().ledger;
    ledger.promise(
        &"old".into(),
        &[PodSet {
            shape: gpu(4),
            count: 1,
        }],
    );
    let mut scheduler = scheduler();
    scheduler.upsert(job("big", 0, 1, 8));
    assert!(scheduler.cycle(&mut sites, at(0), ALL).placed.is_empty());
    (scheduler, sites)
}

#[test]
fn small_jobs_pass_a_big_one_for_ten_minutes_and_no_longer() {
    let (mut scheduler, mut sites) = blocked();
    scheduler.upsert(job("small", 1, 1, 2));
    assert_eq!(
        placed(&scheduler.cycle(&mut sites, at(599), ALL)),
        pairs(&[("small", "w")])
    );
    sites.get_mut("w").unwrap().ledger.release("uid-small");

    scheduler.upsert(job("late", 2, 1, 2));
    assert_eq!(scheduler.cycle(&mut sites, at(600), ALL).placed, []);
    let (key, worker) = scheduler.reservation().unwrap();
    assert_eq!((key.to_string().as_str(), &**worker), ("team/big", "w"));
    assert_eq!(
        sentence(&mut scheduler, &mut sites, "late"),
        (
            "Reserved".into(),
            "held for team/big, which was passed over for long".into()
        )
    );
    // What ranks above goes all the same.
    let urgent = QueuedJob {
        priority: 1,
        ..job("urgent", 3, 1, 1)
    };
    scheduler.upsert(urgent);
    assert_eq!(
        placed(&scheduler.cycle(&mut sites, at(601), ALL)),
        pairs(&[("urgent", "w")])
    );
    // The big job gets its room, and those held back are tried in the same cycle.
    let ledger = &mut sites.get_mut("w").unwrap().ledger;
    ledger.release("old");
    ledger.release("uid-urgent");
    ledger.upsert_node(&node("n1", 2));
    assert_eq!(
        placed(&scheduler.cycle(&mut sites, at(602), ALL)),
        pairs(&[("big", "w"), ("late", "w")])
    );
    assert_eq!(scheduler.reservation(), None);
}

#[test]
fn a_reserving_job_that_leaves_frees_its_worker() {
    let (mut scheduler, mut sites) = blocked();
    scheduler.upsert(job("small", 1, 1, 2));
    assert_eq!(scheduler.cycle(&mut sites, at(600), ALL).placed, []);
    scheduler.remove(&JobKey::new("team", "big"));
    assert_eq!(scheduler.reservation(), None);
    assert_eq!(
        placed(&scheduler.cycle(&mut sites, at(601), ALL)),
        pairs(&[("small", "w")])
    );
}

#[test]
fn other_workers_and_other_nodes_are_not_held() {
    let (mut scheduler, mut sites) = blocked();
    // A node that the big job could never use, and that the small one alone may.
    let mut row = node("n1", 2);
    row.labels = vec![("pool".into(), "small".into())];
    sites.get_mut("w").unwrap().ledger.upsert_node(&row);
    let shape = Arc::new(Shape {
        node_selector: vec![("pool".into(), "small".into())],
        ..(*gpu(2)).clone()
    });
    scheduler.upsert(QueuedJob {
        pod_sets: Arc::new([PodSet { shape, count: 1 }]),
        ..job("pooled", 1, 1, 2)
    });
    assert_eq!(
        placed(&scheduler.cycle(&mut sites, at(1), ALL)),
        pairs(&[("pooled", "w")])
    );
    sites.get_mut("w").unwrap().ledger.release("uid-pooled");
    scheduler.upsert(job("small", 2, 1, 1));
    sites.insert("x".into(), site("x", &[1]));
    let cycle = scheduler.cycle(&mut sites, at(600), ALL);
    assert_eq!(scheduler.reservation().map(|(_, w)| w.to_string()), Some("w".into()));
    let mut names = placed(&cycle);
    names.sort();
    assert!(names.contains(&("small".into(), "x".into())), "{names:?}");
    scheduler.upsert(QueuedJob {
        pod_sets: Arc::new([PodSet {
            shape: Arc::new(Shape {
                node_selector: vec![("pool".into(), "small".into())],
                ..(*gpu(2)).clone()
            }),
            count: 1,
        }]),
        ..job("pooled-2", 3, 1, 2)
    });
    assert_eq!(
        placed(&scheduler.cycle(&mut sites, at(601), ALL)),
        pairs(&[("pooled-2", "w")])
    );
}

#[test]
fn the_worker_that_lacks_least_is_reserved_and_kept() {
    let mut sites = fleet(&[("w1", &[8, 8]), ("w2", &[8, 8])]);
    for (name, used) in [("w1", 2), ("w2", 1)] {
        let ledger = &mut sites.get_mut(name).unwrap().ledger;
        ledger.promise(
            &"old".into(),
            &[PodSet {
                shape: gpu(5),
                count: used,
            }],
        );
    }
    let (mut scheduler, _) = run(vec![job("big", 0, 2, 8)], &mut sites);
    scheduler.cycle(&mut sites, at(600), ALL);
    assert_eq!(scheduler.reservation().map(|(_, w)| w.to_string()), Some("w2".into()));
    // The other is nearer for a moment; to move would start the wait anew.
    sites.get_mut("w1").unwrap().ledger.set_wanted("old", 1);
    sites.get_mut("w2").unwrap().ledger.upsert_node(&node("n2", 1));
    scheduler.cycle(&mut sites, at(601), ALL);
    assert_eq!(scheduler.reservation().map(|(_, w)| w.to_string()), Some("w2".into()));
    // A worker that is cordoned is no place to wait for.
    change(&mut sites, "w2", |m| m.cordoned = true);
    scheduler.cycle(&mut sites, at(602), ALL);
    assert_eq!(scheduler.reservation().map(|(_, w)| w.to_string()), Some("w1".into()));
}

#[test]
fn a_job_that_no_worker_could_ever_take_holds_nothing() {
    let (mut scheduler, mut sites) = blocked();
    scheduler.upsert(job("impossible", -1, 1, 16));
    scheduler.cycle(&mut sites, at(1), ALL);
    scheduler.cycle(&mut sites, at(700), ALL);
    assert_eq!(
        scheduler.reservation().map(|(k, _)| k.name.to_string()),
        Some("big".into())
    );
    // Nor is a worker held whose room strangers have, who may stay for good.
    let ledger = &mut sites.get_mut("w").unwrap().ledger;
    ledger.release("old");
    ledger.upsert_pod(&pod("stranger", "n0", 1));
    scheduler.cycle(&mut sites, at(800), ALL);
    assert_eq!(scheduler.reservation(), None);
}
