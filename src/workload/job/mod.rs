//! `batch/v1` Job.

mod mirror;
mod read;

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};

pub use read::{JobConditionLite, JobLite, JobSpecLite, JobStatusLite, MAX_RAW_STATUS};

use super::error::TemplateError;
use super::field::Field;
use super::pod_template;
use super::{ApiResource, MirrorInput, Workload, WorkloadState};
use crate::api::{RawJson, ResourceVersion, names};
use crate::resources::PodSet;

/// What is known of `batch/v1` Jobs.
#[derive(Debug, Clone, Copy)]
pub struct Job;

impl Workload for Job {
    fn api_resource(&self) -> ApiResource {
        ApiResource {
            group: "batch",
            version: "v1",
            kind: "Job",
            plural: "jobs",
        }
    }

    fn pod_sets(&self, template: &RawJson) -> Result<Vec<PodSet>, TemplateError> {
        let document = template.to_value();
        let spec = Field::root("spec.template", &document).get("spec")?;
        let pod_template = spec.get("template")?;
        let restart = pod_template.at(&["spec", "restartPolicy"])?;
        if !matches!(restart.text()?, Some("Never" | "OnFailure")) {
            return Err(restart.invalid("Never or OnFailure"));
        }
        spec.get("manualSelector")?.flag()?;
        let parallelism = spec.get("parallelism")?.count()?.unwrap_or(1);
        let completions = spec.get("completions")?;
        let mode = spec.get("completionMode")?;
        match mode.text()? {
            None | Some("NonIndexed") => {}
            Some("Indexed") if completions.value().is_some() => {}
            Some("Indexed") => return Err(completions.invalid("a number, since completionMode is Indexed")),
            Some(_) => return Err(mode.invalid("NonIndexed or Indexed")),
        }
        let mut shape = pod_template::shape(&pod_template)?;
        if spec.get("scheduling")?.value().is_some() {
            shape.uncounted.push("spec.scheduling of the Job".to_owned());
        }
        Ok(vec![PodSet {
            shape: Arc::new(shape),
            count: completions
                .count()?
                .map_or(parallelism, |completions| parallelism.min(completions)),
        }])
    }

    fn mirror(&self, input: &MirrorInput<'_>) -> Result<RawJson, TemplateError> {
        mirror::mirror(input)
    }

    fn release_patch(&self, uid: &str, old_nonce: &str, new_nonce: &str) -> Value {
        let nonce = format!(
            "/metadata/annotations/{}",
            names::NONCE.replace('~', "~0").replace('/', "~1")
        );
        json!([
            {"op": "test", "path": "/metadata/uid", "value": uid},
            {"op": "test", "path": nonce, "value": old_nonce},
            // An absent path tests equal to null on an API server: what is being deleted is not released.
            {"op": "test", "path": "/metadata/deletionTimestamp", "value": null},
            {"op": "replace", "path": nonce, "value": new_nonce},
            {"op": "replace", "path": "/spec/suspend", "value": false},
        ])
    }

    fn suspend_patch(&self, uid: &str, resource_version: ResourceVersion, new_nonce: &str) -> Value {
        json!({
            "metadata": {
                "uid": uid,
                "resourceVersion": resource_version.to_string(),
                "annotations": {names::NONCE: new_nonce},
            },
            "spec": {"suspend": true},
        })
    }

    fn read(&self, object: &Value) -> Result<(WorkloadState, Option<RawJson>), serde_json::Error> {
        let job = JobLite::deserialize(object)?;
        Ok((job.state(), job.raw_status))
    }
}

#[cfg(test)]
mod tests;
