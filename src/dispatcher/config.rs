//! What the core is told once, at its start.

use std::time::Duration;

/// What the core is told once, at its start.
#[derive(Debug, Clone)]
pub struct Config {
    /// The identity of this manager, as text: its `kube-system` uid + release name, or `--origin`.
    pub origin: String,
    /// 16 hex digits of the hash of `origin`, for labels.
    pub origin_hash: String,
    /// Uid of the manager's `kube-system`.
    pub manager_uid: String,
    /// Namespace of the operator; jobs may not use a namespace of that name on workers.
    pub operator_namespace: String,
    /// Duration of the worker lease, as written.
    pub worker_lease: Duration,
    /// How often the worker lease is renewed.
    pub worker_lease_renew: Duration,
    /// Longest time a request may take.
    pub request_timeout: Duration,
    /// How long an awake mirror of an absent job without a debt is left alone.
    pub orphan_grace: Duration,
    /// How often every mirror and every bound job is looked at although nothing changed.
    pub sweep_interval: Duration,
    /// How long a job may be passed over before it reserves a worker.
    pub backfill_reserve_after: Duration,
}
