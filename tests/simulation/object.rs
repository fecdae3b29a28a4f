//! A `batch/v1` Job on a worker: the document as it was written, its status, and the view that the rim makes of both.

use std::sync::Arc;

use k8s_openapi::jiff::Timestamp;
use multikueue::api::{RawJson, names};
use multikueue::lifecycle::view::{JobKey, MirrorIdentity, MirrorView, ResourceVersion};
use multikueue::workload::{TemplateKind, Terminal, WorkloadState};
use serde_json::{Value, json};

use crate::plan::Workload;

/// What the Job controller writes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Status {
    /// Condition `Suspended`, once there is one.
    pub suspended: Option<bool>,
    pub start_time: Option<Timestamp>,
    pub active: i64,
    pub ready: i64,
    pub terminating: i64,
    pub succeeded: i64,
    pub failed: i64,
    /// `Complete` or `Failed`, and when.
    pub terminal: Option<(bool, Timestamp)>,
}

#[derive(Debug, Clone)]
pub struct Object {
    pub uid: Arc<str>,
    pub version: ResourceVersion,
    /// Metadata and spec.
    pub document: Value,
    pub workload: Workload,
    pub status: Status,
    /// Pods that died of a stop, not yet counted.
    pub uncounted_failures: i64,
    /// The Job controller is at work on it.
    pub syncing: bool,
    /// Something changed since it began.
    pub dirty: bool,
}

impl Object {
    pub fn set_version(&mut self, version: ResourceVersion) {
        self.version = version;
        self.document["metadata"]["resourceVersion"] = json!(version.to_string());
    }

    pub fn asleep(&self) -> bool {
        self.document["spec"]["suspend"] == json!(true)
    }

    pub fn set_asleep(&mut self, asleep: bool) {
        self.document["spec"]["suspend"] = json!(asleep);
    }

    pub fn deleting(&self) -> bool {
        self.document["metadata"].get("deletionTimestamp").is_some()
    }

    pub fn finalizers(&self) -> &[Value] {
        self.document["metadata"]["finalizers"]
            .as_array()
            .map_or(&[], Vec::as_slice)
    }

    pub fn label(&self, name: &str) -> &str {
        self.document["metadata"]["labels"][name].as_str().unwrap_or_default()
    }

    pub fn annotation(&self, name: &str) -> &str {
        self.document["metadata"]["annotations"][name]
            .as_str()
            .unwrap_or_default()
    }

    pub fn identity(&self) -> Option<MirrorIdentity> {
        let text = |value: &str| (!value.is_empty()).then(|| value.to_owned());
        Some(MirrorIdentity {
            origin: text(self.label(names::ORIGIN))?,
            manager_uid: text(self.annotation(names::MANAGER_UID))?,
            cluster_uid: text(self.annotation(names::CLUSTER_UID))?,
            job: text(self.annotation(names::JOB))?,
            job_uid: text(self.label(names::JOB_UID))?,
            run: self.annotation(names::RUN).parse().ok()?,
            number: self.annotation(names::ATTEMPT).parse().ok()?,
        })
    }

    fn gang(&self) -> i64 {
        self.workload.parallelism.min(self.workload.completions)
    }

    /// Members that still want room.
    pub fn wanted(&self) -> i64 {
        if self.status.terminal.is_some() {
            0
        } else {
            self.workload
                .parallelism
                .min(self.workload.completions - self.status.succeeded)
                .max(0)
        }
    }

    pub fn view(&self, key: &JobKey) -> MirrorView {
        let status = &self.status;
        let asleep = self.asleep();
        MirrorView {
            kind: TemplateKind::Job,
            key: key.clone(),
            uid: Arc::clone(&self.uid),
            resource_version: self.version,
            deleting: self.deleting(),
            identity: self.identity(),
            nonce: self.annotation(names::NONCE).to_owned(),
            state: WorkloadState {
                asleep,
                suspend_acknowledged: status.suspended == Some(true),
                start_acknowledged: status.suspended == Some(false) || (!asleep && status.start_time.is_some()),
                active: status.active,
                ready: status.ready,
                terminating: status.terminating,
                succeeded: status.succeeded,
                failed: status.failed,
                gang: self.gang(),
                wanted: self.wanted(),
                start_time: status.start_time,
                terminal: status.terminal.map(|(succeeded, at)| Terminal {
                    succeeded,
                    reason: if succeeded {
                        "CompletionsReached"
                    } else {
                        "BackoffLimitExceeded"
                    }
                    .into(),
                    message: String::new(),
                    at: Some(at),
                }),
            },
            raw_status: (*status != Status::default()).then(|| RawJson::from_value(&self.raw_status())),
        }
    }

    fn raw_status(&self) -> Value {
        let status = &self.status;
        let mut raw = json!({});
        for (name, count) in [
            ("active", status.active),
            ("ready", status.ready),
            ("terminating", status.terminating),
            ("succeeded", status.succeeded),
            ("failed", status.failed),
        ] {
            if count != 0 {
                raw[name] = json!(count);
            }
        }
        if let Some(start) = status.start_time {
            raw["startTime"] = json!(start.to_string());
        }
        raw
    }
}
