//! Growing pauses with jitter, so that many workers that were lost together do not come back together.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

/// Growing pauses.
#[derive(Debug, Clone)]
pub struct Backoff {
    first: Duration,
    most: Duration,
    current: Duration,
}

impl Backoff {
    /// Pauses from `first`, doubling, up to `most`.
    pub fn new(first: Duration, most: Duration) -> Self {
        Self {
            first,
            most,
            current: first,
        }
    }

    /// The next pause: between half and all of the current one.
    pub fn pause(&mut self) -> Duration {
        let current = self.current;
        self.current = (current * 2).min(self.most);
        current / 2 + jitter(current / 2)
    }

    /// Begin again with the first.
    pub fn reset(&mut self) {
        self.current = self.first;
    }
}

/// A random part of `span`. The seed of the standard library's hash maps is random enough to spread clients, and costs no dependency.
pub fn jitter(span: Duration) -> Duration {
    let random = RandomState::new().build_hasher().finish();
    let part = (random % 1_000) as f64 / 1_000.0;
    span.mul_f64(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_the_limit_and_begin_again_after_a_reset() {
        let (first, most) = (Duration::from_millis(500), Duration::from_secs(15));
        let mut backoff = Backoff::new(first, most);
        let pauses: Vec<_> = (0..10).map(|_| backoff.pause()).collect();
        assert!(pauses[0] >= first / 2 && pauses[0] <= first, "{pauses:?}");
        assert!(pauses[9] >= most / 2 && pauses[9] <= most, "{pauses:?}");
        backoff.reset();
        assert!(backoff.pause() <= first);
    }
}
