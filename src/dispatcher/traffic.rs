//! What is in flight, and how much more may be.

use std::collections::BTreeMap;
use std::time::Duration;

use super::agenda::Item;
use super::effect::{EffectId, Target};

/// One request on its way.
#[derive(Debug, Clone)]
pub(super) struct Flight {
    /// Whose executor has it.
    pub target: Target,
    /// What it is for.
    pub item: Item,
    /// Kind of the request.
    pub kind: &'static str,
    /// When it was handed out, monotonic.
    pub sent: Duration,
    /// When it can't be in flight any more, monotonic.
    pub deadline: Duration,
    /// What the owner of the item wants to know of it when it lands.
    pub note: Note,
}

/// What the owner of an item wants to know of a request when it lands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Note {
    /// Nothing.
    None,
    /// A read: an unknown outcome leaves no doubt about what is there.
    Read,
    /// A create of this attempt.
    Attempt(i64),
    /// A dry run for this cluster.
    Probe(String),
    /// An event for people: whatever becomes of it, nothing follows.
    Event,
}

impl Note {
    /// A read or a dry run: an unknown outcome leaves no doubt about what is there.
    pub fn changes_nothing(&self) -> bool {
        matches!(self, Self::Read | Self::Probe(_))
    }
}

/// Requests in flight and limits, by executor.
#[derive(Debug, Default)]
pub(super) struct Traffic {
    limits: BTreeMap<Target, usize>,
    counts: BTreeMap<Target, usize>,
    flights: BTreeMap<EffectId, Flight>,
    last: u64,
}

impl Traffic {
    /// Sets how many requests `target` takes at once.
    pub fn limit(&mut self, target: Target, limit: usize) {
        self.limits.insert(target, limit);
    }

    /// How many more requests `target` takes now.
    pub fn free(&self, target: &Target) -> usize {
        let limit = self.limits.get(target).copied().unwrap_or(0);
        limit.saturating_sub(self.counts.get(target).copied().unwrap_or(0))
    }

    /// Executors with room.
    pub fn with_room(&self) -> Vec<(Target, usize)> {
        self.limits
            .keys()
            .map(|t| (t.clone(), self.free(t)))
            .filter(|(_, free)| *free > 0)
            .collect()
    }

    /// A request takes off.
    pub fn depart(&mut self, flight: Flight) -> EffectId {
        self.last += 1;
        let id = EffectId(self.last);
        *self.counts.entry(flight.target.clone()).or_default() += 1;
        self.flights.insert(id, flight);
        id
    }

    /// When a request of `item` to `target` that is under way can't be any more; none without one.
    pub fn under_way(&self, target: &Target, item: &Item) -> Option<Duration> {
        let same = |flight: &&Flight| flight.target == *target && flight.item == *item;
        self.flights.values().find(same).map(|flight| flight.deadline)
    }

    /// A request has landed; none for an id that is not in flight.
    pub fn land(&mut self, id: EffectId) -> Option<Flight> {
        let flight = self.flights.remove(&id)?;
        if let Some(count) = self.counts.get_mut(&flight.target) {
            *count = count.saturating_sub(1);
        }
        Some(flight)
    }
}

/// One side of an object: at most one request is in flight there.
#[derive(Debug, Clone, Default)]
pub(super) struct Side {
    /// The request in flight.
    pub inflight: Option<EffectId>,
    /// What we know may be old, or a write may have happened: GET before anything else.
    pub verify: bool,
    /// Nothing is sent before this monotonic time.
    pub not_before: Duration,
    failures: u32,
}

/// First and longest delay after a failure.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(200), Duration::from_mins(1));

impl Side {
    /// True when something may be sent at `now`.
    pub fn ready(&self, now: Duration) -> bool {
        self.inflight.is_none() && self.not_before <= now
    }

    /// A request succeeded.
    pub fn succeeded(&mut self) {
        *self = Self::default();
    }

    /// A request failed; the next is not sent before a delay that doubles, or `after`.
    pub fn failed(&mut self, now: Duration, after: Option<Duration>) {
        self.inflight = None;
        let delay = BACKOFF.0.saturating_mul(1 << self.failures.min(12)).min(BACKOFF.1);
        self.failures = self.failures.saturating_add(1);
        self.not_before = now + after.unwrap_or(delay).max(delay);
    }

    /// What we know is old: look at once, or with the usual delay when that keeps happening.
    pub fn outdated(&mut self, now: Duration) {
        self.verify = true;
        let first = self.failures == 0;
        self.failed(now, None);
        if first {
            self.not_before = now;
        }
    }

    /// The outcome of a write is unknown: look, but not before it can't be in flight any more.
    pub fn unknown(&mut self, now: Duration, deadline: Duration) {
        self.verify = true;
        self.failed(now, None);
        self.not_before = self.not_before.max(deadline);
    }
}
