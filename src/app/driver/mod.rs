//! The loop that owns the core: events in, effects out, one batch at a time.

use std::collections::BTreeMap;
use std::future::Future;
use std::time::Duration;

use tokio::sync::mpsc::UnboundedReceiver;

use crate::api::Now;
use crate::dispatcher::summary::Summary;
use crate::dispatcher::{Effect, EffectId, Event};

use super::clock::Clock;
use super::health::Health;
use super::metrics::Metrics;

/// How many events are applied before effects are asked for: a burst is one decision, and a flood does not keep effects waiting.
const BATCH: usize = 1024;
/// How often the metrics of the world are renewed, and the loop shows that it lives.
const BEAT: Duration = Duration::from_secs(1);

/// The manager lists that must be complete before anything is decided, as `/readyz` names them.
pub const PARTS: [&str; 3] = ["jobs", "workerclusters", "priorityclasses"];

/// The deterministic core, as the loop sees it.
pub trait Core {
    /// Applies an event.
    fn handle(&mut self, event: Event, now: Now);
    /// The effects that are due.
    fn poll(&mut self, now: Now) -> Vec<Effect>;
    /// Monotonic time at which to poll although no event came.
    fn next_wakeup(&self) -> Option<Duration>;
    /// Numbers for metrics.
    fn summary(&mut self, now: Now) -> Summary;
}

/// Where effects go.
pub trait Executors {
    /// Hands an effect to its executor. Its outcome comes as an event, whatever happens.
    fn send(&self, effect: Effect);
}

/// The loop that owns the core.
#[derive(Debug)]
pub struct Driver<C, E> {
    core: C,
    executors: E,
    clock: Clock,
    metrics: Metrics,
    health: Health,
    /// Kind and time of sending of each effect without an outcome.
    in_flight: BTreeMap<EffectId, (&'static str, Duration)>,
    beat_at: Duration,
}

impl<C: Core, E: Executors> Driver<C, E> {
    /// A loop that is not running yet.
    pub fn new(core: C, executors: E, clock: Clock, metrics: Metrics, health: Health) -> Self {
        Self {
            core,
            executors,
            clock,
            metrics,
            health,
            in_flight: BTreeMap::new(),
            beat_at: Duration::ZERO,
        }
    }

    /// Runs until `stop`, or until nothing can send events any more.
    pub async fn run(&mut self, events: &mut UnboundedReceiver<Event>, stop: impl Future<Output = ()>) {
        let mut stop = std::pin::pin!(stop);
        let mut batch = Vec::with_capacity(BATCH);
        loop {
            let wake = self
                .core
                .next_wakeup()
                .map_or(self.beat_at, |wakeup| wakeup.min(self.beat_at));
            tokio::select! {
                biased;
                () = &mut stop => return,
                count = events.recv_many(&mut batch, BATCH) => if count == 0 { return },
                () = self.clock.sleep_until(wake) => {}
            }
            self.turn(&mut batch);
        }
    }

    /// After [`Self::run`]: sends nothing more and waits for the outcomes of what is in flight, at most this long. True: none is left.
    pub async fn drain(&mut self, events: &mut UnboundedReceiver<Event>, longest: Duration) -> bool {
        let ends = self.clock.now().mono + longest;
        while !self.in_flight.is_empty() {
            let event = tokio::select! {
                event = events.recv() => event,
                () = self.clock.sleep_until(ends) => None,
            };
            match event {
                Some(event) => self.note(&event, self.clock.now().mono),
                None => break,
            }
        }
        self.in_flight.is_empty()
    }

    /// One turn: apply the events, hand out what is due.
    fn turn(&mut self, batch: &mut Vec<Event>) {
        let now = self.clock.now();
        for event in batch.drain(..) {
            self.note(&event, now.mono);
            self.core.handle(event, now);
        }
        let now = self.clock.now();
        for effect in self.core.poll(now) {
            self.in_flight.insert(effect.id, (effect.request.kind(), now.mono));
            self.executors.send(effect);
        }
        if now.mono >= self.beat_at {
            self.metrics.set_summary(self.core.summary(now));
            self.health.beat();
            self.beat_at = now.mono + BEAT;
        }
    }

    /// What the process itself learns from an event.
    fn note(&mut self, event: &Event, now: Duration) {
        match event {
            Event::JobsListed(_) => self.health.ready("jobs"),
            Event::WorkerClustersListed(_) => self.health.ready("workerclusters"),
            Event::PriorityClasses { .. } => self.health.ready("priorityclasses"),
            Event::Outcome { id, outcome } => {
                if let Some((kind, sent)) = self.in_flight.remove(id) {
                    self.metrics.effect_done(kind, outcome, now.saturating_sub(sent));
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
