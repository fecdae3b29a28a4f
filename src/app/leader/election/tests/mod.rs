//! First single decisions, then whole elections at a simulated API server: lost and late requests, stopped and crashed candidates, clocks of
//! different origin and rate.

use proptest::prelude::*;

use super::*;

mod simulation;

use simulation::Simulation;

const TIMING: Timing = Timing {
    duration: Duration::from_secs(10),
    renew: Duration::from_secs(2),
};

fn at(seconds: u64) -> Now {
    let wall = Timestamp::from_second(1_700_000_000 + i64::try_from(seconds).unwrap()).unwrap();
    Now {
        mono: Duration::from_secs(seconds),
        wall,
    }
}

fn held_by(holder: Option<&str>, version: &str) -> LeaseRecord {
    LeaseRecord {
        version: version.into(),
        holder: holder.map(Into::into),
        duration: Some(Duration::from_secs(10)),
        transitions: 4,
        acquired: None,
        renewed: Some(at(0).wall),
    }
}

fn written(write: &LeaseWrite, version: &str) -> LeaseRecord {
    LeaseRecord {
        version: version.into(),
        holder: write.holder.clone(),
        duration: Some(write.duration),
        transitions: write.transitions,
        acquired: Some(write.acquired),
        renewed: Some(write.renewed),
    }
}

fn read_step(election: &mut Election, now: u64, id: &str) {
    assert_eq!(election.step(at(now), id), Step::Send(Request::Read));
}

fn write_step(election: &mut Election, now: u64, id: &str) -> LeaseWrite {
    match election.step(at(now), id) {
        Step::Send(Request::Write(write)) => write,
        other => panic!("no write but {other:?}"),
    }
}

fn answer(election: &mut Election, sent: u64, now: u64, answer: Answer) {
    election.answer(Duration::from_secs(sent), Duration::from_secs(now), answer);
}

/// A candidate that leads since second 0 with claim `a`, lease version `1`.
fn leader() -> (Election, LeaseRecord) {
    let mut election = Election::new("me", TIMING);
    read_step(&mut election, 0, "x");
    answer(&mut election, 0, 0, Answer::Absent);
    let write = write_step(&mut election, 0, "a");
    assert_eq!(
        (write.replaces.as_deref(), write.holder.as_deref(), write.transitions),
        (None, Some("me_a"), 0)
    );
    let record = written(&write, "1");
    answer(&mut election, 0, 0, Answer::Written(record.clone()));
    (election, record)
}

#[test]
fn an_absent_lease_is_created_and_the_claim_counts_from_before_the_request() {
    let mut election = Election::new("me", TIMING);
    read_step(&mut election, 0, "x");
    answer(&mut election, 0, 1, Answer::Absent);
    let write = write_step(&mut election, 1, "a");
    answer(&mut election, 1, 3, Answer::Written(written(&write, "1")));
    let claim = election.claim(Duration::from_secs(3)).unwrap();
    assert_eq!(
        (&*claim.id, claim.transitions, claim.renewed, claim.expires),
        ("a", 0, Duration::from_secs(1), Duration::from_secs(1 + 9))
    );
}

#[test]
fn a_claim_ends_by_itself_at_its_time() {
    let (election, _) = leader();
    assert!(election.claim(Duration::from_millis(8_999)).is_some());
    assert!(election.claim(Duration::from_secs(9)).is_none());
}

#[test]
fn a_renewal_replaces_the_version_keeps_the_id_and_extends_the_claim() {
    let (mut election, record) = leader();
    assert_eq!(election.step(at(1), "x"), Step::Wait(Duration::from_secs(2)));
    let write = write_step(&mut election, 2, "x");
    assert_eq!(
        (write.replaces.as_deref(), write.holder.as_deref()),
        (Some("1"), Some("me_a"))
    );
    assert_eq!((write.acquired, write.transitions), (record.acquired.unwrap(), 0));
    assert!(write.renewed > record.renewed.unwrap());
    answer(&mut election, 2, 4, Answer::Written(written(&write, "2")));
    let claim = election.claim(Duration::from_secs(10)).unwrap();
    assert_eq!(
        (&*claim.id, claim.renewed, claim.expires),
        ("a", Duration::from_secs(2), Duration::from_secs(11))
    );
}

#[test]
fn a_renewal_without_an_answer_extends_nothing_and_is_looked_at_soon() {
    let (mut election, _) = leader();
    let write = write_step(&mut election, 2, "x");
    answer(&mut election, 2, 5, Answer::Failed);
    assert_eq!(
        election.claim(Duration::from_secs(5)).unwrap().expires,
        Duration::from_secs(9)
    );
    assert!(matches!(election.step(at(5), "x"), Step::Wait(until) if until <= Duration::from_secs(6)));
    read_step(&mut election, 6, "x");
    answer(&mut election, 6, 6, Answer::Found(written(&write, "2")));
    let again = write_step(&mut election, 6, "x");
    assert_eq!(
        (again.replaces.as_deref(), again.holder.as_deref()),
        (Some("2"), Some("me_a"))
    );
    assert_ne!(again.renewed, write.renewed);
}

#[test]
fn another_holder_seen_ends_the_claim_at_once() {
    let (mut election, _) = leader();
    write_step(&mut election, 2, "x");
    answer(&mut election, 2, 2, Answer::Conflict);
    read_step(&mut election, 2, "x");
    answer(&mut election, 2, 2, Answer::Found(held_by(Some("you_b"), "7")));
    assert!(election.claim(Duration::from_secs(2)).is_none());
    assert_eq!(election.step(at(2), "x"), Step::Wait(Duration::from_secs(4)));
}

#[test]
fn a_lease_deleted_under_its_holder_ends_the_claim_at_once() {
    let (mut election, _) = leader();
    write_step(&mut election, 2, "x");
    answer(&mut election, 2, 2, Answer::Conflict);
    read_step(&mut election, 2, "x");
    answer(&mut election, 2, 2, Answer::Absent);
    assert!(election.claim(Duration::from_secs(2)).is_none());
    let write = write_step(&mut election, 2, "b");
    assert_eq!(
        (write.replaces.as_deref(), write.holder.as_deref()),
        (None, Some("me_b")),
        "a new acquisition"
    );
}

#[test]
fn a_foreign_lease_is_taken_after_its_own_duration_unchanged_and_its_wall_clock_does_not_matter() {
    let mut election = Election::new("me", TIMING);
    // `renewTime` is 100 seconds old by our wall clock, and the lease says 30 seconds.
    let mut record = held_by(Some("you_b"), "7");
    record.duration = Some(Duration::from_secs(30));
    for now in (100..130).step_by(2) {
        read_step(&mut election, now, "x");
        answer(&mut election, now, now, Answer::Found(record.clone()));
        assert!(matches!(election.step(at(now), "x"), Step::Wait(_)), "at {now}");
    }
    read_step(&mut election, 130, "x");
    answer(&mut election, 130, 130, Answer::Found(record));
    let write = write_step(&mut election, 130, "c");
    assert_eq!(
        (write.replaces.as_deref(), write.holder.as_deref()),
        (Some("7"), Some("me_c"))
    );
    assert_eq!((write.transitions, write.duration), (5, Duration::from_secs(10)));
}

#[test]
fn a_foreign_lease_that_changes_is_waited_for_anew() {
    let mut election = Election::new("me", TIMING);
    read_step(&mut election, 0, "x");
    answer(&mut election, 0, 0, Answer::Found(held_by(Some("you_b"), "7")));
    assert!(matches!(election.step(at(0), "x"), Step::Wait(_)));
    read_step(&mut election, 9, "x");
    answer(&mut election, 9, 9, Answer::Found(held_by(Some("you_b"), "8")));
    assert!(matches!(election.step(at(9), "x"), Step::Wait(_)));
    read_step(&mut election, 18, "x");
    answer(&mut election, 18, 18, Answer::Found(held_by(Some("you_b"), "8")));
    assert_eq!(election.step(at(18), "x"), Step::Wait(Duration::from_secs(19)));
}

#[test]
fn a_lease_that_vanished_is_waited_for_as_if_it_were_there() {
    let mut election = Election::new("me", TIMING);
    read_step(&mut election, 0, "x");
    answer(&mut election, 0, 0, Answer::Found(held_by(Some("you_b"), "7")));
    assert!(matches!(election.step(at(0), "x"), Step::Wait(_)));
    read_step(&mut election, 2, "x");
    answer(&mut election, 2, 2, Answer::Absent);
    assert!(matches!(election.step(at(2), "x"), Step::Wait(_)));
    read_step(&mut election, 10, "x");
    answer(&mut election, 10, 10, Answer::Absent);
    let write = write_step(&mut election, 10, "c");
    assert_eq!(
        (write.replaces, write.transitions),
        (None, 5),
        "transitions never go back"
    );
}

#[test]
fn a_lease_that_was_given_back_is_taken_at_once() {
    let mut election = Election::new("me", TIMING);
    read_step(&mut election, 0, "x");
    answer(&mut election, 0, 0, Answer::Found(held_by(None, "7")));
    let write = write_step(&mut election, 0, "c");
    assert_eq!((write.replaces.as_deref(), write.transitions), (Some("7"), 5));
}

#[test]
fn an_acquisition_without_an_answer_that_was_stored_leads_only_after_a_renewal() {
    let mut election = Election::new("me", TIMING);
    read_step(&mut election, 0, "x");
    answer(&mut election, 0, 0, Answer::Found(held_by(None, "7")));
    let write = write_step(&mut election, 0, "c");
    answer(&mut election, 0, 3, Answer::Failed);
    read_step(&mut election, 4, "x");
    answer(&mut election, 4, 4, Answer::Found(written(&write, "8")));
    assert!(election.claim(Duration::from_secs(4)).is_none());
    let renewal = write_step(&mut election, 4, "d");
    assert_eq!(
        (renewal.holder.as_deref(), renewal.transitions),
        (Some("me_c"), 5),
        "the same acquisition"
    );
    answer(&mut election, 4, 4, Answer::Written(written(&renewal, "9")));
    let claim = election.claim(Duration::from_secs(4)).unwrap();
    assert_eq!((&*claim.id, claim.expires), ("c", Duration::from_secs(13)));
}

#[test]
fn after_a_claim_ran_out_the_same_process_acquires_anew_with_another_id_and_at_once() {
    let (mut election, record) = leader();
    write_step(&mut election, 2, "x");
    answer(&mut election, 2, 12, Answer::Failed);
    read_step(&mut election, 13, "x");
    answer(&mut election, 13, 13, Answer::Found(record));
    let write = write_step(&mut election, 13, "b");
    assert_eq!(
        (write.replaces.as_deref(), write.holder.as_deref(), write.transitions),
        (Some("1"), Some("me_b"), 1)
    );
}

#[test]
fn a_renewal_differs_from_the_last_although_the_wall_clock_stands_still() {
    let (mut election, record) = leader();
    let still = Now {
        mono: Duration::from_secs(2),
        wall: at(0).wall,
    };
    let Step::Send(Request::Write(write)) = election.step(still, "x") else {
        panic!("no renewal")
    };
    assert_ne!(write.renewed.as_microsecond(), record.renewed.unwrap().as_microsecond());
}

#[test]
fn a_write_that_was_not_stored_since_it_changed_nothing_is_no_renewal() {
    let (mut election, record) = leader();
    write_step(&mut election, 2, "x");
    answer(&mut election, 2, 2, Answer::Written(record));
    assert_eq!(
        election.claim(Duration::from_secs(2)).unwrap().expires,
        Duration::from_secs(9)
    );
}

#[test]
fn only_an_own_lease_is_given_back() {
    let (mut election, record) = leader();
    let write = election.vacate(&record, at(1).wall).unwrap();
    assert_eq!(
        (write.replaces.as_deref(), write.holder, write.transitions),
        (Some("1"), None, 0)
    );
    assert!(election.claim(Duration::from_secs(1)).is_none());
    assert_eq!(election.vacate(&held_by(Some("you_b"), "7"), at(1).wall), None);
    assert_eq!(
        election.vacate(&held_by(Some("me2_b"), "7"), at(1).wall),
        None,
        "a name that only begins like ours"
    );
    assert_eq!(election.vacate(&held_by(None, "7"), at(1).wall), None);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    /// The property: whatever is lost, late, stopped or crashed, two never lead at once; and when faults stop, one leads and stays.
    #[test]
    fn two_never_lead_at_once_and_one_leads_when_faults_stop(
        seed in any::<u64>(),
        candidates in 2_usize..5,
        loss in 0_u64..60,
        renew in 500_u64..5_000,
    ) {
        let timing = Timing { duration: Duration::from_secs(10), renew: Duration::from_millis(renew) };
        let mut simulation = Simulation::new(seed, candidates, loss, timing);
        simulation.run(400_000)?;
        simulation.calm();
        simulation.run(460_000)?;
        let leader = simulation.leader();
        prop_assert!(leader.is_some(), "nobody leads a minute after the faults");
        simulation.run(520_000)?;
        prop_assert_eq!(simulation.leader(), leader, "leadership moved without a fault");
        prop_assert!(simulation.acquisitions > 0);
    }
}
