//! Jobs that every worker answers alike: tried once, told the same reasons.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::job::{Exclusion, QueuedJob, Rank};
use crate::api::job::{Placement, Waiting};
use crate::capacity::Cost;
use crate::resources::PodSet;
use crate::workload::TemplateKind;

/// What a job asks of a worker.
#[derive(Debug, Clone)]
pub(super) struct Asks {
    pub(super) namespace: Arc<str>,
    pub(super) kind: TemplateKind,
    pub(super) pod_sets: Arc<[PodSet]>,
    pub(super) placement: Arc<Placement>,
    pub(super) excluded: BTreeMap<Arc<str>, Exclusion>,
}

/// The same as a key. A placement has no order of its own, so its text stands for it.
pub(super) type ClassKey = (
    TemplateKind,
    Arc<str>,
    Arc<[PodSet]>,
    String,
    BTreeMap<Arc<str>, Exclusion>,
);

impl Asks {
    pub(super) fn of(job: &QueuedJob) -> Self {
        Self {
            namespace: job.key.namespace.clone(),
            kind: job.kind,
            pod_sets: job.pod_sets.clone(),
            placement: job.placement.clone(),
            excluded: job.excluded.clone(),
        }
    }

    pub(super) fn key(&self) -> ClassKey {
        let placement = if *self.placement == Placement::default() {
            String::new()
        } else {
            // `Debug` is complete here and, unlike JSON, cannot fail.
            format!("{:?}", self.placement)
        };
        (
            self.kind,
            self.namespace.clone(),
            self.pod_sets.clone(),
            placement,
            self.excluded.clone(),
        )
    }
}

/// State of a worker's ledger at which something was computed.
pub(super) type Version = (u64, u64, u64);

/// Equal jobs.
#[derive(Debug)]
pub(super) struct Class {
    pub(super) asks: Asks,
    pub(super) key: ClassKey,
    /// Its jobs in order. Never empty.
    pub(super) queue: BTreeSet<Rank>,
    /// The epoch up to whose changes it was tried and found no room.
    pub(super) tried: u64,
    /// Since when (monotonic) its first job finds no room.
    pub(super) failing_since: Option<Duration>,
    /// No worker is worth reserving for it before this time.
    pub(super) hopeless_until: Duration,
    /// Members that lacked room on each worker, by its place among the names, and when; none where it could never take the class.
    pub(super) lacking: Vec<Option<(Duration, Option<i64>)>>,
    /// What each worker (by its place among the names) would cost, and when that was computed.
    pub(super) plans: Vec<Option<(Version, Option<Cost>)>>,
    /// Why it waits, as of `evaluated`.
    pub(super) waiting: Option<Waiting>,
    pub(super) evaluated: Option<Duration>,
    /// The reasons in `waiting`.
    pub(super) reasons: Arc<BTreeSet<String>>,
    /// Jobs that were told other reasons.
    pub(super) untold: BTreeSet<Rank>,
}

impl Class {
    pub(super) fn new(asks: Asks, key: ClassKey) -> Self {
        Self {
            asks,
            key,
            queue: BTreeSet::new(),
            tried: 0,
            failing_since: None,
            hopeless_until: Duration::ZERO,
            lacking: Vec::new(),
            plans: Vec::new(),
            waiting: None,
            evaluated: None,
            reasons: Arc::default(),
            untold: BTreeSet::new(),
        }
    }
}
