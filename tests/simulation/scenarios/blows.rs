//! One life, and one blow after each request of it: whatever the moment, the end is the same.

use multikueue::api::job::Phase;
use multikueue::dispatcher::RefusalKind;
use multikueue::lifecycle::view::JobKey;

use super::two_workers;
use crate::network::Way;
use crate::plan::Plan;
use crate::trace::Trace;
use crate::world::{HOUR, MINUTE, Ms, SECOND, World};

/// Lives one life of a job, with a blow after its request `k`. True if the life had that many.
fn life(title: &str, k: u64, end: Phase, blow: impl FnOnce(&mut World, &JobKey) + 'static) -> bool {
    let mut world = two_workers(&format!("{title} {k}"));
    world.run_for(10 * SECOND);
    let job = world.create(&Plan::new("train").pods(2));
    let key = job.clone();
    world.after_sent = Some((world.sent + k, Box::new(move |world| blow(world, &key))));
    world.run_for(30 * MINUTE);
    let struck = world.after_sent.is_none();
    match world.status(&job) {
        Some(status) => assert_eq!(status.phase, end, "{title} {k}: {status:#?}"),
        None => panic!("{title} {k}: the job is gone"),
    }
    world.assert_quiet(HOUR);
    world.delete(&job);
    world.run_for(HOUR);
    world.assert_nothing_left();
    world.assert_quiet(HOUR);
    struck
}

fn each_request(mut strike: impl FnMut(u64) -> bool) {
    let mut k = 1;
    while strike(k) {
        k += 1;
        assert!(k < 100, "one life takes a hundred requests");
    }
    assert!(
        k > 6,
        "one life has at least its assignment, its mirror, its record, its release and its result"
    );
}

#[test]
fn a_crash_after_any_request_changes_nothing() {
    for away in [1, 20 * SECOND, 10 * MINUTE] {
        each_request(|k| life("crash after", k, Phase::Succeeded, move |world, _| world.crash(away)));
    }
}

#[test]
fn a_crash_that_takes_its_last_request_along_changes_nothing() {
    each_request(|k| {
        life("crash with", k, Phase::Succeeded, |world, _| {
            world.flights.clear();
            world.crash(SECOND);
        })
    });
}

fn every_way(title: &str, way: Way) {
    each_request(|k| {
        let mut world = World::new(1, &[&[8], &[8]], Trace::on(format!("{title} {k}")));
        world.weather.early = 500;
        world.run_for(10 * SECOND);
        let job = world.create(&Plan::new("train").pods(2));
        let at = world.sent + k;
        world.oracle = Some(Box::new(move |number, _| (number == at).then_some(way)));
        world.run_for(30 * MINUTE);
        let struck = world.sent >= at;
        assert!(
            world.is(&job, Phase::Succeeded),
            "{title} {k}: {:#?}",
            world.status(&job)
        );
        assert_eq!(
            world.status(&job).map(|status| status.failed_attempts),
            Some(0),
            "{title} {k}"
        );
        world.assert_quiet(HOUR);
        world.delete(&job);
        world.run_for(HOUR);
        world.assert_nothing_left();
        struck
    });
}

#[test]
fn any_request_may_be_lost() {
    every_way("lost request", Way::LostBefore);
}

#[test]
fn any_answer_may_be_lost() {
    every_way("lost answer", Way::LostAfter);
}

#[test]
fn any_request_may_find_a_busy_server() {
    every_way("busy", Way::Refused(RefusalKind::Busy));
    every_way("broken", Way::Refused(RefusalKind::Server));
}

#[test]
fn any_request_may_not_be_sent() {
    every_way("not sent", Way::NotSent);
}

#[test]
fn suspended_after_any_request_it_rests_or_has_its_result() {
    each_request(|k| {
        let mut world = two_workers(&format!("suspended after {k}"));
        world.run_for(10 * SECOND);
        let job = world.create(&Plan::new("train").pods(2));
        let key = job.clone();
        world.after_sent = Some((world.sent + k, Box::new(move |world| world.suspend(&key, true))));
        world.run_for(30 * MINUTE);
        let struck = world.after_sent.is_none();
        let phase = world.status(&job).unwrap().phase;
        assert!(matches!(phase, Phase::Suspended | Phase::Succeeded), "{phase:?}");
        world.assert_quiet(HOUR);
        world.suspend(&job, false);
        world.run_until("it succeeds", HOUR, |world| world.is(&job, Phase::Succeeded));
        world.delete(&job);
        world.run_for(HOUR);
        world.assert_nothing_left();
        struck
    });
}

fn deleted_after(title: &str, away: Option<Ms>) {
    each_request(|k| {
        let mut world = two_workers(&format!("{title} {k}"));
        world.run_for(10 * SECOND);
        let job = world.create(&Plan::new("train").pods(2));
        let key = job.clone();
        let blow = move |world: &mut World| {
            world.delete(&key);
            if let Some(away) = away {
                world.crash(away);
            }
        };
        world.after_sent = Some((world.sent + k, Box::new(blow)));
        world.run_for(30 * MINUTE);
        let struck = world.after_sent.is_none();
        if !struck {
            world.delete(&job);
        }
        world.run_until("it is gone", 10 * MINUTE, |world| world.status(&job).is_none());
        world.run_for(HOUR);
        world.assert_nothing_left();
        world.assert_quiet(HOUR);
        struck
    });
}

#[test]
fn deleted_after_any_request_it_leaves_nothing() {
    deleted_after("deleted after", None);
}

#[test]
fn deleted_while_the_operator_is_away_it_leaves_nothing() {
    deleted_after("deleted in the dark after", Some(MINUTE));
}

#[test]
fn deleted_and_created_again_the_second_has_its_own_life() {
    each_request(|k| {
        let mut world = two_workers(&format!("again after {k}"));
        world.run_for(10 * SECOND);
        let plan = Plan::new("train").pods(2);
        let job = world.create(&plan);
        let first = world.manager.jobs[&job].uid.clone();
        let key = job.clone();
        world.after_sent = Some((world.sent + k, Box::new(move |world| world.delete(&key))));
        world.run_for(10 * MINUTE);
        let struck = world.after_sent.is_none();
        if world.status(&job).is_none() {
            world.create(&plan);
            world.run_until("the second succeeds", HOUR, |world| world.is(&job, Phase::Succeeded));
            assert_ne!(world.manager.jobs[&job].uid, first);
        }
        struck
    });
}

#[test]
fn a_finished_job_is_not_run_again_after_a_restart() {
    let mut world = two_workers("restart after the end");
    let job = world.create(&Plan::new("train"));
    world.run_until("it succeeds", MINUTE, |world| world.is(&job, Phase::Succeeded));
    let worker = world.place(&job).unwrap();
    world.delete_by_hand(worker, &job, false);
    world.crash(MINUTE);
    world.run_for(HOUR);
    assert!(world.is(&job, Phase::Succeeded));
    assert!(
        world.workers.iter().all(|worker| worker.jobs.is_empty()),
        "nothing is created for it"
    );
    assert_eq!(world.status(&job).unwrap().last_attempt, 1);
    world.assert_quiet(HOUR);
}
