//! Time as a value: it enters at the rim and is handed down.

use std::time::Duration;

use k8s_openapi::jiff::Timestamp;

/// The present, on the two clocks that matter.
///
/// Deadlines, back-off and claims are measured on `mono`, which no administrator can set back. `wall` is only what is written into
/// objects for people to read, and what durations that must survive a restart are counted from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Now {
    /// Time since an arbitrary start of this process.
    pub mono: Duration,
    /// Time of day.
    pub wall: Timestamp,
}

impl Now {
    /// Whole seconds from `since` (time of day) to now, never negative: a clock set back counts as no time at all.
    pub fn seconds_since(&self, since: Timestamp) -> i64 {
        (self.wall.as_second() - since.as_second()).max(0)
    }
}
