//! What is worth a write.

use k8s_openapi::jiff::Timestamp;

use crate::api::conditions::JobReason;
use crate::api::job::Waiting;
use crate::api::{MultiKueueJobStatus, RawJson};
use crate::workload::WorkloadState;

use super::view::JobView;

/// Since when the job waits: its age in the queue.
pub fn queued_at(job: &JobView) -> Timestamp {
    job.status.queued_at.as_ref().map_or(job.created, |t| t.0)
}

/// True when what a follow-up would write differs from what stands there in more than the raw status.
pub fn says_something_new(old: &MultiKueueJobStatus, new: &MultiKueueJobStatus) -> bool {
    old.phase != new.phase
        || old.observed_generation != new.observed_generation
        || words(old) != words(new)
        || old.assignment != new.assignment
}

/// The conditions without their texts: a message alone is no news.
fn words(status: &MultiKueueJobStatus) -> Vec<(&str, &str, &str)> {
    let mut words: Vec<_> = status
        .conditions
        .iter()
        .map(|c| (&*c.type_, &*c.status, &*c.reason))
        .collect();
    words.sort_unstable();
    words
}

/// The word and the sentence for why a job waits.
pub fn waiting_words(waiting: &Waiting) -> (&str, String) {
    let counted: Vec<String> = waiting
        .reasons
        .iter()
        .map(|(reason, count)| format!("{reason} on {count}"))
        .collect();
    let counted = if counted.is_empty() {
        "no worker is known".into()
    } else {
        counted.join(", ")
    };
    match waiting.nearest.first() {
        Some(nearest) => {
            let message = format!(
                "waits for a worker: {counted}; nearest {}: {}",
                nearest.cluster, nearest.message
            );
            (&nearest.reason, message)
        }
        None => (JobReason::NoWorkers.as_str(), format!("waits for a worker: {counted}")),
    }
}

/// True when the mirror's status says something else than the one that stands there.
pub fn raw_differs(old: Option<&RawJson>, new: Option<&RawJson>) -> bool {
    match (old, new) {
        (Some(old), Some(new)) => !old.says_the_same(new),
        (None, None) => false,
        _ => true,
    }
}

/// True when every pod of the gang has been Running or finished once, as the status alone can show.
pub fn gang_started(state: &WorkloadState) -> bool {
    state.gang > 0 && (state.ready + state.succeeded + state.failed >= state.gang || state.terminal.is_some())
}
