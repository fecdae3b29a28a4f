//! What waiting jobs are told, and when.

use super::*;

fn told(list: &[(JobKey, crate::api::job::Waiting)]) -> Vec<String> {
    list.iter().map(|(key, _)| key.name.to_string()).collect()
}

#[test]
fn the_nearest_workers_are_named_and_all_are_counted() {
    let mut sites: Sites = (0..12)
        .map(|i| (format!("w{i:02}").into(), site("w", &[i % 4])))
        .collect();
    sites.insert("barred".into(), site("barred", &[8]));
    change(&mut sites, "barred", |m| m.cordoned = true);
    let (mut scheduler, _) = run(vec![job("j", 0, 2, 3)], &mut sites);
    let waiting = scheduler.waiting(&JobKey::new("team", "j"), &mut sites).unwrap();
    assert_eq!(
        waiting.reasons,
        [("Cordoned".to_owned(), 1), ("InsufficientDevices".to_owned(), 12)].into()
    );
    let names: Vec<&str> = waiting.nearest.iter().map(|n| n.cluster.as_str()).collect();
    assert_eq!(names, ["w03", "w07", "w11", "w02", "w06", "w10", "w01", "w05"]);
    assert_eq!(
        waiting.nearest[0].message,
        "3 nvidia.com/gpu free, at most 3 on one node; 2 pods of 3 needed, room for 1"
    );
}

#[test]
fn jobs_are_told_once_in_order_and_not_all_at_once() {
    let mut sites = fleet(&[("w", &[4])]);
    let jobs = (0..25).map(|i| job(&format!("j{i:02}"), i, 1, 8)).collect();
    let (mut scheduler, _) = run(jobs, &mut sites);
    // A second's worth of ten, then as time passes.
    let first = scheduler.changed_reasons(&mut sites, at(0), 100);
    assert_eq!(told(&first), (0..10).map(|i| format!("j{i:02}")).collect::<Vec<_>>());
    assert_eq!(scheduler.changed_reasons(&mut sites, at(0), 100), []);
    assert_eq!(scheduler.changed_reasons(&mut sites, at(1), 4).len(), 4);
    assert_eq!(scheduler.changed_reasons(&mut sites, at(60), 100).len(), 10);
    assert_eq!(scheduler.changed_reasons(&mut sites, at(61), 100).len(), 1);
    assert_eq!(scheduler.changed_reasons(&mut sites, at(120), 100), []);
    // Other numbers are no other reason; another class of reason is.
    sites.get_mut("w").unwrap().ledger.upsert_node(&node("n1", 2));
    scheduler.cycle(&mut sites, at(130), ALL);
    assert_eq!(scheduler.changed_reasons(&mut sites, at(130), 100), []);
    change(&mut sites, "w", |m| m.cordoned = true);
    scheduler.cycle(&mut sites, at(140), ALL);
    let again = scheduler.changed_reasons(&mut sites, at(140), 2);
    assert_eq!(told(&again), ["j00", "j01"]);
    assert_eq!(again[0].1.reasons, [("Cordoned".to_owned(), 1)].into());
}

#[test]
fn a_restart_tells_nothing_again() {
    let mut sites = fleet(&[("w", &[4])]);
    let knows = QueuedJob {
        told: ["InsufficientDevices".to_owned()].into(),
        ..job("knows", 0, 1, 8)
    };
    let (mut scheduler, _) = run(vec![knows, job("new", 1, 1, 8)], &mut sites);
    assert_eq!(told(&scheduler.changed_reasons(&mut sites, at(0), 100)), ["new"]);
    // A job that joins a class whose reasons are known hears them at once.
    scheduler.upsert(job("newer", 2, 1, 8));
    scheduler.cycle(&mut sites, at(1), ALL);
    assert_eq!(told(&scheduler.changed_reasons(&mut sites, at(1), 100)), ["newer"]);
}

#[test]
fn without_workers_a_job_is_told_so() {
    let mut sites = Sites::new();
    let (mut scheduler, _) = run(vec![job("j", 0, 1, 1)], &mut sites);
    let changed = scheduler.changed_reasons(&mut sites, at(0), 100);
    assert_eq!(changed[0].1.reasons, [("NoWorkers".to_owned(), 0)].into());
}

#[test]
fn a_worker_scaled_to_zero_is_not_out_of_devices() {
    let mut sites = fleet(&[("w", &[])]);
    let (mut scheduler, _) = run(vec![job("j", 0, 1, 1)], &mut sites);
    assert_eq!(
        sentence(&mut scheduler, &mut sites, "j"),
        ("NoNodes".into(), "the worker has no nodes".into())
    );
}
