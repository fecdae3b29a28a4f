//! Workers that are dark, refuse, or hold what is not ours.

use multikueue::api::job::Phase;

use super::{one_worker, two_workers};
use crate::plan::Plan;
use crate::worker::Road;
use crate::world::{HOUR, MINUTE, SECOND};

#[test]
fn an_object_of_that_name_is_left_alone_and_another_worker_used() {
    for label in [false, true] {
        let mut world = two_workers("foreign object");
        world.run_for(10 * SECOND);
        let job = world.create(&Plan::new("train").region("r0"));
        world.squat_on(0, &job, label);
        world.run_for(5 * MINUTE);
        assert!(!world.is(&job, Phase::Running), "its only worker has the name taken");
        world.assert_foreign_untouched();
        world
            .manager
            .edit_job(&job, |spec| spec.placement.cluster_selector = None);
        world.run_until("it succeeds elsewhere", 5 * MINUTE, |world| {
            world.is(&job, Phase::Succeeded)
        });
        assert_eq!(
            world.status(&job).unwrap().failed_attempts,
            0,
            "a refused create is no attempt"
        );
        world.delete(&job);
        world.run_for(HOUR);
        world.assert_foreign_untouched();
    }
}

#[test]
fn a_worker_that_denies_objects_is_passed_over_and_used_again_when_it_does_not() {
    let mut world = one_worker("denied");
    world.workers[0].denies = true;
    let job = world.create(&Plan::new("train"));
    world.run_for(5 * MINUTE);
    assert!(world.workers[0].jobs.is_empty() && !world.status(&job).unwrap().phase.is_terminal());
    world.workers[0].denies = false;
    world.run_until("it succeeds", HOUR, |world| world.is(&job, Phase::Succeeded));
    assert_eq!(world.status(&job).unwrap().failed_attempts, 0);
}

#[test]
fn a_worker_that_wakes_what_is_created_asleep_takes_no_jobs() {
    let mut world = two_workers("cannot sleep");
    world.workers[0].wakes = true;
    world.run_for(10 * SECOND);
    let job = world.create(&Plan::new("train").region("r0"));
    world.run_for(10 * MINUTE);
    assert!(!world.status(&job).unwrap().phase.is_terminal());
    let elsewhere = world.create(&Plan::new("other"));
    world.run_until("the other succeeds", 10 * MINUTE, |world| {
        world.is(&elsewhere, Phase::Succeeded)
    });
    world.delete(&job);
    world.delete(&elsewhere);
    world.run_for(HOUR);
    world.assert_nothing_left();
}

#[test]
fn a_worker_that_is_dark_before_the_mirror_is_recorded_is_given_up() {
    let mut world = two_workers("dark while unrecorded");
    world.run_for(10 * SECOND);
    let job = world.create(&Plan::new("train"));
    world.run_until("it is assigned", MINUTE, |world| world.place(&job).is_some());
    let first = world.place(&job).unwrap();
    assert_eq!(
        world.status(&job).unwrap().assignment.as_ref().unwrap().mirror_uid,
        None
    );
    world.set_road(first, Road::BlackHole);
    world.run_until("it succeeds elsewhere", 10 * MINUTE, |world| {
        world.is(&job, Phase::Succeeded)
    });
    assert_ne!(world.place(&job), Some(first));
    world.set_road(first, Road::Open);
    world.run_for(HOUR);
    assert!(
        world.workers[first].jobs.is_empty(),
        "what may have arrived there is removed"
    );
}

#[test]
fn a_worker_that_is_dark_while_the_job_runs_keeps_it() {
    let mut world = two_workers("dark while running");
    let job = world.create(&Plan::new("train").millis(30 * MINUTE));
    world.run_until("it runs", MINUTE, |world| world.is(&job, Phase::Running));
    let worker = world.place(&job).unwrap();
    world.set_road(worker, Road::Cut);
    world.run_until("it is unknown", 5 * MINUTE, |world| world.is(&job, Phase::Unknown));
    world.run_for(10 * MINUTE);
    assert!(world.is(&job, Phase::Unknown));
    assert_eq!(world.status(&job).unwrap().last_attempt, 1, "it stays bound");
    world.set_road(worker, Road::Open);
    world.run_until("it runs again", MINUTE, |world| world.is(&job, Phase::Running));
    world.run_until("it succeeds", HOUR, |world| world.is(&job, Phase::Succeeded));
    assert_eq!(world.status(&job).unwrap().last_attempt, 1);
}

#[test]
fn a_blip_of_a_connection_is_not_written_on_jobs() {
    let mut world = two_workers("blip");
    let job = world.create(&Plan::new("train").millis(10 * MINUTE));
    world.run_until("it runs", MINUTE, |world| world.is(&job, Phase::Running));
    world.run_for(30 * SECOND);
    let version = world.manager.jobs[&job].resource_version;
    let worker = world.place(&job).unwrap();
    world.set_road(worker, Road::Cut);
    world.run_for(10 * SECOND);
    world.set_road(worker, Road::Open);
    world.run_for(2 * MINUTE);
    assert_eq!(world.manager.jobs[&job].resource_version, version);
}

#[test]
fn a_job_deleted_while_its_worker_is_dark_leaves_a_debt_that_is_paid() {
    let mut world = two_workers("debt");
    let job = world.create(&Plan::new("train").pods(2).millis(2 * HOUR));
    world.run_until("it runs", MINUTE, |world| world.is(&job, Phase::Running));
    let worker = world.place(&job).unwrap();
    world.set_road(worker, Road::BlackHole);
    world.run_for(MINUTE);
    world.delete(&job);
    world.run_until("it goes", 10 * MINUTE, |world| world.status(&job).is_none());
    let name = world.workers[worker].name.clone();
    assert_eq!(
        world.manager.clusters[&name].status.debts.len(),
        1,
        "the removal is owed"
    );
    assert!(world.workers[worker].jobs.contains_key(&job), "it runs on, unseen");
    world.crash(SECOND);
    world.run_for(MINUTE);
    world.set_road(worker, Road::Open);
    world.run_until("the debt is paid", 10 * MINUTE, |world| {
        world.workers[worker].jobs.is_empty()
    });
    world.run_for(10 * MINUTE);
    world.assert_nothing_left();
}

#[test]
fn a_job_gone_by_force_leaves_an_orphan_that_goes_after_its_grace() {
    let mut world = two_workers("orphan");
    let job = world.create(&Plan::new("train").pods(2).millis(5 * HOUR));
    world.run_until("it runs", MINUTE, |world| world.is(&job, Phase::Running));
    let worker = world.place(&job).unwrap();
    world.manager.vanish_job(&job);
    world.run_for(20 * MINUTE);
    assert!(
        world.workers[worker].jobs.contains_key(&job),
        "it is left alone for its grace"
    );
    world.run_for(HOUR);
    world.assert_nothing_left();
}

#[test]
fn another_cluster_behind_the_same_name_gets_nothing() {
    let mut world = one_worker("identity");
    let job = world.create(&Plan::new("train").millis(HOUR));
    world.run_until("it runs", MINUTE, |world| world.is(&job, Phase::Running));
    world.set_road(0, Road::Cut);
    world.run_for(30 * SECOND);
    let cluster = std::mem::replace(&mut world.workers[0].cluster_uid, "cluster-other".into());
    world.set_road(0, Road::Open);
    world.run_for(MINUTE);
    let waits = world.create(&Plan::new("waits"));
    world.run_for(10 * MINUTE);
    assert!(world.is(&job, Phase::Unknown), "nobody knows what became of it");
    assert!(world.is(&waits, Phase::Queued));
    world.set_road(0, Road::Cut);
    world.run_for(30 * SECOND);
    world.workers[0].cluster_uid = cluster;
    world.set_road(0, Road::Open);
    world.run_until("it is followed again", 5 * MINUTE, |world| {
        world.is(&job, Phase::Running)
    });
    world.run_until("both succeed", 2 * HOUR, |world| {
        world.is(&job, Phase::Succeeded) && world.is(&waits, Phase::Succeeded)
    });
}

#[test]
fn a_cordoned_worker_keeps_its_jobs_and_takes_no_new_ones() {
    let mut world = one_worker("cordon");
    let job = world.create(&Plan::new("train").millis(5 * MINUTE));
    world.run_until("it runs", MINUTE, |world| world.is(&job, Phase::Running));
    world.manager.edit_cluster("w0", |spec| spec.cordoned = true);
    world.run_for(SECOND);
    let next = world.create(&Plan::new("next"));
    world.run_until("it succeeds", 10 * MINUTE, |world| world.is(&job, Phase::Succeeded));
    assert!(world.is(&next, Phase::Queued));
    world.manager.edit_cluster("w0", |spec| spec.cordoned = false);
    world.run_until("the next succeeds", 5 * MINUTE, |world| {
        world.is(&next, Phase::Succeeded)
    });
}

#[test]
fn a_deleted_worker_cluster_stays_until_its_jobs_are_done() {
    let mut world = one_worker("deleted worker");
    let job = world.create(&Plan::new("train").millis(5 * MINUTE));
    world.run_until("it runs", MINUTE, |world| world.is(&job, Phase::Running));
    let now = world.wall();
    world.manager.delete_cluster("w0", now);
    world.run_for(MINUTE);
    assert!(world.manager.clusters.contains_key("w0"), "a job is bound to it");
    world.run_until("it succeeds", 10 * MINUTE, |world| world.is(&job, Phase::Succeeded));
    world.delete(&job);
    world.run_until("the worker goes", 10 * MINUTE, |world| {
        !world.manager.clusters.contains_key("w0")
    });
    assert!(world.workers[0].jobs.is_empty(), "with nothing of ours left on it");
}
