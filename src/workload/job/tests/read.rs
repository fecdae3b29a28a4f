use k8s_openapi::jiff::Timestamp;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::job;
use crate::workload::job::{JobLite, MAX_RAW_STATUS};
use crate::workload::{Job, Workload, WorkloadState};

/// A Job of four members at once and ten in all.
fn state_of(suspend: bool, status: &Value) -> WorkloadState {
    let mut object = job(&json!({"parallelism": 4, "completions": 10, "suspend": suspend}));
    object["status"] = status.clone();
    Job.read(&object).unwrap().0
}

fn condition(kind: &str, status: &str) -> Value {
    json!({"type": kind, "status": status, "reason": "Because", "message": "of this", "lastTransitionTime": "2026-01-01T00:00:05Z"})
}

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// Cases 41 and 45.
#[test]
fn an_absent_or_empty_status_is_not_started_and_not_done() {
    let expected = WorkloadState {
        gang: 4,
        wanted: 4,
        ..WorkloadState::default()
    };
    assert_eq!(state_of(false, &json!(null)), expected);
    assert_eq!(state_of(false, &json!({})), expected);
    assert_eq!(
        state_of(true, &json!({})),
        WorkloadState {
            asleep: true,
            ..expected
        }
    );
    let (state, raw) = Job.read(&json!({"metadata": {"name": "a"}})).unwrap();
    assert_eq!((state.gang, state.terminal, raw), (1, None, None));
}

#[test]
fn counts_are_read_as_they_stand_even_when_they_contradict_each_other() {
    let state = state_of(
        false,
        &json!({"active": 2, "ready": 3, "terminating": 1, "succeeded": 4, "failed": 5, "startTime": "2026-01-01T00:00:00Z"}),
    );
    assert_eq!(
        (
            state.active,
            state.ready,
            state.terminating,
            state.succeeded,
            state.failed
        ),
        (2, 3, 1, 4, 5)
    );
    assert_eq!(state.start_time, Some(at("2026-01-01T00:00:00Z")));
}

#[test]
fn what_is_still_wanted_shrinks_with_success_and_ends_with_the_job() {
    let wanted = |status: Value| state_of(false, &status).wanted;
    assert_eq!(wanted(json!({"succeeded": 3})), 4);
    assert_eq!(wanted(json!({"succeeded": 8})), 2);
    assert_eq!(wanted(json!({"succeeded": 12})), 0);
    assert_eq!(
        wanted(json!({"succeeded": 3, "conditions": [condition("Failed", "True")]})),
        0
    );
    // Indexes that failed for good want no room any more.
    assert_eq!(wanted(json!({"succeeded": 3, "failedIndexes": "0,2-5,9"})), 1);
    assert_eq!(wanted(json!({"succeeded": 3, "failedIndexes": "x,-,9-"})), 4);
}

#[test]
fn a_work_queue_makes_no_pods_after_its_first_success() {
    let state = |status: Value| {
        let mut object = job(&json!({"parallelism": 4}));
        object["status"] = status;
        Job.read(&object).unwrap().0
    };
    assert_eq!((state(json!({})).gang, state(json!({"active": 1})).wanted), (4, 4));
    assert_eq!(state(json!({"active": 3, "succeeded": 1})).wanted, 3);
    assert_eq!(state(json!({"succeeded": 1})).wanted, 0);
}

/// Cases 38 and 39: the interim conditions are not the end, and an older worker never sends them.
#[test]
fn only_complete_and_failed_that_are_true_end_a_job() {
    for conditions in [
        json!([condition("FailureTarget", "True")]),
        json!([condition("SuccessCriteriaMet", "True")]),
        json!([condition("Complete", "False"), condition("Failed", "Unknown")]),
        json!([condition("complete", "True")]),
        json!(null),
    ] {
        assert_eq!(
            state_of(false, &json!({"conditions": conditions})).terminal,
            None,
            "{conditions}"
        );
    }
    let failed = state_of(
        false,
        &json!({"conditions": [condition("FailureTarget", "True"), condition("Failed", "True")]}),
    )
    .terminal
    .unwrap();
    assert!(!failed.succeeded);
    assert_eq!(
        (failed.reason.as_str(), failed.message.as_str(), failed.at),
        ("Because", "of this", Some(at("2026-01-01T00:00:05Z")))
    );
    let status = json!({"conditions": [condition("Complete", "True")], "completionTime": "2026-01-01T00:00:04Z"});
    let complete = state_of(false, &status).terminal.unwrap();
    assert_eq!(
        (complete.succeeded, complete.at),
        (true, Some(at("2026-01-01T00:00:04Z")))
    );
}

/// Case 40.
#[test]
fn a_completion_time_is_no_end_and_a_failure_does_not_take_it() {
    assert_eq!(
        state_of(false, &json!({"completionTime": "2026-01-01T00:00:04Z"})).terminal,
        None
    );
    let status = json!({"conditions": [condition("Failed", "True")], "completionTime": "2026-01-01T00:00:04Z"});
    assert_eq!(
        state_of(false, &status).terminal.unwrap().at,
        Some(at("2026-01-01T00:00:05Z"))
    );
}

#[test]
fn a_stop_and_a_start_are_acknowledged_by_the_controller_alone() {
    let acknowledged = |suspend, status: Value| {
        let state = state_of(suspend, &status);
        (state.suspend_acknowledged, state.start_acknowledged)
    };
    let suspended = |status: &str| json!({"conditions": [condition("Suspended", status)]});
    assert_eq!(acknowledged(true, suspended("True")), (true, false));
    assert_eq!(acknowledged(false, suspended("False")), (false, true));
    // Released, and the controller has not looked yet.
    assert_eq!(acknowledged(false, suspended("True")), (true, false));
    // Stopped again, and the controller has not looked yet: its acknowledgement of the start stands.
    assert_eq!(acknowledged(true, suspended("False")), (false, true));
    assert_eq!(acknowledged(false, json!({})), (false, false));
    assert_eq!(
        acknowledged(false, json!({"startTime": "2026-01-01T00:00:00Z"})),
        (false, true)
    );
    assert_eq!(
        acknowledged(true, json!({"startTime": "2026-01-01T00:00:00Z"})),
        (false, false)
    );
    // A start time from before the stop does not acknowledge the start after it.
    let stale = json!({"startTime": "2026-01-01T00:00:00Z", "conditions": [condition("Suspended", "True")]});
    assert_eq!(acknowledged(false, stale), (true, false));
}

/// Case 48.
#[test]
fn long_messages_are_cut_between_characters_and_large_statuses_are_not_copied() {
    let mut long = condition("Failed", "True");
    long["message"] = json!(format!("x{}", "ü".repeat(1 << 20)));
    let message = state_of(false, &json!({"conditions": [long]}))
        .terminal
        .unwrap()
        .message;
    assert_eq!(message.len(), 1023);

    let raw = |indexes: String| {
        let mut object = job(&json!({}));
        object["status"] = json!({"completedIndexes": indexes, "succeeded": 1, "futureKnob": 1});
        let (state, raw) = Job.read(&object).unwrap();
        assert_eq!(state.succeeded, 1);
        raw.map(|raw| raw.to_value() == object["status"])
    };
    assert_eq!(raw("1,3,5".to_owned()), Some(true));
    let every_odd_index: Vec<String> = (0..100_000)
        .filter(|index| index % 2 == 1)
        .map(|index: i32| index.to_string())
        .collect();
    assert_eq!(raw(every_odd_index.join(",")), None);
    assert_eq!(raw("1".repeat(MAX_RAW_STATUS)), None);
}

#[test]
fn the_same_job_is_read_from_text_and_from_a_tree() {
    let text = r#"{"metadata":{"name":"a","uid":"u"},"spec":{"suspend":true},"status":{"active":1,"z":1.50}}"#;
    let lite: JobLite = serde_json::from_str(text).unwrap();
    assert_eq!(lite.raw_status.as_ref().unwrap().get(), r#"{"active":1,"z":1.50}"#);
    assert_eq!(lite.metadata.uid.as_deref(), Some("u"));
    assert_eq!(Job.read(&serde_json::from_str(text).unwrap()).unwrap().0, lite.state());
}

#[test]
fn a_malformed_object_is_an_error_and_never_an_empty_status() {
    for status in [
        json!("x"),
        json!({"active": "1"}),
        json!({"conditions": [{}]}),
        json!({"startTime": "yesterday"}),
    ] {
        assert!(
            Job.read(&json!({"metadata": {}, "spec": {}, "status": status}))
                .is_err(),
            "{status}"
        );
    }
}

proptest! {
    #[test]
    fn what_is_wanted_and_counted_stays_within_the_job(
        parallelism in -1_i64..20, completions in prop::option::of(-1_i64..20), succeeded in -1_i64..30, active in -1_i64..30, indexes in "[0-9,-]{0,12}",
    ) {
        let mut object = job(&json!({"parallelism": parallelism, "completions": completions}));
        object["status"] = json!({"succeeded": succeeded, "active": active, "failedIndexes": indexes});
        let state = Job.read(&object).unwrap().0;
        prop_assert!((0..=state.gang).contains(&state.wanted), "{state:?}");
        prop_assert!(state.gang <= parallelism.max(0));
        prop_assert!(state.succeeded >= 0 && state.active >= 0);
    }
}
