//! The status of a `MultiKueueJob`; written by the operator alone.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::raw::RawJson;
use super::schema;

/// Where a job stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Phase {
    /// Waits for a worker with room.
    #[default]
    Queued,
    /// Has a worker; not every pod has started yet.
    Assigned,
    /// Every pod has been Running or finished once.
    Running,
    /// Its object on the worker is Complete.
    Succeeded,
    /// It ended without success; see the condition `Stalled`.
    Failed,
    /// Its worker does not answer; what is known is old.
    Unknown,
    /// `spec.suspend` is true and nothing of it runs.
    Suspended,
}

impl Phase {
    /// True for a phase that ends a run for good.
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed)
    }
}

/// What is true of a job; written by the operator alone.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = |schema: &mut schemars::Schema| schema::status_of(schema, Some("Queued"), "Ready"))]
pub struct MultiKueueJobStatus {
    /// The generation of the spec that this status speaks of; -1 until the operator has seen the object.
    #[serde(default)]
    pub observed_generation: i64,
    /// Where the job stands. `Queued`: waits for a worker with room. `Assigned`: has one, and not every pod has started yet.
    /// `Running`: every pod has been Running or finished once. `Succeeded`, `Failed`: the run has ended. `Unknown`: its worker does
    /// not answer, and what is known is old. `Suspended`: `spec.suspend` is true and nothing of it runs.
    #[serde(default)]
    pub phase: Phase,
    /// The run that `phase` speaks of.
    #[serde(default)]
    pub run: i64,
    /// `Ready`, `Reconciling`, `Stalled` (kstatus), `Dispatched` and `StatusFresh`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
    /// Which worker the job belongs to: the only truth about where it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assignment: Option<Assignment>,
    /// Number of the last assignment; grows by one at each and is never reset.
    #[serde(default)]
    pub last_attempt: i64,
    /// Attempts of this run that failed to start.
    #[serde(default)]
    pub failed_attempts: i64,
    /// When the job entered the queue, for this run or after it was taken off a worker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queued_at: Option<Time>,
    /// When the pods of this run first started, as the worker says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_time: Option<Time>,
    /// When this run ended: as the worker says, or, where its end is the operator's finding (out of attempts or of time in the queue, its
    /// object gone), when that was found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completion_time: Option<Time>,
    /// Why the job waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting: Option<Waiting>,
    /// The last ten attempts that ended, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10), extend("x-kubernetes-list-type" = "atomic"))]
    pub attempts: Vec<Attempt>,
    /// The status of the object on the worker, as it is there. One too large is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mirror_status: Option<RawJson>,
}

/// The decision that one attempt of a job belongs to one worker.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Assignment {
    /// Name of the `WorkerCluster`.
    pub cluster: String,
    /// Identity of the worker: the uid of its `kube-system` namespace. This binds, not the name.
    #[serde(rename = "clusterUID")]
    pub cluster_uid: String,
    /// The run that the attempt belongs to.
    pub run: i64,
    /// The number of the attempt.
    pub number: i64,
    /// The claim of leadership under which the decision was taken.
    pub claim: String,
    /// Uid of the object on the worker. Nothing is released before it stands here.
    #[serde(rename = "mirrorUID", default, skip_serializing_if = "Option::is_none")]
    pub mirror_uid: Option<String>,
    /// Set when the attempt is being taken back, and never unset: the job is queued again, or ends, once its object is gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoking: Option<Revoking>,
    /// When the decision was taken.
    pub since: Time,
}

/// Why an attempt is taken back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum RevokeReason {
    /// `spec.suspend` was set.
    Suspended,
    /// The pods did not all start in time.
    StartTimeout,
    /// The job was deleted.
    Deleted,
    /// The worker refused the object, or could not keep it asleep.
    Refused,
    /// The worker was lost before the attempt was recorded.
    WorkerLost,
}

impl RevokeReason {
    /// The reason as it is written into conditions and attempts.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Suspended => "Suspended",
            Self::StartTimeout => "StartTimeout",
            Self::Deleted => "Deleted",
            Self::Refused => "Refused",
            Self::WorkerLost => "WorkerLost",
        }
    }
}

/// An attempt that is being taken back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Revoking {
    /// Why the attempt is taken back. `Suspended`: `spec.suspend` was set. `StartTimeout`: the pods did not all start in time.
    /// `Deleted`: the job was deleted. `Refused`: the worker refused the object, or could not keep it asleep. `WorkerLost`: the
    /// worker was lost before the attempt was recorded.
    pub reason: RevokeReason,
    /// When that was decided.
    pub since: Time,
}

/// Why a job waits, counted and for the nearest workers in words.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Waiting {
    /// Number of workers by reason.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub reasons: BTreeMap<String, i32>,
    /// Up to eight workers that come closest, nearest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8), extend("x-kubernetes-list-type" = "atomic"))]
    pub nearest: Vec<Nearest>,
}

/// Why a job is not on one worker.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Nearest {
    /// Name of the `WorkerCluster`.
    pub cluster: String,
    /// The class of the reason.
    pub reason: String,
    /// One sentence with numbers.
    pub message: String,
}

/// How an attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum AttemptOutcome {
    /// The object on the worker was Complete.
    Succeeded,
    /// The object on the worker failed, or was removed by another.
    Failed,
    /// The attempt was taken back.
    Revoked,
}

/// An attempt that ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Attempt {
    /// Name of the `WorkerCluster`.
    pub cluster: String,
    /// The run that the attempt belongs to.
    pub run: i64,
    /// The number of the attempt.
    pub number: i64,
    /// When it was assigned.
    pub from: Time,
    /// When it ended.
    pub to: Time,
    /// How it ended. `Succeeded`: the object on the worker was Complete. `Failed`: it failed, or was removed by another. `Revoked`: the
    /// attempt was taken back.
    pub outcome: AttemptOutcome,
    /// Why, as a word.
    pub reason: String,
}
