use serde_json::{Value, json};

use super::{job, raw};
use crate::workload::{Job, TemplateError, TemplateKind, Workload};

fn count(spec: &Value) -> i64 {
    Job.pod_sets(&raw(&job(spec))).unwrap()[0].count
}

#[test]
fn a_job_is_as_many_pods_as_run_at_once() {
    assert_eq!(count(&json!({})), 1);
    assert_eq!(count(&json!({"parallelism": 4, "completions": 10})), 4);
    assert_eq!(count(&json!({"parallelism": 10, "completions": 4})), 4);
    assert_eq!(count(&json!({"completions": 4})), 1);
    // A work queue has no number of completions.
    assert_eq!(count(&json!({"parallelism": 8})), 8);
    assert_eq!(count(&json!({"parallelism": 0, "completions": 4})), 0);
    assert_eq!(count(&json!({"parallelism": null, "completions": null})), 1);
}

#[test]
fn the_shape_is_that_of_its_pods() {
    let sets = Job
        .pod_sets(&raw(&job(&json!({"parallelism": 4, "completions": 4}))))
        .unwrap();
    assert_eq!(sets.len(), 1);
    assert_eq!(sets[0].shape.requests.get("nvidia.com/gpu"), 8);
    let gang = Job
        .pod_sets(&raw(&job(&json!({"scheduling": {"schedulingPolicy": {"gang": {}}}}))))
        .unwrap();
    assert_eq!(gang[0].shape.uncounted, ["spec.scheduling of the Job"]);
}

#[test]
fn a_malformed_job_is_an_error_at_its_field() {
    for (spec, path) in [
        (json!({"parallelism": "4"}), "spec.template.spec.parallelism"),
        (json!({"parallelism": -1}), "spec.template.spec.parallelism"),
        (json!({"parallelism": 1.5}), "spec.template.spec.parallelism"),
        (
            json!({"completions": 4_000_000_000_u64}),
            "spec.template.spec.completions",
        ),
        (json!({"completionMode": "Indexed"}), "spec.template.spec.completions"),
        (
            json!({"completionMode": "indexed"}),
            "spec.template.spec.completionMode",
        ),
        (json!({"manualSelector": "true"}), "spec.template.spec.manualSelector"),
        (
            json!({"template": null}),
            "spec.template.spec.template.spec.restartPolicy",
        ),
        (
            json!({"template": {"spec": {"restartPolicy": "Always"}}}),
            "spec.template.spec.template.spec.restartPolicy",
        ),
        (
            json!({"template": {"spec": {"restartPolicy": "Never"}}}),
            "spec.template.spec.template.spec.containers",
        ),
    ] {
        match Job.pod_sets(&raw(&job(&spec))) {
            Err(TemplateError::Invalid { path: at, .. }) => assert_eq!(at, path),
            other => panic!("{spec}: {other:?}"),
        }
    }
    assert!(Job.pod_sets(&raw(&json!([]))).is_err());
}

#[test]
fn a_kind_is_told_by_group_version_and_kind() {
    let kind = |version: &str, kind: &str| TemplateKind::of(&raw(&json!({"apiVersion": version, "kind": kind})));
    assert_eq!(kind("batch/v1", "Job"), Ok(TemplateKind::Job));
    assert_eq!(
        kind("batch/v1beta1", "Job").unwrap_err().to_string(),
        "spec.template is a batch/v1beta1/Job; right would be batch/v1/Job"
    );
    assert!(kind("example.com/v1", "Job").is_err());
    assert_eq!(
        TemplateKind::of(&raw(&json!({"kind": "Job"}))).unwrap_err().to_string(),
        "spec.template.apiVersion is missing; right would be a string"
    );
    assert!(TemplateKind::of(&raw(&json!(7))).is_err());
    let served = TemplateKind::Job.workload().api_resource();
    assert_eq!(
        format!("{}/{}/{}", served.group, served.version, served.kind),
        TemplateKind::Job.as_str()
    );
}
