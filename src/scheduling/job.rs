//! A job in the queue, reduced to what places it.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::jiff::Timestamp;

use crate::api::JobKey;
use crate::api::job::Placement;
use crate::resources::PodSet;
use crate::workload::TemplateKind;

/// Why one worker is not for one job, for now: a refused create, a name that is taken, a failed start.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Exclusion {
    /// The class of the reason, from a closed set.
    pub reason: &'static str,
    /// One sentence.
    pub message: String,
}

/// A job in the queue.
#[derive(Debug, Clone, PartialEq)]
pub struct QueuedJob {
    /// Namespace and name.
    pub key: JobKey,
    /// Uid: the id of its promise.
    pub uid: Arc<str>,
    /// Value of its priority class; higher goes first.
    pub priority: i32,
    /// When it entered the queue; earlier goes first.
    pub queued_at: Timestamp,
    /// Kind of its template.
    pub kind: TemplateKind,
    /// What runs at once.
    pub pod_sets: Arc<[PodSet]>,
    /// Where it may run, and where it would rather run.
    pub placement: Arc<Placement>,
    /// Workers it may not be assigned to, by clusterUID.
    pub excluded: BTreeMap<Arc<str>, Exclusion>,
    /// The reasons for waiting that its status names already; nothing is told again while they stay the same.
    pub told: BTreeSet<String>,
}

/// The place of a job in the queue: priority, then age, then key.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank {
    priority: Reverse<i32>,
    queued_at: Timestamp,
    pub(super) key: JobKey,
}

impl QueuedJob {
    pub(super) fn rank(&self) -> Rank {
        Rank {
            priority: Reverse(self.priority),
            queued_at: self.queued_at,
            key: self.key.clone(),
        }
    }
}
