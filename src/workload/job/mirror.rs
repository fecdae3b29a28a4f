//! The object that is created on a worker: the template, asleep and marked as ours.

use serde_json::{Map, Value, json};

use super::super::MirrorInput;
use super::super::error::TemplateError;
use super::super::field::Field;
use crate::api::{RawJson, names};

/// Metadata that an API server writes, or that points at objects which the worker does not have.
const STRIPPED_METADATA: &[&str] = &[
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "finalizers",
    "generateName",
    "generation",
    "managedFields",
    "ownerReferences",
    "resourceVersion",
    "selfLink",
    "uid",
];

/// Annotations that speak of the object they were taken from.
const STRIPPED_ANNOTATIONS: &[&str] = &[
    "batch.kubernetes.io/job-tracking",
    "kubectl.kubernetes.io/last-applied-configuration",
];

/// Labels that a Job controller generates with its selector; with another Job's uid in them an API server refuses the object.
const GENERATED_LABELS: &[&str] = &[
    "batch.kubernetes.io/controller-uid",
    "batch.kubernetes.io/job-name",
    "controller-uid",
    "job-name",
];

/// The template as an object for the worker. What it does not name in order to change it stays as its user wrote it, fields newer than this
/// code included.
pub(super) fn mirror(input: &MirrorInput<'_>) -> Result<RawJson, TemplateError> {
    let mut document = input.template.to_value();
    let root = Field::root("spec.template", &document);
    let manual_selector = root.at(&["spec", "manualSelector"])?.flag()?.unwrap_or(false);
    let malformed = root.invalid("a Job");
    let Some(object) = document.as_object_mut() else {
        return Err(malformed);
    };
    object.shift_remove("status");

    let metadata = child(object, &["metadata"])?;
    for field in STRIPPED_METADATA {
        metadata.shift_remove(*field);
    }
    metadata.insert("name".to_owned(), json!(&*input.key.name));
    metadata.insert("namespace".to_owned(), json!(&*input.key.namespace));
    let identity = input.identity;
    let labels = child(object, &["metadata", "labels"])?;
    clean(labels, manual_selector);
    labels.insert(names::ORIGIN.to_owned(), json!(identity.origin));
    labels.insert(names::JOB_UID.to_owned(), json!(identity.job_uid));
    let annotations = child(object, &["metadata", "annotations"])?;
    clean(annotations, true);
    for annotation in STRIPPED_ANNOTATIONS {
        annotations.shift_remove(*annotation);
    }
    for (name, value) in [
        (names::ORIGIN_NAME, input.origin_name),
        (names::MANAGER_UID, &identity.manager_uid),
        (names::CLUSTER_UID, &identity.cluster_uid),
        (names::RUN, &identity.run.to_string()),
        (names::JOB, &identity.job),
        (names::ATTEMPT, &identity.number.to_string()),
        (names::NONCE, input.nonce),
    ] {
        annotations.insert(name.to_owned(), json!(value));
    }

    let spec = child(object, &["spec"])?;
    spec.insert("suspend".to_owned(), json!(true));
    // The finished object is kept and removed by the protocol: a worker's TTL controller would take the result away before it was read.
    spec.shift_remove("ttlSecondsAfterFinished");
    // Another controller's name would leave the Job without any.
    spec.shift_remove("managedBy");
    if !manual_selector {
        spec.shift_remove("selector");
    }
    // The default replaces a pod that is still terminating: two pods of one index at once, and more room in use than was packed.
    if spec.get("podReplacementPolicy").is_none_or(Value::is_null) {
        spec.insert("podReplacementPolicy".to_owned(), json!("Failed"));
    }

    let pod_metadata = child(object, &["spec", "template", "metadata"])?;
    pod_metadata.shift_remove("creationTimestamp");
    if let Some(annotations) = pod_metadata.get_mut("annotations").and_then(Value::as_object_mut) {
        clean(annotations, true);
    }
    let labels = child(object, &["spec", "template", "metadata", "labels"])?;
    clean(labels, manual_selector);
    labels.insert(names::JOB_UID.to_owned(), json!(identity.job_uid));
    Ok(RawJson::from_value(&document))
}

/// Takes away marks of ours that the template has no business to carry, what hands the job or its pods to Kueue, and generated labels.
fn clean(map: &mut Map<String, Value>, keep_generated: bool) {
    map.retain(|name, _| {
        let generated = GENERATED_LABELS.contains(&name.as_str());
        !name.starts_with(names::PREFIX) && !name.starts_with(names::KUEUE_PREFIX) && (keep_generated || !generated)
    });
}

/// The object at the end of a path; made where it is absent or null.
fn child<'a>(object: &'a mut Map<String, Value>, path: &[&str]) -> Result<&'a mut Map<String, Value>, TemplateError> {
    let mut at = object;
    for (depth, name) in path.iter().enumerate() {
        let value = at.entry(*name).or_insert(Value::Null);
        if value.is_null() {
            *value = Value::Object(Map::new());
        }
        at = match value {
            Value::Object(map) => map,
            other => {
                return Err(
                    Field::root(&format!("spec.template.{}", path[..=depth].join(".")), other).invalid("an object"),
                );
            }
        };
    }
    Ok(at)
}
