//! Order, budget, and that nothing is tried twice.

use proptest::prelude::*;

use super::*;

#[test]
fn priority_goes_before_age_and_age_before_name() {
    let mut sites = fleet(&[("w", &[3])]);
    let urgent = QueuedJob {
        priority: 10,
        ..job("urgent", 9, 1, 1)
    };
    let jobs = vec![job("b", 1, 1, 1), job("a", 1, 1, 1), job("c", 0, 1, 1), urgent];
    let (scheduler, placed) = run(jobs, &mut sites);
    assert_eq!(placed, pairs(&[("urgent", "w"), ("c", "w"), ("a", "w")]));
    assert!(scheduler.get(&JobKey::new("team", "b")).is_some());
}

#[test]
fn a_job_that_does_not_fit_is_passed_over() {
    let (_, placed) = run(
        vec![job("big", 0, 1, 8), job("small", 1, 1, 1)],
        &mut fleet(&[("w", &[4])]),
    );
    assert_eq!(placed, pairs(&[("small", "w")]));
}

#[test]
fn nothing_is_tried_again_before_room_grew() {
    let mut sites = fleet(&[("w1", &[4]), ("w2", &[4])]);
    let mut jobs: Vec<QueuedJob> = (0..500).map(|i| job(&format!("j{i}"), i, 1, 8 + i % 5)).collect();
    jobs.push(job("fits", 1000, 1, 4));
    let (mut scheduler, placed) = run(jobs, &mut sites);
    assert_eq!(placed, pairs(&[("fits", "w1")]));
    let work = |sites: &Sites| sites.values().map(|s| s.ledger.work()).sum::<u64>();
    let before = work(&sites);
    let cycle = scheduler.cycle(&mut sites, at(1), ALL);
    assert_eq!((cycle.passed_over, work(&sites)), (0, before));
    // A node changed on one worker: each of the five classes looks at that worker alone.
    sites.get_mut("w2").unwrap().ledger.upsert_node(&node("n0", 8));
    let cycle = scheduler.cycle(&mut sites, at(2), ALL);
    assert_eq!(placed_count(&cycle), 1);
    assert!(work(&sites) - before < 30, "{} nodes looked at", work(&sites) - before);
}

fn placed_count(cycle: &Cycle) -> usize {
    cycle.placed.len()
}

#[test]
fn a_job_that_changed_is_another_job() {
    let mut sites = fleet(&[("w", &[4])]);
    let (mut scheduler, _) = run(vec![job("j", 0, 1, 8)], &mut sites);
    scheduler.upsert(job("j", 0, 1, 4));
    assert_eq!(placed(&scheduler.cycle(&mut sites, at(1), ALL)), pairs(&[("j", "w")]));
    assert!(scheduler.is_empty());
}

#[test]
fn a_worker_that_takes_the_place_of_another_is_tried() {
    let mut sites = fleet(&[("w", &[4])]);
    let (mut scheduler, _) = run(vec![job("j", 0, 1, 8)], &mut sites);
    sites = fleet(&[("w", &[8])]);
    scheduler.forget_site("w");
    assert_eq!(placed(&scheduler.cycle(&mut sites, at(1), ALL)), pairs(&[("j", "w")]));
    // One that joins, too.
    scheduler.upsert(job("k", 0, 1, 16));
    scheduler.cycle(&mut sites, at(2), ALL);
    sites.insert("a".into(), site("a", &[16]));
    assert_eq!(placed(&scheduler.cycle(&mut sites, at(3), ALL)), pairs(&[("k", "a")]));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_queue_is_served_in_order_and_nothing_that_fits_waits(
        nodes in prop::collection::vec(prop::collection::vec(1..9i64, 0..4), 1..4),
        jobs in prop::collection::vec((-1..2i32, 0..5i64, 1..4i64, 1..9i64, prop::option::of(0..4usize)), 1..25),
        budget in prop::option::of(1..20usize),
    ) {
        let fleet = || -> Sites {
            nodes.iter().enumerate().map(|(i, n)| (format!("w{i}").into(), site(&format!("w{i}"), n))).collect()
        };
        let jobs: Vec<QueuedJob> = jobs.iter().enumerate().map(|(i, (priority, age, count, gpus, only))| {
            let selector = only.map(|w| select("name", &format!("w{w}")));
            QueuedJob {
                priority: *priority,
                placement: Arc::new(Placement { cluster_selector: selector, ..Placement::default() }),
                ..job(&format!("j{i}"), *age, *count, *gpus)
            }
        }).collect();
        let mut sites = fleet();
        let mut scheduler = scheduler();
        jobs.iter().cloned().for_each(|j| scheduler.upsert(j));
        let mut placed = BTreeMap::new();
        for _ in 0..100_000 {
            let cycle = scheduler.cycle(&mut sites, at(0), budget.unwrap_or(ALL));
            placed.extend(cycle.placed.into_iter().map(|p| (p.key, p.site)));
            if cycle.finished {
                break;
            }
        }
        prop_assert_eq!(placed.len() + scheduler.len(), jobs.len());
        for site in sites.values() {
            prop_assert_eq!(site.ledger.unplaced(), 0);
        }
        // Served again one by one, in order: each placed job fits where it went, each other fits nowhere at its turn.
        let mut sites = fleet();
        let mut order = jobs.clone();
        order.sort_by_key(QueuedJob::rank);
        for job in order {
            if let Some(name) = placed.get(&job.key) {
                let site = sites.get_mut(name).unwrap();
                prop_assert!(site.ledger.plan(&job.pod_sets).is_some());
                site.ledger.promise(&job.uid, &job.pod_sets);
            } else {
                for (name, site) in &mut sites {
                    let admitted = job.placement.cluster_selector.as_ref().is_none_or(|s| *s == select("name", name));
                    prop_assert!(!admitted || site.ledger.plan(&job.pod_sets).is_none(), "{} fits on {name}", job.key);
                }
            }
        }
    }
}
