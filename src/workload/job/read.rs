//! What a Job on a worker says of itself.

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use serde::Deserialize;

use super::super::state::{Terminal, WorkloadState};
use crate::api::RawJson;
use crate::resources::requests::null_is_default;

/// A status of more bytes than this is not copied. A common Job's has a few hundred; what is larger is the list of completed indexes of a very
/// large Indexed Job, and the manager's etcd refuses objects of 1.5 MiB.
pub const MAX_RAW_STATUS: usize = 64 * 1024;

/// Bytes of a condition's reason and message that are kept.
const MAX_TEXT: usize = 1024;

/// A Job on a worker, decoded no further than it is read. Watches decode to it directly; a Job that is malformed is an error of that object.
#[derive(Debug, Clone, Default, Deserialize, kube::Resource)]
#[resource(inherit = "Job")]
#[serde(try_from = "Wire")]
pub struct JobLite {
    /// Metadata.
    pub metadata: ObjectMeta,
    /// Spec.
    pub spec: JobSpecLite,
    /// Status; all absent when the object has none yet.
    pub status: JobStatusLite,
    /// The status as it came; none when there is none, when it is empty, or when it has more than [`MAX_RAW_STATUS`] bytes.
    pub raw_status: Option<RawJson>,
}

#[derive(Deserialize)]
struct Wire {
    #[serde(default)]
    metadata: ObjectMeta,
    #[serde(default, deserialize_with = "null_is_default")]
    spec: JobSpecLite,
    #[serde(default)]
    status: Option<RawJson>,
}

impl TryFrom<Wire> for JobLite {
    type Error = serde_json::Error;

    fn try_from(wire: Wire) -> Result<Self, serde_json::Error> {
        let Wire { metadata, spec, status } = wire;
        let read = status.as_ref().map(|raw| serde_json::from_str(raw.get())).transpose()?;
        Ok(Self {
            metadata,
            spec,
            status: read.unwrap_or_default(),
            raw_status: status.filter(|raw| raw.get().len() <= MAX_RAW_STATUS && raw.get() != "{}"),
        })
    }
}

/// The parts of a `JobSpec` that are read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct JobSpecLite {
    /// True: do not run.
    #[serde(default)]
    pub suspend: Option<bool>,
    /// Pods at once.
    #[serde(default)]
    pub parallelism: Option<i64>,
    /// Successes that are needed; none: one success ends it.
    #[serde(default)]
    pub completions: Option<i64>,
}

/// The parts of a `JobStatus` that are read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct JobStatusLite {
    /// Conditions.
    #[serde(default, deserialize_with = "null_is_default")]
    pub conditions: Vec<JobConditionLite>,
    /// Pods that are pending or running and not being deleted.
    #[serde(default, deserialize_with = "null_is_default")]
    pub active: i64,
    /// Pods that are ready.
    #[serde(default, deserialize_with = "null_is_default")]
    pub ready: i64,
    /// Pods that are being deleted.
    #[serde(default, deserialize_with = "null_is_default")]
    pub terminating: i64,
    /// Pods that succeeded.
    #[serde(default, deserialize_with = "null_is_default")]
    pub succeeded: i64,
    /// Pods that failed.
    #[serde(default, deserialize_with = "null_is_default")]
    pub failed: i64,
    /// Indexes that failed for good: `1,3-5`.
    #[serde(default)]
    pub failed_indexes: Option<String>,
    /// When the controller first saw it awake.
    #[serde(default)]
    pub start_time: Option<Time>,
    /// When it was complete.
    #[serde(default)]
    pub completion_time: Option<Time>,
}

/// A condition of a Job.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct JobConditionLite {
    /// Type.
    #[serde(rename = "type")]
    pub kind: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// Reason.
    #[serde(default, deserialize_with = "null_is_default")]
    pub reason: String,
    /// Message.
    #[serde(default, deserialize_with = "null_is_default")]
    pub message: String,
    /// When the status last changed.
    #[serde(default)]
    pub last_transition_time: Option<Time>,
}

impl JobLite {
    /// What it says of itself. An absent status says that it has not started.
    pub fn state(&self) -> WorkloadState {
        let Self { spec, status, .. } = self;
        let asleep = spec.suspend.unwrap_or(false);
        let suspended = self.condition("Suspended").map(|condition| condition.status.as_str());
        let terminal = self.terminal();
        let parallelism = spec.parallelism.unwrap_or(1).max(0);
        let gang = spec
            .completions
            .map_or(parallelism, |completions| parallelism.min(completions.max(0)));
        WorkloadState {
            asleep,
            suspend_acknowledged: suspended == Some("True"),
            // A start time is older than `Suspended=True`, as long as that stands: it may be from before the stop.
            start_acknowledged: match suspended {
                Some("False") => true,
                Some(_) => false,
                None => !asleep && status.start_time.is_some(),
            },
            active: status.active.max(0),
            ready: status.ready.max(0),
            terminating: status.terminating.max(0),
            succeeded: status.succeeded.max(0),
            failed: status.failed.max(0),
            gang,
            wanted: if terminal.is_some() {
                0
            } else {
                self.wanted(parallelism)
            },
            start_time: status.start_time.as_ref().map(|time| time.0),
            terminal,
        }
    }

    /// Members that the controller still keeps or makes.
    fn wanted(&self, parallelism: i64) -> i64 {
        let Self { spec, status, .. } = self;
        match spec.completions {
            // An index that failed for good is not tried again.
            Some(completions) => {
                let done = status
                    .succeeded
                    .max(0)
                    .saturating_add(count_indexes(status.failed_indexes.as_deref()));
                parallelism.min(completions.saturating_sub(done)).max(0)
            }
            // After the first success of a work queue no pod is made any more.
            None if status.succeeded > 0 => parallelism.min(status.active.max(0)),
            None => parallelism,
        }
    }

    fn condition(&self, kind: &str) -> Option<&JobConditionLite> {
        self.status.conditions.iter().find(|condition| condition.kind == kind)
    }

    /// Only `Complete` and `Failed` end a Job; `SuccessCriteriaMet` and `FailureTarget` announce it while pods may still run.
    fn terminal(&self) -> Option<Terminal> {
        let is_true = |kind| self.condition(kind).filter(|condition| condition.status == "True");
        let (condition, succeeded) = match (is_true("Complete"), is_true("Failed")) {
            (Some(condition), _) => (condition, true),
            (None, Some(condition)) => (condition, false),
            (None, None) => return None,
        };
        let completed = self.status.completion_time.as_ref().filter(|_| succeeded);
        Some(Terminal {
            succeeded,
            reason: capped(&condition.reason),
            message: capped(&condition.message),
            at: completed.or(condition.last_transition_time.as_ref()).map(|time| time.0),
        })
    }
}

fn capped(text: &str) -> String {
    text[..text.floor_char_boundary(MAX_TEXT)].to_owned()
}

/// How many indexes a list such as `1,3-5` names.
fn count_indexes(ranges: Option<&str>) -> i64 {
    let count = |item: &str| {
        let (first, last) = item.split_once('-').unwrap_or((item, item));
        let (first, last) = (first.parse::<i64>().ok()?, last.parse::<i64>().ok()?);
        Some(last.saturating_sub(first).saturating_add(1).max(0))
    };
    ranges
        .unwrap_or_default()
        .split(',')
        .filter_map(count)
        .fold(0, i64::saturating_add)
}
