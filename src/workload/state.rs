//! What the object on a worker says of itself, the same for every kind.

use k8s_openapi::jiff::Timestamp;

/// State of a worker's object, read off its spec and status by its kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorkloadState {
    /// The spec says: do not run (`spec.suspend: true`).
    pub asleep: bool,
    /// Its controller has acknowledged that it is suspended (condition `Suspended=True`).
    pub suspend_acknowledged: bool,
    /// Its controller has acknowledged a release: condition `Suspended=False`, or a start time while awake. Before that a stop could
    /// overtake the start.
    pub start_acknowledged: bool,
    /// Pods that are pending or running and not being deleted.
    pub active: i64,
    /// Pods that are ready.
    pub ready: i64,
    /// Pods that are being deleted.
    pub terminating: i64,
    /// Members that succeeded.
    pub succeeded: i64,
    /// Pods that failed.
    pub failed: i64,
    /// Members that run at once: min(parallelism, completions). The gang that must start.
    pub gang: i64,
    /// Members that still want room: min(parallelism, completions - succeeded), 0 when terminal.
    pub wanted: i64,
    /// When the controller first saw it awake.
    pub start_time: Option<Timestamp>,
    /// Its end, once its controller has said so.
    pub terminal: Option<Terminal>,
}

/// The end of a worker's object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Terminal {
    /// True for `Complete`, false for `Failed`.
    pub succeeded: bool,
    /// Reason of the condition.
    pub reason: String,
    /// Message of the condition, at most 1 KiB.
    pub message: String,
    /// When it ended.
    pub at: Option<Timestamp>,
}
