//! Nodes and pods as rows of a few hundred bytes: what the counting reads, and nothing else.

use std::sync::Arc;

use crate::resources::Amounts;
use crate::resources::shape::{NodeTaint, Toleration};

/// A node of a worker.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeRow {
    /// Name.
    pub name: Arc<str>,
    /// Labels, sorted by key.
    pub labels: Vec<(Arc<str>, Arc<str>)>,
    /// Taints.
    pub taints: Vec<NodeTaint>,
    /// `spec.unschedulable`.
    pub unschedulable: bool,
    /// Condition `Ready` is True. The scheduler reads taints alone; between the condition and its taint there is a gap in which a node must
    /// not be offered (`capacity.md` 2.5).
    pub ready: bool,
    /// Has a `deletionTimestamp`.
    pub deleting: bool,
    /// `status.allocatable`, `pods` included.
    pub allocatable: Amounts,
    /// `status.capacity` of extended resources only: what is above allocatable is unhealthy.
    pub capacity: Amounts,
}

/// A pod that is bound to a node and not finished.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PodRow {
    /// Namespace.
    pub namespace: Arc<str>,
    /// Name.
    pub name: Arc<str>,
    /// Uid.
    pub uid: Arc<str>,
    /// The node it is bound to.
    pub node: Arc<str>,
    /// What it is charged: its effective request with overhead and in-place resize states (`capacity.md` 2.3), 1 of `pods` not included.
    pub charged: Amounts,
    /// Label `multikueue.rs/job-uid`: the job whose member it is.
    pub job_uid: Option<Arc<str>>,
    /// Uid of its controller, for a member of a job: one mirror's pods are no other's, and a watch may show them late.
    pub owner: Option<Arc<str>>,
    /// Phase `Running`.
    pub running: bool,
    /// Has a `deletionTimestamp`. It is charged all the same until it is finished or gone.
    pub deleting: bool,
}

/// A `RuntimeClass` of a worker.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RuntimeClassRow {
    /// `overhead.podFixed`.
    pub overhead: Amounts,
    /// `scheduling.nodeSelector`, sorted by key.
    pub node_selector: Vec<(String, String)>,
    /// `scheduling.tolerations`.
    pub tolerations: Vec<Toleration>,
}
