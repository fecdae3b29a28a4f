//! Objects as the core sees them: slim, with what the protocol reads and nothing else.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::jiff::Timestamp;

pub use crate::api::identity::{JobKey, MirrorIdentity, ResourceVersion};
use crate::api::{MultiKueueJobSpec, MultiKueueJobStatus, RawJson, WorkerClusterSpec, WorkerClusterStatus};
use crate::workload::{TemplateKind, WorkloadState};

/// A `MultiKueueJob`, without what the protocol does not read.
#[derive(Debug, Clone, PartialEq)]
pub struct JobView {
    /// Namespace and name.
    pub key: JobKey,
    /// Uid.
    pub uid: Arc<str>,
    /// Version of this view.
    pub resource_version: ResourceVersion,
    /// `metadata.generation`.
    pub generation: i64,
    /// When it was created.
    pub created: Timestamp,
    /// When its deletion was asked for.
    pub deleted: Option<Timestamp>,
    /// Its finalizers, in order.
    pub finalizers: Vec<String>,
    /// Its spec.
    pub spec: MultiKueueJobSpec,
    /// Its status.
    pub status: MultiKueueJobStatus,
}

/// A `WorkerCluster`, without what the protocol does not read.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkerView {
    /// Name.
    pub name: Arc<str>,
    /// Uid.
    pub uid: Arc<str>,
    /// Version of this view.
    pub resource_version: ResourceVersion,
    /// `metadata.generation`.
    pub generation: i64,
    /// When it was created: of two with one cluster the older is used.
    pub created: Timestamp,
    /// When its deletion was asked for.
    pub deleted: Option<Timestamp>,
    /// Its finalizers, in order.
    pub finalizers: Vec<String>,
    /// Its labels: what `clusterSelector` and preferences match.
    pub labels: BTreeMap<String, String>,
    /// Its spec.
    pub spec: WorkerClusterSpec,
    /// Its status.
    pub status: WorkerClusterStatus,
}

/// An object on a worker that has the kind and the name of a mirror: ours or a stranger's.
#[derive(Debug, Clone, PartialEq)]
pub struct MirrorView {
    /// Its kind.
    pub kind: TemplateKind,
    /// Namespace and name.
    pub key: JobKey,
    /// Uid.
    pub uid: Arc<str>,
    /// Version of this view.
    pub resource_version: ResourceVersion,
    /// Has a `deletionTimestamp`.
    pub deleting: bool,
    /// Our marks on it; none when any is missing or malformed.
    pub identity: Option<MirrorIdentity>,
    /// The nonce annotation, empty when absent.
    pub nonce: String,
    /// What it says of itself.
    pub state: WorkloadState,
    /// Its status as it is there; none when it has none or is too large to copy.
    pub raw_status: Option<RawJson>,
}

/// The worker lease as the worker's API server returned it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseView {
    /// `spec.holderIdentity`.
    pub holder: String,
    /// Version of this view; the worker's resourceVersion at the time of the renewal.
    pub resource_version: ResourceVersion,
}

/// The scheduler's decision for a job, not yet written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Name of the `WorkerCluster`.
    pub cluster: String,
    /// Uid of the worker.
    pub cluster_uid: String,
}
