//! One scheduling cycle: queues, order, filter, fit, score, explain. (world, now) → assignments and reasons.

mod class;
mod cycle;
pub mod job;
mod reasons;
mod reserve;
pub mod scheduler;
pub mod selector;
pub mod site;

pub use job::{Exclusion, QueuedJob};
pub use scheduler::{Cycle, Placed, Scheduler, SchedulerConfig};
pub use site::{Blocked, Site, SiteMeta};
