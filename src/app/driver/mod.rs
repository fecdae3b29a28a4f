//! The loop that owns the core: events in, effects out, one batch at a time.

use std::collections::BTreeSet;
use std::future::Future;
use std::time::Duration;

use tokio::sync::mpsc::{Receiver, UnboundedReceiver};

use crate::api::Now;
use crate::clusters::{Clock, Rim};
use crate::dispatcher::summary::Summary;
use crate::dispatcher::{Dispatcher, Effect, EffectId, Event};

use super::health::{CORE, Health};
use super::metrics::Metrics;

/// How many events are applied before effects are asked for: a burst is one decision, and a flood does not keep effects waiting.
const BATCH: usize = 1024;
/// How often the metrics of the world are renewed, and the loop shows that it lives.
const BEAT: Duration = Duration::from_secs(1);

/// The deterministic core, as the loop sees it.
pub trait Core {
    /// Applies an event.
    fn handle(&mut self, event: Event, now: Now);
    /// The effects that are due.
    fn poll(&mut self, now: Now) -> Vec<Effect>;
    /// Monotonic time at which to poll although no event came.
    fn next_wakeup(&self) -> Option<Duration>;
    /// Whether the first lists of the manager are complete.
    fn is_synced(&self) -> bool;
    /// Numbers for metrics.
    fn summary(&mut self, now: Now) -> Summary;
}

impl Core for Dispatcher {
    fn handle(&mut self, event: Event, now: Now) {
        self.handle(event, now);
    }

    fn poll(&mut self, now: Now) -> Vec<Effect> {
        self.poll(now)
    }

    fn next_wakeup(&self) -> Option<Duration> {
        self.next_wakeup()
    }

    fn is_synced(&self) -> bool {
        self.is_synced()
    }

    fn summary(&mut self, now: Now) -> Summary {
        self.summary(now)
    }
}

/// Where effects go.
pub trait Executors {
    /// Hands an effect to its executor. Its outcome comes as an event, from here if nobody can take it.
    fn send(&self, effect: Effect) -> Option<Event>;
}

impl Executors for Rim {
    fn send(&self, effect: Effect) -> Option<Event> {
        Rim::send(self, effect)
    }
}

/// Where events come from.
#[derive(Debug)]
pub struct Inlets {
    /// Leadership: it comes before all else, and must not wait behind a flood of the rest.
    pub claims: UnboundedReceiver<Event>,
    /// All else.
    pub events: Receiver<Event>,
}

/// Why the loop ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// It was told to.
    Stopped,
    /// Nobody can send events any more.
    Cut,
    /// Nobody can send claims any more.
    NoLeadership,
}

/// The loop that owns the core.
#[derive(Debug)]
pub struct Driver<C> {
    core: C,
    clock: Clock,
    metrics: Metrics,
    health: Health,
    /// Effects without an outcome.
    in_flight: BTreeSet<EffectId>,
    beat_at: Duration,
}

impl<C: Core> Driver<C> {
    /// A loop that is not running yet.
    pub fn new(core: C, clock: Clock, metrics: Metrics, health: Health) -> Self {
        Self {
            core,
            clock,
            metrics,
            health,
            in_flight: BTreeSet::new(),
            beat_at: Duration::ZERO,
        }
    }

    /// Runs until `stop`, or until a part of the process that events come from is gone.
    pub async fn run(
        &mut self,
        executors: &impl Executors,
        inlets: &mut Inlets,
        stop: impl Future<Output = ()>,
    ) -> Ended {
        let Inlets { claims, events } = inlets;
        let mut stop = std::pin::pin!(stop);
        let mut batch = Vec::with_capacity(BATCH);
        loop {
            // Outcomes of effects that nobody took are applied at once.
            let wake = if batch.is_empty() {
                self.core
                    .next_wakeup()
                    .map_or(self.beat_at, |wakeup| wakeup.min(self.beat_at))
            } else {
                Duration::ZERO
            };
            tokio::select! {
                biased;
                () = &mut stop => return Ended::Stopped,
                claim = claims.recv() => match claim {
                    Some(claim) => batch.push(claim),
                    None => return Ended::NoLeadership,
                },
                count = events.recv_many(&mut batch, BATCH) => if count == 0 { return Ended::Cut },
                () = self.clock.sleep_until(wake) => {}
            }
            self.turn(executors, &mut batch);
        }
    }

    /// After [`Self::run`]: sends nothing more and waits for the outcomes of what is in flight, at most this long. True: none is left.
    pub async fn drain(&mut self, inlets: &mut Inlets, longest: Duration) -> bool {
        let ends = self.clock.mono() + longest;
        while !self.in_flight.is_empty() {
            let event = tokio::select! {
                event = inlets.events.recv() => event,
                () = self.clock.sleep_until(ends) => None,
            };
            match event {
                Some(event) => self.note(&event),
                None => break,
            }
        }
        self.in_flight.is_empty()
    }

    /// One turn: apply the events, hand out what is due.
    fn turn(&mut self, executors: &impl Executors, batch: &mut Vec<Event>) {
        let now = self.clock.now();
        for event in batch.drain(..) {
            self.note(&event);
            self.core.handle(event, now);
        }
        let now = self.clock.now();
        for effect in self.core.poll(now) {
            self.in_flight.insert(effect.id);
            batch.extend(executors.send(effect));
        }
        if self.core.is_synced() {
            self.health.ready(CORE);
        }
        if now.mono >= self.beat_at {
            self.metrics.set_summary(self.core.summary(now));
            self.health.beat();
            self.beat_at = now.mono + BEAT;
        }
    }

    fn note(&mut self, event: &Event) {
        if let Event::Outcome { id, .. } = event {
            self.in_flight.remove(id);
        }
    }
}

#[cfg(test)]
mod tests;
