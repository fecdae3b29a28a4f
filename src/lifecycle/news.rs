//! What is worth a write.

use k8s_openapi::jiff::Timestamp;

use crate::api::MultiKueueJobStatus;
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

/// True when every pod of the gang has been Running or finished once, as the status alone can show.
pub fn gang_started(state: &WorkloadState) -> bool {
    state.gang > 0 && (state.ready + state.succeeded + state.failed >= state.gang || state.terminal.is_some())
}
