//! The decision of leader election: what was read and when, in; the next request, out. No client, no clock, no randomness.
//!
//! Why two never lead at once, whatever is lost or late:
//!
//! - A claim counts from *before* the request was sent that won or renewed it, so it ends no later than the leases' duration after the
//!   API server stored that write.
//! - Another candidate counts the duration from when *it first saw* that write, on its own monotonic clock, which is later than that. No
//!   wall clock takes part: `renewTime` is only for people, and made different at each write, since an update that changes nothing is not
//!   stored and would look like silence.
//! - Every write replaces a resourceVersion, so of two that decide on the same view one fails, and a write that arrives minutes late does.
//! - A claim ends a tenth of the duration earlier than it must, for clocks that run at different rates.
//!
//! Outside the guarantee: someone deletes the lease. A candidate that has seen it still waits its duration out; one that starts just then
//! can not know.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::jiff::{SignedDuration, Timestamp};

use crate::api::Now;
use crate::dispatcher::event::Claim;

/// The lease as the API server showed it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseRecord {
    /// `metadata.resourceVersion`.
    pub version: String,
    /// `spec.holderIdentity`; none when it is absent or empty: the lease was given back.
    pub holder: Option<String>,
    /// `spec.leaseDurationSeconds`; none when it is absent or not positive.
    pub duration: Option<Duration>,
    /// `spec.leaseTransitions`.
    pub transitions: i32,
    /// `spec.acquireTime`.
    pub acquired: Option<Timestamp>,
    /// `spec.renewTime`.
    pub renewed: Option<Timestamp>,
}

/// A lease to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseWrite {
    /// The version that it replaces; none: it is created.
    pub replaces: Option<String>,
    /// `spec.holderIdentity`; none gives it back.
    pub holder: Option<String>,
    /// `spec.leaseDurationSeconds`.
    pub duration: Duration,
    /// `spec.leaseTransitions`.
    pub transitions: i32,
    /// `spec.acquireTime`.
    pub acquired: Timestamp,
    /// `spec.renewTime`.
    pub renewed: Timestamp,
}

/// What to do next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Nothing until this monotonic time.
    Wait(Duration),
    /// Send this, and say what became of it.
    Send(Request),
}

/// A request about the lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// GET it.
    Read,
    /// Create or replace it.
    Write(LeaseWrite),
}

/// What became of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// A read: this.
    Found(LeaseRecord),
    /// There is no lease.
    Absent,
    /// A write: this is stored now.
    Written(LeaseRecord),
    /// A write: not done, since the lease is another than the one to be replaced, or exists.
    Conflict,
    /// No answer, or a refusal that says nothing of the lease: a write may be stored, now or later.
    Failed,
}

/// How long and how often.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// Duration of the lease, in whole seconds.
    pub duration: Duration,
    /// How often the holder renews it and a standby reads it.
    pub renew: Duration,
}

impl Timing {
    /// How long a claim lasts from before its request was sent.
    fn claim(&self) -> Duration {
        self.duration * 9 / 10
    }

    /// How soon after a failure the next request is sent: several tries fit into what is left of a claim.
    pub fn retry(&self) -> Duration {
        self.renew / 3
    }
}

/// One candidate.
#[derive(Debug, Clone)]
pub struct Election {
    identity: Arc<str>,
    timing: Timing,
    /// The lease as last seen, although it may be gone since.
    seen: Option<Seen>,
    /// Whether the API server shows `seen` now, as far as anyone can know.
    view: View,
    /// The id of the acquisition under way: its write may be stored although no answer said so.
    attempt: Option<Arc<str>>,
    held: Option<Claim>,
    not_before: Duration,
}

#[derive(Debug, Clone)]
struct Seen {
    record: LeaseRecord,
    /// When this version was first seen.
    since: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum View {
    Old,
    Fresh,
    Absent,
}

impl Election {
    /// A candidate that has seen nothing. `identity` must be of this process alone: random, or a pod's name with something random.
    pub fn new(identity: impl Into<Arc<str>>, timing: Timing) -> Self {
        Self {
            identity: identity.into(),
            timing,
            seen: None,
            view: View::Old,
            attempt: None,
            held: None,
            not_before: Duration::ZERO,
        }
    }

    /// The claim that holds now.
    pub fn claim(&self, now: Duration) -> Option<&Claim> {
        self.held.as_ref().filter(|claim| now < claim.expires)
    }

    /// Who holds the lease as last seen, for logs.
    pub fn holder(&self) -> Option<&str> {
        self.seen.as_ref()?.record.holder.as_deref()
    }

    /// What to do next. `id` is random and fresh; it becomes the claim's when this step begins an acquisition.
    pub fn step(&mut self, now: Now, id: &str) -> Step {
        if self.claim(now.mono).is_none() {
            self.held = None;
        }
        if now.mono < self.not_before {
            return Step::Wait(
                self.held
                    .as_ref()
                    .map_or(self.not_before, |claim| claim.expires.min(self.not_before)),
            );
        }
        match self.view {
            View::Old => Step::Send(Request::Read),
            View::Fresh | View::Absent => self.write(now, id),
        }
    }

    /// The write that the view asks for: a renewal, an acquisition, or none while another holds the lease.
    fn write(&mut self, now: Now, id: &str) -> Step {
        let own = self.held.as_ref().map(|claim| &claim.id).or(self.attempt.as_ref());
        if let (View::Fresh, Some(own), Some(seen)) = (self.view, own, &self.seen)
            && seen.record.holder.as_deref() == Some(&*self.name(own))
        {
            let record = &seen.record;
            return Step::Send(Request::Write(LeaseWrite {
                replaces: Some(record.version.clone()),
                holder: record.holder.clone(),
                duration: self.timing.duration,
                transitions: record.transitions,
                acquired: record.acquired.unwrap_or(now.wall),
                renewed: after(record.renewed, now.wall),
            }));
        }
        if let Some(free) = self.taken_until().filter(|until| now.mono < *until) {
            self.view = View::Old;
            self.not_before = free.min(now.mono + self.timing.renew);
            self.attempt = None;
            return Step::Wait(self.not_before);
        }
        let attempt = self.attempt.get_or_insert_with(|| id.into()).clone();
        let last = self.seen.as_ref().map(|seen| &seen.record);
        let renewed = after(last.and_then(|record| record.renewed), now.wall);
        Step::Send(Request::Write(LeaseWrite {
            replaces: last
                .filter(|_| self.view == View::Fresh)
                .map(|record| record.version.clone()),
            holder: Some(self.name(&attempt)),
            duration: self.timing.duration,
            transitions: last.map_or(0, |record| record.transitions.saturating_add(1)),
            acquired: renewed,
            renewed,
        }))
    }

    /// Until when another may lead by the lease as last seen, also when it has vanished since. None: nobody does.
    fn taken_until(&self) -> Option<Duration> {
        let seen = self.seen.as_ref()?;
        let holder = seen.record.holder.as_deref()?;
        // A former claim of this very process: it has ended, and nobody else can hold it.
        if self.is_own(holder) {
            return None;
        }
        Some(
            seen.since
                .saturating_add(seen.record.duration.unwrap_or(self.timing.duration)),
        )
    }

    /// What became of the last step, sent and answered at these monotonic times.
    pub fn answer(&mut self, sent: Duration, now: Duration, answer: Answer) {
        self.not_before = now;
        match answer {
            Answer::Found(record) => {
                self.see(record, now);
                self.view = View::Fresh;
                let holder = self.holder();
                if self
                    .held
                    .as_ref()
                    .is_some_and(|claim| holder != Some(&*self.name(&claim.id)))
                {
                    self.held = None;
                }
            }
            Answer::Absent => {
                self.view = View::Absent;
                self.held = None;
                self.attempt = None;
            }
            Answer::Written(record) => {
                // A write that changed nothing was not stored: nobody else saw it, so it is no renewal.
                let stored = self
                    .seen
                    .as_ref()
                    .is_none_or(|seen| seen.record.version != record.version);
                let id = self
                    .attempt
                    .take()
                    .or_else(|| self.held.as_ref().map(|claim| claim.id.clone()));
                let claim = id.map(|id| Claim {
                    id,
                    transitions: record.transitions,
                    renewed: sent,
                    expires: sent.saturating_add(self.timing.claim()),
                });
                if stored {
                    self.held = claim.filter(|claim| record.holder.as_deref() == Some(&*self.name(&claim.id)));
                }
                self.see(record, now);
                self.view = View::Fresh;
                self.not_before = sent + self.timing.renew;
            }
            Answer::Conflict => self.view = View::Old,
            Answer::Failed => {
                self.view = View::Old;
                self.not_before = now + self.timing.retry();
            }
        }
    }

    /// The write that gives the lease back, if it is of this process: for after a read, when nothing of ours is in flight any more.
    pub fn vacate(&mut self, record: &LeaseRecord, wall: Timestamp) -> Option<LeaseWrite> {
        self.held = None;
        self.attempt = None;
        if !self.is_own(record.holder.as_deref()?) {
            return None;
        }
        Some(LeaseWrite {
            replaces: Some(record.version.clone()),
            holder: None,
            // As client-go writes it, for candidates of other makes.
            duration: Duration::from_secs(1),
            transitions: record.transitions,
            acquired: record.acquired.unwrap_or(wall),
            renewed: after(record.renewed, wall),
        })
    }

    fn see(&mut self, record: LeaseRecord, now: Duration) {
        match &mut self.seen {
            // The version, not the fields: a write that is none of a holder only makes us wait longer.
            Some(seen) if seen.record.version == record.version => {}
            _ => self.seen = Some(Seen { record, since: now }),
        }
    }

    fn name(&self, claim: &str) -> String {
        format!("{}_{claim}", self.identity)
    }

    fn is_own(&self, holder: &str) -> bool {
        holder
            .strip_prefix(&*self.identity)
            .is_some_and(|rest| rest.starts_with('_'))
    }
}

/// Now, but not the time that stands there already.
fn after(last: Option<Timestamp>, now: Timestamp) -> Timestamp {
    // Lease times are stored with microseconds: two that differ by less are the same.
    match last {
        Some(last) if last.as_microsecond() == now.as_microsecond() => {
            now.checked_add(SignedDuration::from_micros(1)).unwrap_or(last)
        }
        _ => now,
    }
}

#[cfg(test)]
mod tests;
