//! `MultiKueueJob`: a job queued on the manager.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::raw::RawJson;
use super::{rules, schema};

pub use super::job_status::{
    Assignment, Attempt, AttemptOutcome, MultiKueueJobStatus, Nearest, Phase, RevokeReason, Revoking, Waiting,
};

/// Longest time that a field of a spec may give, in seconds: a year. What is longer is a slip, or means no limit.
const YEAR: i64 = 31_536_000;

/// What is to run, where it may run, and how long to try.
#[derive(CustomResource, Debug, Clone, PartialEq, Serialize, Deserialize, KubeSchema)]
#[kube(
    group = "multikueue.rs",
    version = "v1alpha1",
    kind = "MultiKueueJob",
    doc = "A job that waits on this cluster until a worker cluster has room for all of it, runs there, and brings its result back.",
    namespaced,
    status = "MultiKueueJobStatus",
    shortname = "mkj",
    derive = "PartialEq",
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase", description = "Where the job stands."),
    printcolumn(
        name = "Worker",
        type_ = "string",
        json_path = ".status.assignment.cluster",
        description = "The WorkerCluster that the job belongs to."
    ),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].reason",
        description = "Why it stands there."
    ),
    printcolumn(
        name = "Fresh",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"StatusFresh\")].status",
        description = "False: the worker does not answer, and what is shown is old."
    ),
    printcolumn(
        name = "Attempts",
        type_ = "integer",
        json_path = ".status.lastAttempt",
        description = "How often the job has been given to a worker."
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(
        name = "Priority",
        type_ = "string",
        json_path = ".spec.priorityClassName",
        priority = 1,
        description = "Name of its PriorityClass."
    ),
    printcolumn(
        name = "Run",
        type_ = "integer",
        json_path = ".status.run",
        priority = 1,
        description = "The run that the phase speaks of."
    ),
    printcolumn(
        name = "Started",
        type_ = "date",
        json_path = ".status.startTime",
        priority = 1,
        description = "When its pods started."
    ),
    printcolumn(
        name = "Finished",
        type_ = "date",
        json_path = ".status.completionTime",
        priority = 1,
        description = "When the run ended."
    ),
    printcolumn(
        name = "Message",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].message",
        priority = 1,
        description = "Why it stands there, in words."
    ),
    validation = crate::api::rules::name_is_a_dns_label(),
    validation = crate::api::rules::name_leaves_room_for_the_index(),
    validation = crate::api::rules::template_changes_only_between_attempts()
)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = schema::Plain)]
pub struct MultiKueueJobSpec {
    /// Name of a `PriorityClass` (`scheduling.k8s.io`) of the manager. Jobs of higher value are placed first; without a name the
    /// manager's global default class counts, or 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253), regex(pattern = schema::DNS_SUBDOMAIN))]
    pub priority_class_name: Option<String>,
    /// True takes the job off its worker, or keeps it from being placed. False again queues it anew; that is no failed attempt.
    #[serde(default)]
    pub suspend: bool,
    /// Number of the run, 1 at first. It may only grow: raising it runs a finished job again, with the template that stands there
    /// then. Raised early, it waits for the end of the present run.
    #[serde(default = "one")]
    #[schemars(range(min = 1))]
    #[x_kube(validation = rules::run_only_grows())]
    pub run: i64,
    /// The object to run on a worker: a `batch/v1` Job as its user wrote it, pasted from `kubectl get job -o yaml` if need be. On
    /// the worker it has the namespace and the name of this object. It may change while no worker is assigned, or after the end
    /// together with a higher `run`.
    #[schemars(schema_with = "schema::template")]
    #[x_kube(
        validation = rules::template_kind_is_known(),
        validation = rules::parallelism_is_positive(),
        validation = rules::indexed_has_completions()
    )]
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
    /// Only workers whose labels match are considered. None: every worker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::label_selector")]
    pub cluster_selector: Option<LabelSelector>,
    /// Workers that match are preferred, by the sum of the weights; decided before how well the job packs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "atomic"))]
    pub preferences: Vec<Preference>,
    /// Taints of `WorkerCluster` objects that the job puts up with.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), extend("x-kubernetes-list-type" = "atomic"))]
    pub tolerations: Vec<ClusterToleration>,
}

/// A soft wish for workers with certain labels.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Preference {
    /// Added to the score of each worker that matches, 1 to 100.
    #[schemars(range(min = 1, max = 100))]
    pub weight: i32,
    /// Labels of the `WorkerCluster`.
    #[schemars(schema_with = "schema::label_selector")]
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
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = rules::toleration_is_complete())]
pub struct ClusterToleration {
    /// Key of the taint; none with `Exists` tolerates every taint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 317))]
    pub key: Option<String>,
    /// `Equal` (default): key and value are those of the taint. `Exists`: the key is, or there is none and any taint will do.
    #[serde(default)]
    pub operator: TolerationOperator,
    /// Value of the taint, for `Equal`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63), regex(pattern = schema::LABEL_VALUE))]
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
    /// What happens when the job's worker does not answer. `Wait` (default): the job stays bound to it, in phase `Unknown`, until it
    /// answers again.
    #[serde(default)]
    pub on_worker_lost: OnWorkerLost,
    /// A job that has not started within this time of its assignment is taken off that worker and tried elsewhere. Started means that
    /// every pod of it has been Running or finished once.
    #[serde(default = "start_timeout")]
    #[schemars(range(min = 1, max = YEAR))]
    pub start_timeout_seconds: i64,
    /// A job that has waited this long in the queue without being placed fails. None: it waits for ever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = YEAR))]
    pub max_queue_seconds: Option<i64>,
    /// After this many attempts that did not start the job fails.
    #[serde(default = "max_attempts")]
    #[schemars(range(min = 1, max = 1000))]
    pub max_attempts: i64,
    /// The finished object (and with it its pods' logs) stays on the worker this long. The template's own
    /// `ttlSecondsAfterFinished` is not used.
    #[serde(default = "retain_mirror")]
    #[schemars(range(min = 0, max = YEAR))]
    pub retain_mirror_seconds: i64,
    /// A deleted job waits this long for its object on the worker to be gone; then it goes, and the removal is owed (see
    /// `WorkerCluster.status.debts`). At most a day.
    #[serde(default = "deletion_timeout")]
    #[schemars(range(min = 0, max = 86_400))]
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
