//! Parts of the CRD schemas that the types cannot say for themselves.
//!
//! Every string, list and map that a CEL rule can see has a maximum: the API server refuses a rule whose worst case costs too much.

use schemars::transform::{Transform, transform_subschemas};
use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value, json};

/// Longest text of a condition, as in `metav1.Condition`.
pub(super) const MAX_MESSAGE: u32 = 32768;
/// A DNS label (RFC 1123), anchored.
pub(super) const DNS_LABEL: &str = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$";
/// A DNS subdomain: labels with dots between; what names of most objects look like.
pub(super) const DNS_SUBDOMAIN: &str = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$";
/// Key of a label or a taint: an optional DNS subdomain and a slash, then a name of at most 63 characters.
pub(super) const LABEL_KEY: &str = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$";
/// Value of a label or a taint; may be empty.
pub(super) const LABEL_VALUE: &str = "^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$";
/// Key of a Secret.
pub(super) const SECRET_KEY: &str = "^[-._a-zA-Z0-9]+$";

/// Makes optional fields absent-or-valued instead of nullable, and joins the lines of descriptions.
///
/// A nullable field would keep an explicit `null` in the stored object, where a later server-side apply without the field and the
/// defaults of the schema both do something else than for an absent one. Without it the API server prunes nulls.
#[derive(Debug, Clone)]
pub(super) struct Plain;

impl Transform for Plain {
    fn transform(&mut self, schema: &mut Schema) {
        transform_subschemas(self, schema);
        let Some(object) = schema.as_object_mut() else {
            return;
        };
        hoist_optional(object);
        if let Some(Value::Array(types)) = object.get_mut("type") {
            types.retain(|name| name != "null");
            if let [only] = types.as_slice() {
                let only = only.clone();
                object.insert("type".into(), only);
            }
        }
        if object.get("default") == Some(&Value::Null) {
            object.remove("default");
        }
        // Lines are wrapped in the source; `kubectl explain` wraps for itself. Titles repeat names of Rust types.
        if let Some(Value::String(text)) = object.get_mut("description") {
            *text = text
                .split("\n\n")
                .map(|paragraph| paragraph.replace('\n', " "))
                .collect::<Vec<_>>()
                .join("\n\n");
        }
        object.remove("title");
    }
}

/// `anyOf: [X, null]` becomes X; the description of the field wins over that of its type.
fn hoist_optional(object: &mut Map<String, Value>) {
    let Some(Value::Array(choices)) = object.get("anyOf") else {
        return;
    };
    let is_null = |choice: &Value| choice.get("type").is_some_and(|name| name == "null");
    let [first, second] = choices.as_slice() else {
        return;
    };
    let (Value::Object(inner), true) = (first, is_null(second)) else {
        return;
    };
    let inner = inner.clone();
    object.remove("anyOf");
    for (key, value) in inner {
        object.entry(key).or_insert(value);
    }
}

/// As [`Plain`], for a status. Its fields have no defaults of their own, since the operator writes it whole; but a new object has a
/// status that says that nobody has looked at it yet. Without it, tools that know only the general rules of status (kstatus,
/// `kubectl wait`, pipelines) take a new object for one that is ready.
pub(super) fn status_of(schema: &mut Schema, phase: Option<&str>, condition: &str) {
    Plain.transform(schema);
    let Some(object) = schema.as_object_mut() else {
        return;
    };
    if let Some(Value::Object(properties)) = object.get_mut("properties") {
        for property in properties.values_mut().filter_map(Value::as_object_mut) {
            property.remove("default");
        }
    }
    let mut default = json!({
        "observedGeneration": -1,
        "conditions": [{
            "type": condition,
            "status": "Unknown",
            "reason": "Pending",
            "message": "the operator has not seen this object yet",
            "lastTransitionTime": "1970-01-01T00:00:00Z",
        }],
    });
    if let (Some(phase), Some(default)) = (phase, default.as_object_mut()) {
        default.insert("phase".into(), phase.into());
    }
    object.insert("default".into(), default);
}

/// Schema of `metav1.Condition`s: one per type, with the limits that its Go type has.
pub(super) fn conditions(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "maxItems": 16,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
        "items": {
            "type": "object",
            "description": "One aspect of the state of the object.",
            "required": ["lastTransitionTime", "message", "reason", "status", "type"],
            "properties": {
                "type": {"type": "string", "maxLength": 316, "description": "What the condition is about."},
                "status": {
                    "type": "string",
                    "enum": ["True", "False", "Unknown"],
                    "description": "Whether it holds: True, False or Unknown.",
                },
                "reason": {
                    "type": "string",
                    "minLength": 1,
                    "maxLength": 1024,
                    "description": "Why it has this status, as one word for programs.",
                },
                "message": {
                    "type": "string",
                    "maxLength": MAX_MESSAGE,
                    "description": "Why it has this status, for people.",
                },
                "observedGeneration": {
                    "type": "integer",
                    "format": "int64",
                    "description": "The metadata.generation that the condition speaks of.",
                },
                "lastTransitionTime": {
                    "type": "string",
                    "format": "date-time",
                    "description": "When the status last changed.",
                },
            },
        },
    })
}

/// Schema of a label selector that is refused when no object could ever be selected as it is written.
pub(super) fn label_selector(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "x-kubernetes-map-type": "atomic",
        "properties": {
            "matchLabels": {
                "type": "object",
                "maxProperties": 32,
                "additionalProperties": {"type": "string", "maxLength": 63, "pattern": LABEL_VALUE},
                "description": "Labels that must be there with exactly these values.",
            },
            "matchExpressions": {
                "type": "array",
                "maxItems": 32,
                "description": "Requirements that must all hold, besides matchLabels.",
                "items": {
                    "type": "object",
                    "required": ["key", "operator"],
                    "properties": {
                        "key": {
                            "type": "string",
                            "maxLength": 317,
                            "pattern": LABEL_KEY,
                            "description": "Key of the label.",
                        },
                        "operator": {
                            "type": "string",
                            "enum": ["In", "NotIn", "Exists", "DoesNotExist"],
                            "description": "How the label is compared: In and NotIn with values, Exists and DoesNotExist without.",
                        },
                        "values": {
                            "type": "array",
                            "maxItems": 64,
                            "items": {"type": "string", "maxLength": 63, "pattern": LABEL_VALUE},
                            "x-kubernetes-list-type": "atomic",
                            "description": "Values that In and NotIn compare with.",
                        },
                    },
                    "x-kubernetes-validations": [{
                        "rule": "self.operator in ['In', 'NotIn'] ? has(self.values) && size(self.values) > 0 : !has(self.values) || size(self.values) == 0",
                        "message": "In and NotIn need at least one value; Exists and DoesNotExist take none",
                        "fieldPath": ".values",
                    }],
                },
                "x-kubernetes-list-type": "atomic",
            },
        },
    })
}

/// Schema of a template.
///
/// Not `x-kubernetes-embedded-resource`: that rewrites `metadata` (it drops what the API server does not know), and a template goes
/// to its worker as it was written.
///
/// Scalars of a Job's spec are declared so that rules can read them, its objects so that they are seen to come and go: among
/// undeclared fields, `==` of the API server takes one in the place of another for no change. What is below those
/// objects is not declared, and so compared whole and deep.
pub(super) fn template(_: &mut SchemaGenerator) -> Schema {
    let text = |max: u32, description: &str| json!({"type": "string", "maxLength": max, "description": description});
    let number =
        |description: &str| json!({"type": "integer", "format": "int32", "minimum": 0, "description": description});
    let flag = |description: &str| json!({"type": "boolean", "description": description});
    let object = |description: &str| json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "description": description});
    json_schema!({
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": true,
        "required": ["apiVersion", "kind", "spec"],
        "properties": {
            "apiVersion": text(253, "API version of the object: batch/v1."),
            "kind": text(63, "Kind of the object: Job."),
            "metadata": {
                "type": "object",
                "x-kubernetes-preserve-unknown-fields": true,
                "description": "Labels and annotations of the object. Namespace and name are those of the MultiKueueJob whatever stands here, and what an API server makes (uid, resourceVersion, ...) is left out.",
                "properties": {
                    "name": text(253, "Not used: the object has the name of the MultiKueueJob."),
                    "generateName": text(253, "Not used: the object has the name of the MultiKueueJob."),
                    "namespace": text(253, "Not used: the object has the namespace of the MultiKueueJob."),
                    "labels": {
                        "type": "object",
                        "additionalProperties": {"type": "string", "maxLength": 63, "pattern": LABEL_VALUE},
                        "maxProperties": 64,
                        "description": "Labels of the object. Those that an API server puts on a Job by itself are left out.",
                    },
                    "annotations": {
                        "type": "object",
                        "additionalProperties": {"type": "string"},
                        "description": "Annotations of the object.",
                    },
                },
            },
            "spec": {
                "type": "object",
                "x-kubernetes-preserve-unknown-fields": true,
                "required": ["template"],
                "description": "The spec of the Job. Fields beyond those listed here travel to the worker as they are; see `kubectl explain job.spec`.",
                "properties": {
                    "parallelism": number("How many pods run at once, at least 1. All of them must find room on one worker before the job goes there."),
                    "completions": number("How many pods must succeed."),
                    "completionMode": {
                        "type": "string",
                        "enum": ["NonIndexed", "Indexed"],
                        "description": "Whether each pod has an index of its own. An Indexed Job needs completions.",
                    },
                    "backoffLimit": number("How many pods may fail before the Job fails."),
                    "backoffLimitPerIndex": number("How many pods of one index may fail before the index fails."),
                    "maxFailedIndexes": number("How many indexes may fail before the Job fails."),
                    "activeDeadlineSeconds": {
                        "type": "integer",
                        "format": "int64",
                        "minimum": 0,
                        "description": "How long the Job may run on the worker; time in the queue does not count.",
                    },
                    "podReplacementPolicy": {
                        "type": "string",
                        "enum": ["TerminatingOrFailed", "Failed"],
                        "description": "When a pod is replaced: as soon as it is being deleted, or only once it has failed.",
                    },
                    "podFailurePolicy": object("Which failures of pods count, and which end the Job."),
                    "successPolicy": object("When an Indexed Job has succeeded before all of its indexes have."),
                    "template": object("The pods of the Job."),
                    "selector": object("Which pods are the Job's; kept as written with manualSelector only."),
                    "manualSelector": flag("True: selector and pod labels are kept as written. Otherwise the worker makes them, and what another API server made is left out."),
                    "suspend": flag("Not used: spec.suspend of the MultiKueueJob says whether the job runs."),
                    "ttlSecondsAfterFinished": number("Not used: spec.policy.retainMirrorSeconds says how long the finished object stays."),
                    "managedBy": text(63, "Not used: on the worker the Job controller runs the Job."),
                },
            },
        },
    })
}
