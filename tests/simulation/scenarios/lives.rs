//! Whole lives of jobs.

use multikueue::api::job::{AttemptOutcome, Phase};

use super::{one_worker, two_workers};
use crate::plan::{Fate, Plan};
use crate::world::{HOUR, MINUTE, SECOND, World};

fn reason(world: &World, key: &multikueue::lifecycle::view::JobKey, condition: &str) -> String {
    let status = world.status(key).expect("the job is there");
    let condition = status.conditions.iter().find(|found| found.type_ == condition);
    condition.map(|condition| condition.reason.clone()).unwrap_or_default()
}

#[test]
fn a_job_runs_succeeds_and_leaves_its_mirror_for_a_while() {
    let mut world = one_worker("one job");
    let job = world.create(&Plan::new("train"));
    world.run_until("it runs", MINUTE, |world| world.is(&job, Phase::Running));
    world.run_until("it succeeds", MINUTE, |world| world.is(&job, Phase::Succeeded));
    assert!(
        world.workers[0].jobs.contains_key(&job),
        "the mirror is kept for its logs"
    );
    let status = world.status(&job).unwrap();
    assert_eq!((status.last_attempt, status.failed_attempts, status.run), (1, 0, 1));
    assert!(status.mirror_status.is_some() && status.start_time.is_some() && status.completion_time.is_some());
    world.run_for(HOUR);
    assert!(
        !world.workers[0].jobs.contains_key(&job),
        "after retainMirrorSeconds it goes"
    );
    world.assert_quiet(HOUR);
    world.delete(&job);
    world.run_for(MINUTE);
    world.assert_nothing_left();
}

#[test]
fn one_life_takes_at_most_five_writes_on_the_manager_and_three_on_the_worker() {
    let mut world = one_worker("writes of a life");
    world.run_for(MINUTE);
    // Shorter than the interval at which changes of the raw status alone are followed.
    let job = world.create(&Plan::new("train").millis(5 * SECOND));
    let before = world.sent;
    world.run_until("it succeeds", 2 * MINUTE, |world| world.is(&job, Phase::Succeeded));
    world.run_until("its mirror goes", HOUR, |world| world.workers[0].jobs.is_empty());
    world.run_for(MINUTE);
    let sent = world.writes_of(&job);
    assert!(
        sent.0 <= 5 && sent.1 <= 3,
        "{sent:?} writes on the manager and on the worker, {} requests in all",
        world.sent - before
    );
}

#[test]
fn a_gang_is_placed_where_all_of_it_fits() {
    let mut world = World::new(1, &[&[4], &[4, 4]], crate::trace::Trace::on("gang"));
    let job = world.create(&Plan::new("gang").pods(2).gpus(3));
    world.run_until("it runs", MINUTE, |world| world.is(&job, Phase::Running));
    assert_eq!(world.place(&job), Some(1));
    world.run_until("it succeeds", MINUTE, |world| world.is(&job, Phase::Succeeded));
}

#[test]
fn a_job_too_large_for_every_worker_waits_and_says_why() {
    let mut world = two_workers("too large");
    let job = world.create(&Plan::new("large").pods(2).gpus(8));
    world.run_for(10 * MINUTE);
    assert!(world.is(&job, Phase::Queued));
    let waiting = world.status(&job).unwrap().waiting.clone().expect("an answer");
    assert_eq!(waiting.nearest.len(), 2, "{waiting:?}");
    assert_eq!(waiting.reasons.get("InsufficientDevices"), Some(&2), "{waiting:?}");
    world.assert_quiet(HOUR);
}

#[test]
fn jobs_wait_for_room_and_take_it_when_it_comes() {
    let mut world = one_worker("turns");
    let names = ["a", "b", "c", "d"];
    let jobs: Vec<_> = names
        .iter()
        .map(|name| world.create(&Plan::new(name).gpus(4).millis(30 * SECOND)))
        .collect();
    world.run_for(20 * SECOND);
    let running = jobs.iter().filter(|job| world.is(job, Phase::Running)).count();
    assert_eq!(running, 2, "two of four devices each fit on eight");
    world.run_until("all succeed", 5 * MINUTE, |world| {
        jobs.iter().all(|job| world.is(job, Phase::Succeeded))
    });
}

#[test]
fn a_job_that_fails_is_failed_for_good() {
    let mut world = two_workers("failure");
    let job = world.create(&Plan::new("train").fate(Fate::Fails));
    world.run_until("it fails", MINUTE, |world| world.is(&job, Phase::Failed));
    world.run_for(HOUR);
    assert_eq!(world.status(&job).unwrap().last_attempt, 1, "it is not tried again");
    world.assert_quiet(HOUR);
}

#[test]
fn a_raised_run_runs_a_finished_job_again() {
    let mut world = two_workers("second run");
    let job = world.create(&Plan::new("train"));
    world.run_until("it succeeds", MINUTE, |world| world.is(&job, Phase::Succeeded));
    world.manager.edit_job(&job, |spec| spec.run = 2);
    world.run_until("it runs again", MINUTE, |world| world.is(&job, Phase::Running));
    world.run_until("it succeeds again", MINUTE, |world| world.is(&job, Phase::Succeeded));
    let status = world.status(&job).unwrap();
    assert_eq!((status.run, status.last_attempt), (2, 2));
    world.delete(&job);
    world.run_for(MINUTE);
    world.assert_nothing_left();
}

#[test]
fn a_run_raised_early_waits_for_the_result_of_the_old_one() {
    let mut world = two_workers("early run");
    let job = world.create(&Plan::new("train"));
    world.run_until("it runs", MINUTE, |world| world.is(&job, Phase::Running));
    world.manager.edit_job(&job, |spec| spec.run = 2);
    world.run_until("the second run begins", 2 * MINUTE, |world| {
        world.status(&job).is_some_and(|status| status.run == 2)
    });
    let first = world
        .status(&job)
        .unwrap()
        .attempts
        .first()
        .cloned()
        .expect("the first attempt is told");
    assert_eq!((first.number, first.outcome), (1, AttemptOutcome::Succeeded));
    world.run_until("it succeeds", 2 * MINUTE, |world| world.is(&job, Phase::Succeeded));
}

#[test]
fn a_job_that_does_not_start_is_tried_elsewhere() {
    let mut world = two_workers("start timeout");
    let job = world.create(&Plan::new("train").fate(Fate::NeverStarts));
    world.run_until("it is assigned", MINUTE, |world| world.place(&job).is_some());
    let first = world.place(&job);
    world.run_until("it is tried again", 10 * MINUTE, |world| {
        world.status(&job).is_some_and(|status| status.last_attempt == 2)
    });
    assert_ne!(world.place(&job), first, "another worker is tried");
    let attempt = world.status(&job).unwrap().attempts[0].clone();
    assert_eq!(
        (attempt.outcome, attempt.reason.as_str()),
        (AttemptOutcome::Revoked, "StartTimeout")
    );
}

#[test]
fn after_as_many_failed_attempts_as_allowed_it_fails() {
    let mut world = two_workers("max attempts");
    let job = world.create(&Plan::new("train").fate(Fate::NeverStarts));
    world.run_until("it fails", HOUR, |world| world.is(&job, Phase::Failed));
    let status = world.status(&job).unwrap();
    assert_eq!((status.failed_attempts, status.last_attempt), (3, 3));
    world.run_for(HOUR);
    assert!(
        world.workers.iter().all(|worker| worker.jobs.is_empty()),
        "nothing of it is left on a worker"
    );
    world.assert_quiet(HOUR);
}

#[test]
fn suspend_takes_it_off_its_worker_and_resume_queues_it_anew() {
    let mut world = two_workers("suspend");
    let job = world.create(&Plan::new("train").pods(2).millis(5 * MINUTE));
    world.run_until("it runs", MINUTE, |world| world.is(&job, Phase::Running));
    world.suspend(&job, true);
    world.run_until("it is suspended", MINUTE, |world| world.is(&job, Phase::Suspended));
    assert!(
        world
            .workers
            .iter()
            .all(|worker| worker.jobs.is_empty() && worker.pods.is_empty())
    );
    world.assert_quiet(HOUR);
    world.suspend(&job, false);
    world.run_until("it succeeds", 10 * MINUTE, |world| world.is(&job, Phase::Succeeded));
    let status = world.status(&job).unwrap();
    assert_eq!(
        (status.last_attempt, status.failed_attempts),
        (2, 0),
        "that is no failed attempt"
    );
}

#[test]
fn a_job_created_suspended_goes_nowhere() {
    let mut world = two_workers("created suspended");
    let job = world.create(&Plan::new("train"));
    world.suspend(&job, true);
    world.run_for(MINUTE);
    assert!(world.is(&job, Phase::Suspended));
    assert!(world.workers.iter().all(|worker| worker.jobs.is_empty()));
    assert_eq!(world.status(&job).unwrap().last_attempt, 0);
}

#[test]
fn a_mirror_deleted_by_hand_is_a_failure_and_never_run_again() {
    for foreground in [false, true] {
        let mut world = two_workers("mirror deleted");
        let job = world.create(&Plan::new("train").millis(10 * MINUTE));
        world.run_until("it runs", MINUTE, |world| world.is(&job, Phase::Running));
        let worker = world.place(&job).unwrap();
        world.delete_by_hand(worker, &job, foreground);
        world.run_until("it fails", 5 * MINUTE, |world| world.is(&job, Phase::Failed));
        assert_eq!(reason(&world, &job, "Stalled"), "MirrorDeleted");
        world.run_for(HOUR);
        assert!(world.workers.iter().all(|worker| worker.jobs.is_empty()));
        assert_eq!(world.status(&job).unwrap().last_attempt, 1);
        world.assert_quiet(HOUR);
    }
}

#[test]
fn asleep_by_another_hand_is_shown_and_not_fought() {
    let mut world = one_worker("asleep by hand");
    let job = world.create(&Plan::new("train").millis(10 * MINUTE));
    world.run_until("it runs", MINUTE, |world| world.is(&job, Phase::Running));
    world.sleep_by_hand(0, &job, true);
    world.run_for(HOUR);
    assert!(world.workers[0].jobs[&job].asleep(), "nobody wakes it");
    assert!(!world.status(&job).unwrap().phase.is_terminal());
    world.assert_quiet(HOUR);
    world.sleep_by_hand(0, &job, false);
    world.run_until("it succeeds", HOUR, |world| world.is(&job, Phase::Succeeded));
}

#[test]
fn the_finalizers_of_others_stay() {
    let mut world = one_worker("finalizers");
    let job = world.create(&Plan::new("train"));
    world
        .manager
        .edit_job_finalizers(&job, |list| list.push("example.com/keep".into()));
    world.run_until("it succeeds", MINUTE, |world| world.is(&job, Phase::Succeeded));
    world.delete(&job);
    world.run_for(5 * MINUTE);
    assert_eq!(world.manager.jobs[&job].finalizers, ["example.com/keep"]);
}
