//! What no sequence of sights may do to a job that is recorded on its worker.

use std::time::Duration;

use k8s_openapi::jiff::Timestamp;
use proptest::prelude::*;
use serde_json::json;

use super::absence::Absence;
use super::judge::Ours;
use super::nonce::{Nonces, Wrote};
use super::step::{ManagerStep, Situation, Step, WorkerSide, WorkerStep, step};
use super::view::{JobKey, JobView, MirrorView, ResourceVersion};
use crate::api::job::{Assignment, Phase};
use crate::api::names::FINALIZER;
use crate::api::{MultiKueueJobSpec, MultiKueueJobStatus, Now};
use crate::workload::{TemplateKind, Terminal, WorkloadState};

const GANG: i64 = 4;

/// Bound to a worker, its mirror recorded, at the beginning.
fn recorded() -> JobView {
    let spec: MultiKueueJobSpec = serde_json::from_value(json!({
        "template": {"apiVersion": "batch/v1", "kind": "Job"},
        "policy": {"startTimeoutSeconds": 31_536_000},
    }))
    .unwrap();
    let assignment: Assignment = serde_json::from_value(json!({
        "cluster": "eu", "clusterUID": "c1", "run": 1, "number": 1, "claim": "a", "mirrorUID": "m1",
        "since": "1970-01-01T00:00:00Z",
    }))
    .unwrap();
    JobView {
        key: JobKey::new("team", "train"),
        uid: "j1".into(),
        resource_version: ResourceVersion(1),
        generation: 1,
        created: Timestamp::UNIX_EPOCH,
        deleted: None,
        finalizers: vec![FINALIZER.into()],
        spec,
        status: MultiKueueJobStatus {
            observed_generation: 1,
            phase: Phase::Assigned,
            run: 1,
            last_attempt: 1,
            assignment: Some(assignment),
            ..MultiKueueJobStatus::default()
        },
    }
}

/// What is seen of the worker at one moment.
#[derive(Debug, Clone)]
enum Sight {
    /// It has not answered for so long that the job says so.
    Dark,
    /// Its object is not seen, which proves nothing yet.
    Unseen,
    /// Its object, or another of its name.
    Mirror {
        recorded: bool,
        wrote: Wrote,
        state: WorkloadState,
    },
}

fn mirror(recorded: bool, wrote: Wrote, state: WorkloadState) -> MirrorView {
    MirrorView {
        kind: TemplateKind::Job,
        key: JobKey::new("team", "train"),
        uid: if recorded { "m1" } else { "m2" }.into(),
        resource_version: ResourceVersion(1),
        deleting: false,
        identity: None,
        nonce: Nonces::default().next("a", wrote),
        state,
        raw_status: None,
    }
}

/// The next step of `job` at `second`, of which a status is written at once.
fn see(job: &mut JobView, sight: &Sight, second: i64) -> Step {
    let now = Now {
        wall: Timestamp::from_second(second).unwrap(),
        mono: Duration::from_secs(u64::try_from(second).unwrap()),
    };
    let view = match sight {
        Sight::Mirror { recorded, wrote, state } => Some(mirror(*recorded, *wrote, state.clone())),
        Sight::Dark | Sight::Unseen => None,
    };
    let dark = matches!(sight, Sight::Dark);
    let next = step(&Situation {
        job,
        template: Ok(()),
        plan: None,
        waiting: None,
        follow_due: true,
        claim: "a",
        ours: Ours {
            origin: "o",
            manager_uid: "m",
            cluster_uid: "c1",
        },
        worker: WorkerSide {
            in_use: true,
            lost_since: dark.then_some(Timestamp::UNIX_EPOCH),
            readable: !dark,
            writable: !dark,
            mirror: view.as_ref(),
            absence: Absence::Unproven,
            ..WorkerSide::default()
        },
        now,
    });
    if let Some(ManagerStep::Status(status)) = &next.manager {
        job.status = (**status).clone();
    }
    next
}

/// True when each member has been seen at work or at its end, and its result is none of another object's.
fn shows_a_start(sight: &Sight) -> bool {
    matches!(sight, Sight::Mirror { recorded: true, state, .. }
        if !state.asleep && state.ready + state.succeeded + state.failed >= GANG)
}

fn result(sight: &Sight) -> Option<bool> {
    match sight {
        Sight::Mirror {
            recorded: true, state, ..
        } => state.terminal.as_ref().map(|terminal| terminal.succeeded),
        _ => None,
    }
}

fn any_state() -> impl Strategy<Value = WorkloadState> {
    (
        any::<(bool, bool, bool)>(),
        (0_i64..6, 0_i64..6, 0_i64..6, 0_i64..6),
        prop::option::weighted(0.1, (any::<bool>(), 0_i64..100)),
    )
        .prop_map(
            |((asleep, suspend_acknowledged, start_acknowledged), (active, ready, succeeded, failed), end)| {
                WorkloadState {
                    asleep,
                    suspend_acknowledged,
                    start_acknowledged,
                    active,
                    ready,
                    succeeded,
                    failed,
                    gang: GANG,
                    wanted: GANG,
                    start_time: Some(Timestamp::UNIX_EPOCH),
                    terminal: end.map(|(succeeded, at)| Terminal {
                        succeeded,
                        reason: String::new(),
                        message: String::new(),
                        at: Timestamp::from_second(at).ok(),
                    }),
                    ..WorkloadState::default()
                }
            },
        )
}

fn any_sight() -> impl Strategy<Value = Sight> {
    let wrote = prop::sample::select(vec![Wrote::Creation, Wrote::Release]);
    let seen = (prop::bool::weighted(0.9), wrote, any_state()).prop_map(|(recorded, wrote, state)| Sight::Mirror {
        recorded,
        wrote,
        state,
    });
    prop_oneof![1 => Just(Sight::Dark), 1 => Just(Sight::Unseen), 8 => seen]
}

proptest! {
    /// Cases 40 and 45: whatever is read in between, from whichever object, and however often contact is lost.
    #[test]
    fn no_sequence_of_sights_un_finishes_un_starts_or_flips(sights in prop::collection::vec(any_sight(), 1..30)) {
        let mut job = recorded();
        let mut started = false;
        for (second, sight) in (1_000..).zip(&sights) {
            let before = job.status.clone();
            let next = see(&mut job, sight, second);
            let after = &job.status;
            let ends = !before.phase.is_terminal() && after.phase.is_terminal();

            if before.phase.is_terminal() {
                prop_assert_eq!(after, &before, "what has ended stays as it ended");
                prop_assert!(!matches!(next.worker, Some(WorkerStep::Create | WorkerStep::Release)));
            }
            let expected = result(sight).map(|won| if won { Phase::Succeeded } else { Phase::Failed });
            prop_assert_eq!(ends.then_some(after.phase), expected.filter(|_| !before.phase.is_terminal()));
            prop_assert_eq!(after.completion_time.is_some(), after.phase.is_terminal());
            prop_assert!(before.start_time.is_none() || after.start_time.is_some());

            started |= shows_a_start(sight);
            prop_assert!(after.phase != Phase::Assigned || before.phase != Phase::Running);
            prop_assert!(after.phase != Phase::Running || started, "nothing has shown that it started");
            let in_contact = matches!(sight, Sight::Mirror { recorded: true, .. });
            prop_assert!(after.phase != Phase::Assigned || !started || !in_contact, "what has started stays started");
            prop_assert_eq!(after.phase == Phase::Unknown, !after.phase.is_terminal() && match sight {
                Sight::Dark => true,
                _ => before.phase == Phase::Unknown && !in_contact,
            });
            prop_assert_eq!(&after.assignment, &before.assignment);
        }
    }
}

fn counts(asleep: bool, ready: i64, succeeded: i64, failed: i64) -> Sight {
    Sight::Mirror {
        recorded: true,
        wrote: Wrote::Release,
        state: WorkloadState {
            asleep,
            ready,
            succeeded,
            failed,
            gang: GANG,
            ..WorkloadState::default()
        },
    }
}

#[test]
fn it_runs_when_each_member_has_run_or_finished_once_and_not_while_it_sleeps() {
    for (sight, phase) in [
        (counts(false, 0, 0, 0), Phase::Assigned),
        (counts(false, 3, 0, 0), Phase::Assigned),
        (counts(false, 4, 0, 0), Phase::Running),
        (counts(false, 2, 1, 1), Phase::Running),
        (counts(false, 0, 4, 0), Phase::Running),
        (counts(true, 4, 0, 0), Phase::Assigned),
    ] {
        let mut job = recorded();
        see(&mut job, &sight, 10);
        assert_eq!(job.status.phase, phase, "{sight:?}");
    }
}

#[test]
fn it_was_running_before_contact_was_lost_and_is_running_after() {
    let mut job = recorded();
    for (sight, phase) in [
        (counts(false, 4, 0, 0), Phase::Running),
        (Sight::Dark, Phase::Unknown),
        (counts(false, 1, 0, 0), Phase::Running),
    ] {
        see(&mut job, &sight, 1_000);
        assert_eq!(job.status.phase, phase, "{sight:?}");
    }
}
