//! What the rim tells metrics.

use std::sync::Arc;
use std::time::Duration;

use crate::dispatcher::Target;

/// What the rim tells metrics. Every name comes from a closed set.
pub trait Observer: Send + Sync {
    /// A request ended: whose, its kind, how, and after how long.
    fn effect_done(&self, target: &Target, kind: &'static str, outcome: &'static str, took: Duration);
    /// A watch (named by the plural of its kind) failed and is started again.
    fn watch_restarted(&self, watch: &'static str);
}

/// An observer as the rim hands it around.
pub type Observe = Arc<dyn Observer>;

/// Observes nothing.
impl Observer for () {
    fn effect_done(&self, _: &Target, _: &'static str, _: &'static str, _: Duration) {}
    fn watch_restarted(&self, _: &'static str) {}
}
