//! The one clock of the process: monotonic time for deadlines, wall time for what people read.

use std::time::Duration;

use k8s_openapi::jiff::Timestamp;
use tokio::time::Instant;

use crate::api::Now;

/// Monotonic time since the start of the process. The rim stamps with it and checks deadlines on it; the core is told it with every event.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    start: Instant,
}

impl Clock {
    /// A clock that starts now. One per process: the times of two clocks mean nothing to each other.
    pub fn start() -> Self {
        Self { start: Instant::now() }
    }

    /// The present, on both clocks.
    pub fn now(&self) -> Now {
        Now {
            mono: self.mono(),
            wall: Timestamp::now(),
        }
    }

    /// Time since the start.
    pub fn mono(&self) -> Duration {
        self.start.elapsed()
    }

    /// The instant at which the clock shows `mono`; one that is too far for the runtime is a day from now.
    pub fn instant(&self, mono: Duration) -> Instant {
        self.start
            .checked_add(mono)
            .unwrap_or_else(|| Instant::now() + Duration::from_hours(24))
    }

    /// Returns when the clock shows `mono`, at once if that is past.
    pub async fn sleep_until(&self, mono: Duration) {
        tokio::time::sleep_until(self.instant(mono)).await;
    }
}
