//! `/metrics`: `OpenMetrics` text with closed label sets.
//!
//! Labels are kinds and outcomes of requests, phases, and the names of `WorkerCluster` objects with the accelerator models seen there;
//! never the name of a job, and never a message.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};

use crate::clusters::Observer;
use crate::dispatcher::Target;
use crate::dispatcher::summary::Summary;

mod world;

use world::World;

/// The outcome of a request that was never sent: it took no time.
const NOT_SENT: &str = "not_sent";

/// The metrics of this process. Clones share one registry; there is no global one, so that two operators in one process stay apart.
#[derive(Clone)]
pub struct Metrics(Arc<Inner>);

struct Inner {
    registry: Registry,
    effects: Family<EffectLabels, Counter>,
    effect_seconds: Family<KindLabels, Histogram, fn() -> Histogram>,
    watch_restarts: Family<KindLabels, Counter>,
    dispatch_seconds: Histogram,
    leader: Gauge,
    world: World,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct EffectLabels {
    kind: &'static str,
    outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct KindLabels {
    kind: &'static str,
}

impl Metrics {
    /// Metrics that all stand at zero.
    pub fn new() -> Self {
        let mut registry = Registry::with_prefix("multikueue");
        let effects = Family::default();
        registry.register(
            "effects",
            "Requests to API servers by kind and outcome",
            effects.clone(),
        );
        let effect_seconds = Family::new_with_constructor(request_histogram as fn() -> Histogram);
        registry.register_with_unit(
            "effect_duration",
            "Time from sending a request to its outcome",
            Unit::Seconds,
            effect_seconds.clone(),
        );
        let watch_restarts = Family::default();
        registry.register(
            "watch_restarts",
            "Watches that failed and were started again, by what they watch",
            watch_restarts.clone(),
        );
        // 10 ms to 3 days: from an idle fleet to a long queue.
        let dispatch_seconds = Histogram::new(exponential_buckets(0.01, 2.5, 18));
        registry.register_with_unit(
            "dispatch_latency",
            "Time of a job from queued to released on its worker",
            Unit::Seconds,
            dispatch_seconds.clone(),
        );
        let leader = Gauge::default();
        registry.register("leader", "1 while this process leads, else 0", leader.clone());
        let world = Arc::new(RwLock::new(Summary::default()));
        let world = World(world);
        registry.register_collector(Box::new(world.clone()));
        Self(Arc::new(Inner {
            registry,
            effects,
            effect_seconds,
            watch_restarts,
            dispatch_seconds,
            leader,
            world,
        }))
    }

    /// This process leads, or does not.
    pub fn leading(&self, leads: bool) {
        self.0.leader.set(leads.into());
    }

    /// What the core says about itself.
    pub fn set_summary(&self, summary: Summary) {
        for latency in &summary.dispatch_latencies {
            self.0.dispatch_seconds.observe(latency.as_secs_f64());
        }
        *self.0.world.0.write().unwrap_or_else(PoisonError::into_inner) = summary;
    }

    /// All metrics as `OpenMetrics` text.
    pub fn encode(&self) -> Result<String, fmt::Error> {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &self.0.registry)?;
        Ok(text)
    }
}

impl Observer for Metrics {
    fn effect_done(&self, _: &Target, kind: &'static str, outcome: &'static str, took: Duration) {
        self.0.effects.get_or_create(&EffectLabels { kind, outcome }).inc();
        if outcome != NOT_SENT {
            let seconds = took.as_secs_f64();
            self.0
                .effect_seconds
                .get_or_create(&KindLabels { kind })
                .observe(seconds);
        }
    }

    fn watch_restarted(&self, watch: &'static str) {
        self.0.watch_restarts.get_or_create(&KindLabels { kind: watch }).inc();
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

/// 1 ms to 16 s: from an API server next door to the longest deadline.
fn request_histogram() -> Histogram {
    Histogram::new(exponential_buckets(0.001, 2.0, 15))
}

#[cfg(test)]
mod tests;
