//! What the core asks of the rim.

use std::sync::Arc;
use std::time::Duration;

use crate::api::{MultiKueueJobStatus, RawJson, WorkerClusterStatus};
use crate::lifecycle::view::{JobKey, ResourceVersion};
use crate::workload::TemplateKind;

/// Number of an effect, unique in a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EffectId(pub u64);

/// Whose executor sends it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Target {
    /// The manager's API server.
    Manager,
    /// A worker's, by the name of its `WorkerCluster`.
    Worker(Arc<str>),
}

/// One API request: one deadline, one outcome.
#[derive(Debug, Clone, PartialEq)]
pub struct Effect {
    /// Its number, which the outcome names.
    pub id: EffectId,
    /// Whose executor sends it.
    pub target: Target,
    /// The connection that it was decided for (workers); an executor of another answers `NotSent`.
    pub epoch: u64,
    /// Monotonic time after which it must not be in flight any more: never later than the end of the claim.
    pub deadline: Duration,
    /// What to send.
    pub request: Request,
}

/// What to send.
#[derive(Debug, Clone, PartialEq)]
pub enum Request {
    // --- manager ---
    /// GET a job. Answer: `Job`.
    GetJob {
        /// Which.
        key: JobKey,
    },
    /// JSON patch that replaces the whole list of finalizers, with tests on uid and resourceVersion. Answer: `Job`, or `Accepted` when the object is gone
    /// with its last finalizer.
    SetJobFinalizers {
        /// Which.
        key: JobKey,
        /// Its uid.
        uid: Arc<str>,
        /// The version that was decided on.
        resource_version: ResourceVersion,
        /// The whole new list.
        finalizers: Vec<String>,
    },
    /// JSON patch of the status subresource that replaces the whole status, with tests on uid and resourceVersion. Answer: `Job`.
    WriteJobStatus {
        /// Which.
        key: JobKey,
        /// Its uid.
        uid: Arc<str>,
        /// The version that was decided on.
        resource_version: ResourceVersion,
        /// The whole new status.
        status: Box<MultiKueueJobStatus>,
    },
    /// As `SetJobFinalizers`, of a `WorkerCluster`. Answer: `WorkerCluster` or `Accepted`.
    SetWorkerFinalizers {
        /// Which.
        name: Arc<str>,
        /// Its uid.
        uid: Arc<str>,
        /// The version that was decided on.
        resource_version: ResourceVersion,
        /// The whole new list.
        finalizers: Vec<String>,
    },
    /// As `WriteJobStatus`, of a `WorkerCluster`. Answer: `WorkerCluster`.
    WriteWorkerStatus {
        /// Which.
        name: Arc<str>,
        /// Its uid.
        uid: Arc<str>,
        /// The version that was decided on.
        resource_version: ResourceVersion,
        /// The whole new status.
        status: Box<WorkerClusterStatus>,
    },
    /// GET a `WorkerCluster`. Answer: `WorkerCluster`.
    GetWorkerCluster {
        /// Which.
        name: Arc<str>,
    },
    /// Publish an event, best effort. Answer: `Accepted`.
    PublishEvent(Box<Notice>),
    // --- worker ---
    /// GET, then create or PUT the worker lease with resourceVersion. Answer: `Lease`.
    RenewLease {
        /// Name of the lease.
        name: String,
        /// `spec.holderIdentity` to write.
        holder: String,
        /// `spec.leaseDurationSeconds` to write.
        seconds: i32,
        /// `spec.leaseTransitions` to write.
        transitions: i32,
        /// The version to replace; none: create it, or read it first when it exists.
        resource_version: Option<ResourceVersion>,
    },
    /// Create a namespace with our label. Answer: `Accepted`, also when it exists already.
    CreateNamespace {
        /// Its name.
        name: Arc<str>,
    },
    /// Create a mirror. Answer: `Mirror`.
    CreateMirror {
        /// Its kind.
        kind: TemplateKind,
        /// Namespace and name.
        key: JobKey,
        /// The whole object.
        object: RawJson,
        /// True: `dryRun=All`, to learn whether the worker would take it.
        dry_run: bool,
    },
    /// GET a mirror. Answer: `Mirror`.
    GetMirror {
        /// Its kind.
        kind: TemplateKind,
        /// Namespace and name.
        key: JobKey,
    },
    /// JSON patch of a mirror (the release). Answer: `Mirror`.
    JsonPatchMirror {
        /// Its kind.
        kind: TemplateKind,
        /// Namespace and name.
        key: JobKey,
        /// The operations, an array.
        patch: serde_json::Value,
    },
    /// Merge patch of a mirror that carries uid and resourceVersion (the stop). Answer: `Mirror`.
    MergePatchMirror {
        /// Its kind.
        kind: TemplateKind,
        /// Namespace and name.
        key: JobKey,
        /// The patch, an object.
        patch: serde_json::Value,
    },
    /// DELETE with preconditions, background propagation. Answer: `Accepted`.
    DeleteMirror {
        /// Its kind.
        kind: TemplateKind,
        /// Namespace and name.
        key: JobKey,
        /// Precondition.
        uid: Arc<str>,
        /// Precondition.
        resource_version: ResourceVersion,
    },
    /// LIST the pods of a job by label, with resourceVersion unset. Answer: `Pods` (those not finished).
    ListPods {
        /// Namespace.
        namespace: Arc<str>,
        /// Value of the label `multikueue.rs/job-uid`.
        job_uid: Arc<str>,
    },
}

impl Request {
    /// Kind of the request, for metrics and logs: a closed set.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::GetJob { .. } => "get_job",
            Self::SetJobFinalizers { .. } => "set_job_finalizers",
            Self::WriteJobStatus { .. } => "write_job_status",
            Self::SetWorkerFinalizers { .. } => "set_worker_finalizers",
            Self::WriteWorkerStatus { .. } => "write_worker_status",
            Self::GetWorkerCluster { .. } => "get_worker_cluster",
            Self::PublishEvent(_) => "publish_event",
            Self::RenewLease { .. } => "renew_lease",
            Self::CreateNamespace { .. } => "create_namespace",
            Self::CreateMirror { dry_run: false, .. } => "create_mirror",
            Self::CreateMirror { dry_run: true, .. } => "probe_mirror",
            Self::GetMirror { .. } => "get_mirror",
            Self::JsonPatchMirror { .. } => "release_mirror",
            Self::MergePatchMirror { .. } => "stop_mirror",
            Self::DeleteMirror { .. } => "delete_mirror",
            Self::ListPods { .. } => "list_pods",
        }
    }
}

/// What an event is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Regarding {
    /// A job: key and uid.
    Job(JobKey, Arc<str>),
    /// A `WorkerCluster`: name and uid.
    WorkerCluster(Arc<str>, Arc<str>),
}

/// An event for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// What it is about.
    pub regarding: Regarding,
    /// True for type `Warning`, false for `Normal`.
    pub warning: bool,
    /// Reason, from a closed set.
    pub reason: &'static str,
    /// What was done, from a closed set.
    pub action: &'static str,
    /// One sentence, at most 1 KiB.
    pub note: String,
}
