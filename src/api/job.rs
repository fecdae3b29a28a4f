//! `MultiKueueJob`: a job queued on the manager.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, LabelSelector, Time};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::raw::RawJson;

/// What is to run, where it may run, and how long to try.
#[derive(CustomResource, Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "multikueue.rs",
    version = "v1alpha1",
    kind = "MultiKueueJob",
    namespaced,
    status = "MultiKueueJobStatus",
    shortname = "mkj",
    derive = "PartialEq"
)]
#[serde(rename_all = "camelCase")]
pub struct MultiKueueJobSpec {
    /// Name of a `PriorityClass` (`scheduling.k8s.io`) of the manager. Jobs of higher value are placed first; without a name the
    /// manager's global default class counts, or 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority_class_name: Option<String>,
    /// True takes the job off its worker, or keeps it from being placed. False again queues it anew; that is no failed attempt.
    #[serde(default)]
    pub suspend: bool,
    /// Number of the run. It may only grow: raising it runs a finished job again.
    #[serde(default = "one")]
    pub run: i64,
    /// The object to run on a worker: a `batch/v1` Job as its user wrote it.
    pub template: RawJson,
    /// Where the job may run, and where it would rather run.
    #[serde(default)]
    pub placement: Placement,
    /// How long to wait and how often to try.
    #[serde(default)]
    pub policy: Policy,
}

fn one() -> i64 {
    1
}

/// Where a job may run, and where it would rather run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Placement {
    /// Only workers whose labels match are considered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_selector: Option<LabelSelector>,
    /// Workers that match are preferred, by the sum of the weights; decided before how well the job packs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub preferences: Vec<Preference>,
    /// Taints of `WorkerCluster` objects that the job puts up with.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tolerations: Vec<ClusterToleration>,
}

/// A soft wish for workers with certain labels.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Preference {
    /// Added to the score of each worker that matches, 1 to 100.
    pub weight: i32,
    /// Labels of the `WorkerCluster`.
    pub selector: LabelSelector,
}

/// How a toleration compares.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum TolerationOperator {
    /// Key and value are equal.
    #[default]
    Equal,
    /// The key is there, or any taint if no key is given.
    Exists,
}

/// A taint of a `WorkerCluster` that a job puts up with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterToleration {
    /// Key of the taint; none with `Exists` tolerates every taint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// How key and value compare.
    #[serde(default)]
    pub operator: TolerationOperator,
    /// Value of the taint, for `Equal`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
}

/// What happens to a job whose worker does not answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum OnWorkerLost {
    /// The job stays bound to its worker, in phase `Unknown`, until the worker answers again.
    #[default]
    Wait,
}

/// How long to wait and how often to try.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Policy {
    /// What happens when the job's worker does not answer.
    #[serde(default)]
    pub on_worker_lost: OnWorkerLost,
    /// A job that has not started within this time of its release is taken off that worker and tried elsewhere. Started means that
    /// every pod of it has been Running or finished once.
    #[serde(default = "start_timeout")]
    pub start_timeout_seconds: i64,
    /// A job that has waited this long in the queue without being placed fails. None: it waits for ever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_queue_seconds: Option<i64>,
    /// After this many attempts that did not start the job fails.
    #[serde(default = "max_attempts")]
    pub max_attempts: i64,
    /// The finished object (and with it its pods' logs) stays on the worker this long. The template's own
    /// `ttlSecondsAfterFinished` is not used.
    #[serde(default = "retain_mirror")]
    pub retain_mirror_seconds: i64,
    /// A deleted job waits this long for its object on the worker to be gone; then it goes, and the removal is owed (see
    /// `WorkerCluster.status.debts`).
    #[serde(default = "deletion_timeout")]
    pub deletion_timeout_seconds: i64,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            on_worker_lost: OnWorkerLost::default(),
            start_timeout_seconds: start_timeout(),
            max_queue_seconds: None,
            max_attempts: max_attempts(),
            retain_mirror_seconds: retain_mirror(),
            deletion_timeout_seconds: deletion_timeout(),
        }
    }
}

fn start_timeout() -> i64 {
    900
}

fn max_attempts() -> i64 {
    5
}

fn retain_mirror() -> i64 {
    3600
}

fn deletion_timeout() -> i64 {
    600
}

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
pub struct MultiKueueJobStatus {
    /// The generation of the spec that this status speaks of.
    #[serde(default)]
    pub observed_generation: i64,
    /// Where the job stands.
    #[serde(default)]
    pub phase: Phase,
    /// The run that `phase` speaks of.
    #[serde(default)]
    pub run: i64,
    /// `Ready`, `Reconciling`, `Stalled` (kstatus), `Dispatched` and `StatusFresh`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
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
    /// When this run ended, as the worker says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completion_time: Option<Time>,
    /// Why the job waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting: Option<Waiting>,
    /// The last ten attempts that ended, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
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
    /// The run.
    pub run: i64,
    /// The number of the attempt.
    pub number: i64,
    /// The claim of leadership under which the decision was taken.
    pub claim: String,
    /// Uid of the object on the worker. Nothing is released before it stands here.
    #[serde(rename = "mirrorUID", default, skip_serializing_if = "Option::is_none")]
    pub mirror_uid: Option<String>,
    /// Set when the attempt is being taken back, and never unset.
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
    /// Why.
    pub reason: RevokeReason,
    /// Since when.
    pub since: Time,
}

/// Why a job waits, counted and for the nearest workers in words.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Waiting {
    /// Number of workers by reason.
    #[serde(default, skip_serializing_if = "std::collections::BTreeMap::is_empty")]
    pub reasons: std::collections::BTreeMap<String, i32>,
    /// Up to eight workers that come closest, nearest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
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
    /// The run.
    pub run: i64,
    /// The number of the attempt.
    pub number: i64,
    /// When it was assigned.
    pub from: Time,
    /// When it ended.
    pub to: Time,
    /// How it ended.
    pub outcome: AttemptOutcome,
    /// Why, as a word.
    pub reason: String,
}
