//! Mirrors: from the JSON of a worker's object to the view that the core sees.

use k8s_openapi::api::batch::v1::{JobSpec, JobStatus};
use serde::Deserialize;

use super::reason::cut;
use super::slim::Meta;
use super::views::{MAX_RAW_STATUS, ViewError, version};
use crate::api::{RawJson, names};
use crate::lifecycle::view::{JobKey, MirrorIdentity, MirrorView};
use crate::workload::{TemplateKind, Terminal, WorkloadState};

/// A mirror, or a stranger's object of its name, of its JSON.
pub fn mirror(kind: TemplateKind, text: &str) -> Result<MirrorView, ViewError> {
    #[derive(Deserialize)]
    struct Object {
        metadata: Meta,
        #[serde(default)]
        status: Option<RawJson>,
    }
    let Object { metadata, status } = serde_json::from_str(text).map_err(|e| ViewError::Form(e.to_string()))?;
    Ok(MirrorView {
        kind,
        key: JobKey::new(&metadata.namespace, &metadata.name),
        resource_version: version(&metadata.resource_version)?,
        deleting: metadata.deletion_timestamp.is_some(),
        identity: MirrorIdentity::read(&metadata.labels, &metadata.annotations),
        nonce: metadata.annotations.get(names::NONCE).cloned().unwrap_or_default(),
        state: match kind {
            TemplateKind::Job => job_state(text)?,
        },
        raw_status: status.filter(|status| status.get().len() <= MAX_RAW_STATUS),
        uid: metadata.uid.into(),
    })
}

fn job_state(text: &str) -> Result<WorkloadState, ViewError> {
    #[derive(Deserialize)]
    struct Object {
        #[serde(default)]
        spec: JobSpec,
        #[serde(default)]
        status: JobStatus,
    }
    let Object { spec, status } = serde_json::from_str(text).map_err(|e| ViewError::Form(e.to_string()))?;
    let conditions = status.conditions.unwrap_or_default();
    let condition = |name: &str, value: &str| conditions.iter().find(|c| c.type_ == name && c.status == value);
    let asleep = spec.suspend == Some(true);
    let ready = i64::from(status.ready.unwrap_or(0));
    let terminating = i64::from(status.terminating.unwrap_or(0));
    let active = i64::from(status.active.unwrap_or(0));
    let succeeded = i64::from(status.succeeded.unwrap_or(0));
    let parallelism = i64::from(spec.parallelism.unwrap_or(1));
    let gang = spec.completions.map_or(parallelism, |n| parallelism.min(i64::from(n)));
    let terminal = condition("Complete", "True")
        .map(|c| (true, c))
        .or_else(|| condition("Failed", "True").map(|c| (false, c)))
        .map(|(succeeded, c)| Terminal {
            succeeded,
            reason: c.reason.clone().unwrap_or_default(),
            message: cut(c.message.as_deref().unwrap_or_default(), 1_024),
            at: c.last_transition_time.as_ref().map(|time| time.0),
        });
    let wanted = match (&terminal, spec.completions) {
        (Some(_), _) => 0,
        (None, None) => parallelism,
        (None, Some(completions)) => parallelism.min(i64::from(completions) - succeeded).max(0),
    };
    Ok(WorkloadState {
        asleep,
        suspend_acknowledged: condition("Suspended", "True").is_some(),
        start_acknowledged: condition("Suspended", "False").is_some() || (status.start_time.is_some() && !asleep),
        active,
        ready,
        terminating,
        succeeded,
        failed: i64::from(status.failed.unwrap_or(0)),
        gang,
        wanted,
        start_time: status.start_time.map(|time| time.0),
        terminal,
    })
}
