//! The clock of this process.

use std::time::Duration;

use k8s_openapi::jiff::Timestamp;
use tokio::time::Instant;

use crate::api::Now;

/// The clock of this process: the only place besides the rim where time enters.
///
/// The monotonic side is `CLOCK_MONOTONIC`, which goes on while a process is stopped and cannot be set.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    start: Instant,
}

impl Clock {
    /// A clock that starts now.
    pub fn start() -> Self {
        Self { start: Instant::now() }
    }

    /// The present.
    pub fn now(&self) -> Now {
        Now {
            mono: self.start.elapsed(),
            wall: Timestamp::now(),
        }
    }

    /// Returns at this monotonic time of this clock, at once if it is past.
    pub async fn sleep_until(&self, mono: Duration) {
        match self.start.checked_add(mono) {
            Some(instant) => tokio::time::sleep_until(instant).await,
            // Beyond what the machine can count to: never.
            None => std::future::pending().await,
        }
    }
}
