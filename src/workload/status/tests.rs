use k8s_openapi::jiff::Timestamp;
use proptest::prelude::*;

use super::*;
use crate::workload::Terminal;

/// Four members, released.
fn awake() -> WorkloadState {
    WorkloadState {
        gang: 4,
        wanted: 4,
        start_acknowledged: true,
        start_time: Some(Timestamp::UNIX_EPOCH),
        ..WorkloadState::default()
    }
}

fn ended(succeeded: bool) -> WorkloadState {
    WorkloadState {
        terminal: Some(Terminal {
            succeeded,
            reason: String::new(),
            message: String::new(),
            at: Some(Timestamp::UNIX_EPOCH),
        }),
        ..awake()
    }
}

/// Case 45.
#[test]
fn an_absent_status_is_neither_active_nor_done() {
    let seen = observe(
        Phase::Assigned,
        &WorkloadState {
            gang: 4,
            ..WorkloadState::default()
        },
        false,
    );
    assert_eq!(
        (seen.phase, seen.started, seen.completion_time),
        (Some(Phase::Assigned), false, None)
    );
    // Not even a gang of nobody has started before its controller has seen it awake.
    assert!(!observe(Phase::Assigned, &WorkloadState::default(), false).started);
}

#[test]
fn it_runs_when_each_member_has_run_or_finished_once() {
    for (ready, succeeded, failed, started) in [
        (3, 0, 0, false),
        (4, 0, 0, true),
        (2, 2, 0, true),
        (2, 1, 1, true),
        (0, 4, 0, true),
    ] {
        let seen = observe(
            Phase::Assigned,
            &WorkloadState {
                ready,
                succeeded,
                failed,
                ..awake()
            },
            false,
        );
        assert_eq!(seen.started, started);
        assert_eq!(seen.phase, Some(if started { Phase::Running } else { Phase::Assigned }));
        assert_eq!(seen.start_time.is_some(), started);
    }
}

#[test]
fn what_has_started_stays_started_when_pods_go_away() {
    let seen = observe(Phase::Running, &WorkloadState { ready: 1, ..awake() }, true);
    assert_eq!((seen.phase, seen.started), (Some(Phase::Running), true));
}

#[test]
fn counts_left_over_on_a_sleeper_start_nothing() {
    let sleeper = WorkloadState {
        asleep: true,
        ready: 4,
        ..awake()
    };
    assert_eq!(observe(Phase::Assigned, &sleeper, false).phase, Some(Phase::Assigned));
}

#[test]
fn straight_from_no_status_to_failed_is_failed() {
    let seen = observe(Phase::Assigned, &ended(false), false);
    assert_eq!((seen.phase, seen.started), (Some(Phase::Failed), true));
    assert_eq!(seen.completion_time, Some(Timestamp::UNIX_EPOCH));
}

fn any_state() -> impl Strategy<Value = WorkloadState> {
    let counts = (0_i64..6, 0_i64..6, 0_i64..6, 0_i64..6, 0_i64..5);
    (
        any::<(bool, bool)>(),
        counts,
        prop::option::weighted(0.2, any::<bool>()),
    )
        .prop_map(
            |((asleep, start_acknowledged), (active, ready, succeeded, failed, gang), terminal)| WorkloadState {
                asleep,
                start_acknowledged,
                active,
                ready,
                succeeded,
                failed,
                gang,
                terminal: terminal.and_then(|succeeded| ended(succeeded).terminal),
                ..awake()
            },
        )
}

proptest! {
    /// Case 40: whatever is read in between, from whichever object.
    #[test]
    fn no_sequence_un_finishes_un_starts_or_flips(states in prop::collection::vec(any_state(), 1..20)) {
        let (mut phase, mut started, mut completed) = (Phase::Assigned, false, false);
        for state in states {
            let seen = observe(phase, &state, started);
            let next = seen.phase.unwrap_or(phase);
            prop_assert!(!started || seen.started);
            prop_assert!(!phase.is_terminal() || next == phase);
            prop_assert!(phase != Phase::Running || next != Phase::Assigned);
            prop_assert_eq!(next == Phase::Running, seen.started && !next.is_terminal());
            prop_assert!(seen.completion_time.is_none() || seen.phase.is_some_and(Phase::is_terminal));
            prop_assert!(!completed || seen.completion_time.is_none());
            prop_assert!(!next.is_terminal() || phase.is_terminal() || state.terminal.is_some());
            (phase, started) = (next, seen.started);
            completed |= seen.completion_time.is_some();
        }
    }
}
