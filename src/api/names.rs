//! Every name that appears in a cluster: labels, annotations, finalizers, reasons.

/// Prefix of all our labels and annotations.
pub const PREFIX: &str = "multikueue.rs/";

/// Finalizer on a job while a worker may hold something of it, and on a `WorkerCluster` from its first job until it is deleted and nothing
/// of ours is bound to it, owed or left there.
pub const FINALIZER: &str = "multikueue.rs/dispatched";
/// Field manager and user agent of our writes.
pub const MANAGER: &str = "multikueue";

/// Label on mirrors: 16 hex digits of the hash of the origin; what our watches select.
pub const ORIGIN: &str = "multikueue.rs/origin";
/// Label on mirrors and on their pods: the uid of the job on the manager.
pub const JOB_UID: &str = "multikueue.rs/job-uid";
/// Annotation on mirrors: the origin as text.
pub const ORIGIN_NAME: &str = "multikueue.rs/origin-name";
/// Annotation on mirrors: the uid of the manager's `kube-system` namespace.
pub const MANAGER_UID: &str = "multikueue.rs/manager-uid";
/// Annotation on mirrors: the uid of the worker's `kube-system` namespace, as the manager knew it.
pub const CLUSTER_UID: &str = "multikueue.rs/cluster-uid";
/// Annotation on mirrors: namespace and name of the job, `namespace/name`. A copy under another name is not ours.
pub const JOB: &str = "multikueue.rs/job";
/// Annotation on mirrors: the run of the job.
pub const RUN: &str = "multikueue.rs/run";
/// Annotation on mirrors: the number of the attempt.
pub const ATTEMPT: &str = "multikueue.rs/attempt";
/// Annotation on mirrors: renewed at every write of ours, tested by every release.
pub const NONCE: &str = "multikueue.rs/nonce";
/// Label on namespaces that we created on a worker.
pub const CREATED_BY: &str = "multikueue.rs/created-by";

/// Name prefix of the lease that we hold on each worker; followed by the hash of the origin.
pub const WORKER_LEASE_PREFIX: &str = "multikueue-";
/// Namespace of that lease on the worker.
pub const WORKER_LEASE_NAMESPACE: &str = "multikueue-system";

/// Prefix of every label and annotation that Kueue reads; none travels to a mirror, on it or on its pods, since two queue managers would
/// fight over `suspend`.
pub const KUEUE_PREFIX: &str = "kueue.x-k8s.io/";
