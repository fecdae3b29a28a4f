//! Conditions of our objects: their types, and the one way to set them.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use k8s_openapi::jiff::Timestamp;

use super::job::Phase;
pub use super::reasons::{JobReason, WorkerReason};

/// Of a job: it runs or has succeeded (kstatus).
pub const READY: &str = "Ready";
/// Of a job: it is on its way to running (kstatus); absent when it is not.
pub const RECONCILING: &str = "Reconciling";
/// Of a job: it has failed and nothing more will happen by itself (kstatus); absent when it has not.
pub const STALLED: &str = "Stalled";
/// Of a job: a worker has it, or had it to the end.
pub const DISPATCHED: &str = "Dispatched";
/// Of a job: what its status says is what its worker says now.
pub const STATUS_FRESH: &str = "StatusFresh";
/// Of a `WorkerCluster`: it answers, and is the cluster that it was.
pub const CONNECTED: &str = "Connected";
/// Of a `WorkerCluster`: the operator may do there what it needs to.
pub const AUTHORIZED: &str = "Authorized";
/// Of a `WorkerCluster`: its free devices are known.
pub const CAPACITY_KNOWN: &str = "CapacityKnown";

/// Most characters of a message that the API server takes (`metav1.Condition`).
const MAX_MESSAGE: usize = super::schema::MAX_MESSAGE as usize;

/// Sets one condition and says whether anything changed. `lastTransitionTime` moves only with the status. A reason that is not one
/// word becomes `Unspecified`, and a message is cut at what the API server takes: a status that is refused for one text would say
/// nothing at all.
pub fn set_condition(
    conditions: &mut Vec<Condition>,
    type_: &str,
    status: &str,
    reason: &str,
    message: &str,
    generation: i64,
    now: Timestamp,
) -> bool {
    let next = Condition {
        type_: type_.to_owned(),
        status: status.to_owned(),
        reason: if is_reason(reason) {
            reason.to_owned()
        } else {
            "Unspecified".to_owned()
        },
        message: message.chars().take(MAX_MESSAGE).collect(),
        observed_generation: Some(generation),
        last_transition_time: Time(now),
    };
    let Some(present) = conditions.iter_mut().find(|condition| condition.type_ == type_) else {
        conditions.push(next);
        return true;
    };
    let last_transition_time = if present.status == next.status {
        present.last_transition_time.clone()
    } else {
        next.last_transition_time
    };
    let next = Condition {
        last_transition_time,
        ..next
    };
    if *present == next {
        return false;
    }
    *present = next;
    true
}

/// Removes a condition and says whether it was there.
pub fn remove_condition(conditions: &mut Vec<Condition>, type_: &str) -> bool {
    let before = conditions.len();
    conditions.retain(|condition| condition.type_ != type_);
    conditions.len() != before
}

/// Whether a condition is there and `True`.
pub fn is_true(conditions: &[Condition], type_: &str) -> bool {
    conditions
        .iter()
        .any(|condition| condition.type_ == type_ && condition.status == "True")
}

/// Sets the conditions that follow from a phase, and says whether anything changed.
///
/// kstatus has a rule of its own for Jobs, and this is it: a job is *current* from running on, not only when it has succeeded; one
/// that waits or starts is in progress; one that failed has failed. In phase `Unknown` the last values stay, since they are
/// the last that is known, and `StatusFresh` says that they are old.
pub fn phase_conditions(
    phase: Phase,
    reason: &str,
    message: &str,
    generation: i64,
    now: Timestamp,
    conditions: &mut Vec<Condition>,
) -> bool {
    let mut set = |type_: &str, status: Option<&str>, reason: &str, message: &str| match status {
        Some(status) => set_condition(conditions, type_, status, reason, message, generation, now),
        None => remove_condition(conditions, type_),
    };
    // Abnormal-true conditions are absent when they do not hold, as kstatus asks for.
    let (ready, reconciling, stalled, dispatched) = match phase {
        Phase::Unknown => return set(STATUS_FRESH, Some("False"), reason, message),
        Phase::Queued => ("False", Some("True"), None, Some("False")),
        Phase::Assigned => ("False", Some("True"), None, Some("True")),
        Phase::Running | Phase::Succeeded => ("True", None, None, Some("True")),
        Phase::Suspended => ("False", None, None, Some("False")),
        // Whether it ever was on a worker is as before.
        Phase::Failed => ("False", None, Some("True"), None),
    };
    let mut changed = set(READY, Some(ready), reason, message);
    changed |= set(RECONCILING, reconciling, reason, message);
    changed |= set(STALLED, stalled, reason, message);
    if dispatched.is_some() {
        changed |= set(DISPATCHED, dispatched, reason, message);
    }
    changed | set(STATUS_FRESH, Some("True"), JobReason::Fresh.as_str(), "")
}

/// The API server takes `^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`.
fn is_reason(reason: &str) -> bool {
    let bytes = reason.as_bytes();
    bytes.first().is_some_and(u8::is_ascii_alphabetic)
        && bytes
            .last()
            .is_some_and(|last| last.is_ascii_alphanumeric() || *last == b'_')
        && bytes
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || b"_,:".contains(byte))
        && bytes.len() <= 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn statuses(conditions: &[Condition]) -> Vec<(&str, &str)> {
        conditions
            .iter()
            .map(|condition| (condition.type_.as_str(), condition.status.as_str()))
            .collect()
    }

    #[test]
    fn the_transition_time_moves_with_the_status_only() {
        let mut conditions = Vec::new();
        assert!(set_condition(&mut conditions, READY, "False", "Queued", "a", 1, at(10)));
        assert!(
            !set_condition(&mut conditions, READY, "False", "Queued", "a", 1, at(20)),
            "nothing new"
        );
        assert_eq!(conditions[0].last_transition_time.0, at(10));
        assert!(
            set_condition(&mut conditions, READY, "False", "NoRoom", "b", 2, at(30)),
            "a new reason is news"
        );
        assert_eq!(conditions[0].last_transition_time.0, at(10));
        assert_eq!(conditions[0].observed_generation, Some(2));
        assert!(set_condition(&mut conditions, READY, "True", "Running", "", 2, at(40)));
        assert_eq!(conditions[0].last_transition_time.0, at(40));
        assert_eq!(conditions.len(), 1);
    }

    #[test]
    fn a_text_that_the_api_server_would_refuse_does_not_lose_the_status() {
        let mut conditions = Vec::new();
        let long = "ü".repeat(MAX_MESSAGE + 5);
        set_condition(&mut conditions, READY, "False", "not one word", &long, 1, at(0));
        assert_eq!(conditions[0].reason, "Unspecified");
        assert_eq!(conditions[0].message.chars().count(), MAX_MESSAGE);
        for reason in ["", "9Lives", "Trailing:", "Ümlaut"] {
            assert!(!is_reason(reason), "{reason}");
        }
    }

    #[test]
    fn every_reason_is_one_word_and_stands_for_one_thing() {
        let jobs = JobReason::ALL.iter().map(|reason| reason.as_str());
        let workers = WorkerReason::ALL.iter().map(|reason| reason.as_str());
        for reason in jobs.chain(workers) {
            assert!(is_reason(reason), "{reason}");
        }
        let mut words: Vec<_> = JobReason::ALL.iter().map(|reason| reason.as_str()).collect();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), JobReason::ALL.len());
    }

    #[test]
    fn each_phase_reads_in_kstatus_as_the_design_says() {
        let expected: [(Phase, &[(&str, &str)]); 6] = [
            (
                Phase::Queued,
                &[
                    (READY, "False"),
                    (RECONCILING, "True"),
                    (DISPATCHED, "False"),
                    (STATUS_FRESH, "True"),
                ],
            ),
            (
                Phase::Assigned,
                &[
                    (READY, "False"),
                    (RECONCILING, "True"),
                    (DISPATCHED, "True"),
                    (STATUS_FRESH, "True"),
                ],
            ),
            (
                Phase::Running,
                &[(READY, "True"), (DISPATCHED, "True"), (STATUS_FRESH, "True")],
            ),
            (
                Phase::Succeeded,
                &[(READY, "True"), (DISPATCHED, "True"), (STATUS_FRESH, "True")],
            ),
            (
                Phase::Failed,
                &[(READY, "False"), (STALLED, "True"), (STATUS_FRESH, "True")],
            ),
            (
                Phase::Suspended,
                &[(READY, "False"), (DISPATCHED, "False"), (STATUS_FRESH, "True")],
            ),
        ];
        for (phase, expected) in expected {
            let mut conditions = Vec::new();
            assert!(phase_conditions(phase, "Because", "of this", 3, at(1), &mut conditions));
            assert_eq!(statuses(&conditions), expected, "{phase:?}");
            assert!(
                !phase_conditions(phase, "Because", "of this", 3, at(9), &mut conditions),
                "{phase:?} again is no news"
            );
        }
    }

    #[test]
    fn every_phase_follows_every_other_without_leftovers() {
        let phases = [
            Phase::Queued,
            Phase::Assigned,
            Phase::Running,
            Phase::Succeeded,
            Phase::Failed,
            Phase::Suspended,
        ];
        for from in phases {
            for to in phases {
                let mut moved = Vec::new();
                phase_conditions(from, "Before", "", 1, at(1), &mut moved);
                phase_conditions(to, "After", "", 2, at(2), &mut moved);
                let mut fresh = Vec::new();
                phase_conditions(to, "After", "", 2, at(2), &mut fresh);
                // Whether a failed job was dispatched is as it was before.
                moved.retain(|condition| to != Phase::Failed || condition.type_ != DISPATCHED);
                let mut moved = statuses(&moved);
                let mut fresh = statuses(&fresh);
                moved.sort_unstable();
                fresh.sort_unstable();
                assert_eq!(moved, fresh, "{from:?} to {to:?}");
            }
        }
    }

    #[test]
    fn an_unknown_job_keeps_what_was_last_known() {
        let mut conditions = Vec::new();
        phase_conditions(Phase::Running, "Running", "", 3, at(1), &mut conditions);
        let before = conditions.clone();
        assert!(phase_conditions(
            Phase::Unknown,
            "WorkerLost",
            "last contact at 12:00",
            4,
            at(9),
            &mut conditions
        ));
        for condition in &before {
            assert_eq!(
                conditions.contains(condition),
                condition.type_ != STATUS_FRESH,
                "{}",
                condition.type_
            );
        }
        assert!(is_true(&conditions, READY));
        assert!(!is_true(&conditions, STATUS_FRESH));
        assert!(phase_conditions(
            Phase::Running,
            "Running",
            "",
            4,
            at(20),
            &mut conditions
        ));
        assert!(is_true(&conditions, STATUS_FRESH));
    }
}
