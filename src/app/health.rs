//! Whether the process lives and is ready, in sentences.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::clusters::Clock;

/// The part of readiness that is the manager cluster: it answered, and said who it is.
pub const MANAGER: &str = "manager";
/// The part of readiness that is the watches of the manager.
pub const WATCHES: &str = "watches";
/// The part of readiness that is the core: it has seen all of the manager.
pub const CORE: &str = "core";

/// The loop of the core beats every second; silent for this long, it hangs and a restart is the cure.
const STUCK_AFTER: Duration = Duration::from_mins(1);

/// Whether the process lives and is ready: written by the wiring, read by `/healthz` and `/readyz`. Clones share one state.
#[derive(Debug, Clone)]
pub struct Health {
    clock: Clock,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    /// What is not ready yet, and why.
    waiting: BTreeMap<&'static str, String>,
    /// Monotonic time of the last beat; none until the loop runs.
    beat: Option<Duration>,
}

impl Health {
    /// Lives, and waits for these parts.
    pub fn new(clock: Clock, parts: &[&'static str]) -> Self {
        let waiting = parts.iter().map(|part| (*part, "not there yet".to_owned())).collect();
        Self {
            clock,
            state: Arc::new(Mutex::new(State { waiting, beat: None })),
        }
    }

    /// This part is there.
    pub fn ready(&self, part: &'static str) {
        self.with(|state| state.waiting.remove(part));
    }

    /// This part is not there, for this reason.
    pub fn waiting(&self, part: &'static str, reason: impl Into<String>) {
        self.with(|state| state.waiting.insert(part, reason.into()));
    }

    /// The loop of the core is alive.
    pub fn beat(&self) {
        let now = self.clock.now().mono;
        self.with(|state| state.beat = Some(now));
    }

    /// What is not ready, one sentence each; empty when all is.
    pub fn unready(&self) -> Vec<String> {
        self.with(|state| {
            state
                .waiting
                .iter()
                .map(|(part, reason)| format!("{part}: {reason}"))
                .collect()
        })
    }

    /// For how long the loop of the core has not answered, if that is too long.
    pub fn stuck(&self) -> Option<Duration> {
        let beat = self.with(|state| state.beat)?;
        too_long(self.clock.mono().saturating_sub(beat))
    }

    fn with<T>(&self, f: impl FnOnce(&mut State) -> T) -> T {
        // Each critical section is one assignment: a panic elsewhere leaves nothing half done.
        f(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn too_long(silence: Duration) -> Option<Duration> {
    (silence > STUCK_AFTER).then_some(silence)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loop_that_never_began_is_not_stuck_and_one_that_is_silent_for_over_a_minute_is() {
        let health = Health::new(Clock::start(), &[CORE]);
        assert_eq!(health.stuck(), None);
        health.beat();
        assert_eq!(health.stuck(), None);
        assert_eq!(too_long(Duration::from_mins(1)), None);
        assert_eq!(too_long(Duration::from_secs(61)), Some(Duration::from_secs(61)));
    }
}
