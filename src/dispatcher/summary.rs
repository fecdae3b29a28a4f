//! What the core says about itself, for metrics.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::api::job::Phase;
use crate::api::worker_cluster::Devices;

/// What the core says about itself: plain numbers, no object of anybody.
///
/// Asked for about once a second, so it must be cheap: one pass over the phases of the jobs, and else counts that the core keeps anyway.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Summary {
    /// Number of jobs by phase. A phase without jobs may be left out.
    pub jobs: BTreeMap<Phase, usize>,
    /// Jobs that wait for a worker now: those of phase `Queued` that are neither suspended nor broken.
    pub queue_length: usize,
    /// Objects of our kind on the manager that could not be decoded.
    pub unreadable_jobs: usize,
    /// By name of the `WorkerCluster`; one that is gone is left out, and its series end.
    pub workers: BTreeMap<Arc<str>, WorkerSummary>,
    /// Time from queued to released of each release since the last call: taken, not copied.
    pub dispatch_latencies: Vec<Duration>,
}

/// One worker.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorkerSummary {
    /// Whether it answers.
    pub connected: bool,
    /// Devices by accelerator model, as in `WorkerCluster.status.devices`. Empty while capacity is unknown: no series is better than a
    /// number that nobody knows.
    pub devices: BTreeMap<String, Devices>,
}
