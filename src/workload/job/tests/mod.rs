mod mirror;
mod pod_sets;
mod read;

use serde_json::{Value, json};

use crate::api::RawJson;

/// A Job of `spec` and a pod of one container with eight devices.
fn job(spec: &Value) -> Value {
    let mut job = json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "spec": {"template": {"spec": {
            "restartPolicy": "Never",
            "containers": [{"name": "main", "image": "train", "resources": {"limits": {"nvidia.com/gpu": 8}}}],
        }}},
    });
    for (name, value) in spec.as_object().unwrap() {
        job["spec"][name] = value.clone();
    }
    job
}

fn raw(value: &Value) -> RawJson {
    RawJson::from_value(value)
}
