//! One scheduling cycle: queues, order, filter, fit, score, explain. (world, now) → assignments and reasons.

#[allow(dead_code, reason = "used by the cycle, which follows")]
pub mod job;
pub mod scheduler;
pub mod selector;
#[allow(dead_code, reason = "used by the cycle, which follows")]
pub mod site;

pub use job::{Exclusion, QueuedJob};
pub use scheduler::{Cycle, Placed, Scheduler, SchedulerConfig};
pub use site::{Blocked, Site, SiteMeta};
