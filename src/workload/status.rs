//! The reducer of a worker's object to a job's phase.

use k8s_openapi::jiff::Timestamp;

use super::state::WorkloadState;
use crate::api::job::Phase;

/// What the state of a worker's object says of its job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Observation {
    /// The phase that it shows: `Assigned`, `Running`, `Succeeded` or `Failed`. None when the job has ended before: nothing can change that.
    pub phase: Option<Phase>,
    /// Every pod of the gang has been Running or finished once since the release.
    pub started: bool,
    /// When its controller first saw it awake; none before it started.
    pub start_time: Option<Timestamp>,
    /// When it ended; only with a terminal phase.
    pub completion_time: Option<Timestamp>,
}

/// Reads a state against what is known of the job already: what has ended stays as it ended, and what has started stays started.
///
/// A Job's status counts pods, not members: ready + succeeded + failed reaches the gang when each member has run once, or when some member
/// has failed and run again so often that the job has long been at work. That a count is above another (ready above active, say) means only that
/// it was read in between two updates.
pub fn observe(previous: Phase, state: &WorkloadState, started_before: bool) -> Observation {
    if previous.is_terminal() {
        return Observation {
            phase: None,
            started: started_before,
            start_time: None,
            completion_time: None,
        };
    }
    let ran = state.ready.saturating_add(state.succeeded).saturating_add(state.failed);
    let running = !state.asleep && state.start_acknowledged && ran >= state.gang;
    let started = started_before || running || state.terminal.is_some();
    let phase = match &state.terminal {
        Some(terminal) if terminal.succeeded => Phase::Succeeded,
        Some(_) => Phase::Failed,
        None if started => Phase::Running,
        None => Phase::Assigned,
    };
    Observation {
        phase: Some(phase),
        started,
        start_time: state.start_time.filter(|_| started),
        completion_time: state.terminal.as_ref().and_then(|terminal| terminal.at),
    }
}

#[cfg(test)]
mod tests;
