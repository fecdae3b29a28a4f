//! What cannot work is refused at apply with words that say what would; what differs in that one point only is taken.

use serde_json::{Value, json};

use crate::plane::{job, jobs, refused, with, worker, workers};

/// One field, a value that is refused, a part of the message, and a value that is taken.
type Case = (&'static str, Value, &'static str, Value);

const TEMPLATE: &str = "spec.template.spec";

#[tokio::test(flavor = "multi_thread")]
#[allow(clippy::too_many_lines, reason = "one table")]
async fn a_job_that_cannot_work_is_refused_and_its_good_twin_is_taken() {
    let api = jobs().await;
    let selector = |expression: Value| json!({"matchExpressions": [expression]});
    let preference = |weight: i64| json!([{"weight": weight, "selector": {"matchLabels": {"tier": "onprem"}}}]);
    let cases: Vec<Case> = vec![
        (
            "metadata.name",
            json!("a.b"),
            "metadata.name must be a DNS label of at most 63 characters",
            json!("a-b"),
        ),
        (
            "metadata.name",
            json!("x".repeat(64)),
            "must be a DNS label of at most 63",
            json!("x".repeat(63)),
        ),
        ("spec.run", json!(0), "should be greater than or equal to 1", json!(7)),
        (
            "spec.template.apiVersion",
            json!("batch/v1beta1"),
            "batch/v1 Job; it is batch/v1beta1 Job",
            json!("batch/v1"),
        ),
        (
            "spec.template.kind",
            json!("CronJob"),
            "one of these kinds: batch/v1 Job; it is batch/v1 CronJob",
            json!("Job"),
        ),
        (
            "spec.template.spec.parallelism",
            json!(0),
            "parallelism must be at least 1",
            json!(1),
        ),
        (
            "spec.template.spec.parallelism",
            json!(-1),
            "greater than or equal to 0",
            json!(100),
        ),
        (
            "spec.template.spec.parallelism",
            json!("4"),
            "must be of type integer",
            json!(4),
        ),
        (
            "spec.template.spec.completionMode",
            json!("Indexed"),
            "Indexed needs completions",
            json!("NonIndexed"),
        ),
        (
            "spec.template.spec.completionMode",
            json!("Sorted"),
            "Unsupported value",
            json!("NonIndexed"),
        ),
        (
            "spec.template.metadata.labels",
            json!({"a": "b c"}),
            "spec.template.metadata.labels.a",
            json!({"a": "b-c"}),
        ),
        (
            "spec.priorityClassName",
            json!("High!"),
            "spec.priorityClassName",
            json!("high"),
        ),
        (
            "spec.priorityClassName",
            json!(""),
            "spec.priorityClassName",
            json!("h"),
        ),
        (
            "spec.placement.preferences",
            preference(0),
            "greater than or equal to 1",
            preference(1),
        ),
        (
            "spec.placement.preferences",
            preference(101),
            "less than or equal to 100",
            preference(100),
        ),
        (
            "spec.placement.clusterSelector",
            selector(json!({"key": "a", "operator": "In"})),
            "In and NotIn need at least one value",
            selector(json!({"key": "a", "operator": "In", "values": ["b"]})),
        ),
        (
            "spec.placement.clusterSelector",
            selector(json!({"key": "a", "operator": "NotIn", "values": []})),
            "In and NotIn need at least one value",
            selector(json!({"key": "a", "operator": "NotIn", "values": ["b"]})),
        ),
        (
            "spec.placement.clusterSelector",
            selector(json!({"key": "a", "operator": "Exists", "values": ["b"]})),
            "Exists and DoesNotExist take none",
            selector(json!({"key": "a", "operator": "Exists", "values": []})),
        ),
        (
            "spec.placement.clusterSelector",
            selector(json!({"key": "a", "operator": "Gt", "values": ["1"]})),
            "Unsupported value: \"Gt\"",
            selector(json!({"key": "x.io/a", "operator": "DoesNotExist"})),
        ),
        (
            "spec.placement.clusterSelector",
            selector(json!({"key": "a b", "operator": "Exists"})),
            "matchExpressions[0].key",
            selector(json!({"key": "a_b", "operator": "Exists"})),
        ),
        (
            "spec.placement.clusterSelector",
            json!({"matchLabels": {"region": "eu west"}}),
            "matchLabels.region",
            json!({"matchLabels": {"region": "eu-west"}}),
        ),
        (
            "spec.placement.tolerations",
            json!([{"key": "a", "operator": "Exists", "value": "b"}]),
            "operator Exists takes no value",
            json!([{"key": "a", "operator": "Exists"}, {"operator": "Exists"}]),
        ),
        (
            "spec.placement.tolerations",
            json!([{"value": "b"}]),
            "operator Equal needs a key",
            json!([{"key": "a", "value": "b"}, {"key": "a"}]),
        ),
        (
            "spec.policy.onWorkerLost",
            json!("Redispatch"),
            "supported values: \"Wait\"",
            json!("Wait"),
        ),
        (
            "spec.policy.startTimeoutSeconds",
            json!(0),
            "greater than or equal to 1",
            json!(1),
        ),
        (
            "spec.policy.startTimeoutSeconds",
            json!(31_536_001),
            "less than or equal to 31536000",
            json!(31_536_000),
        ),
        (
            "spec.policy.maxQueueSeconds",
            json!(0),
            "greater than or equal to 1",
            json!(1),
        ),
        (
            "spec.policy.maxAttempts",
            json!(0),
            "greater than or equal to 1",
            json!(1),
        ),
        (
            "spec.policy.retainMirrorSeconds",
            json!(-1),
            "greater than or equal to 0",
            json!(0),
        ),
        (
            "spec.policy.deletionTimeoutSeconds",
            json!(86_401),
            "less than or equal to 86400",
            json!(86_400),
        ),
        (
            "spec.policy.deletionTimeoutSeconds",
            json!(-1),
            "greater than or equal to 0",
            json!(0),
        ),
    ];
    let sound = job("sound");
    assert_eq!(refused(&api, &sound).await, None);
    for (path, wrong, message, right) in cases {
        let said = refused(&api, &with(sound.clone(), path, wrong.clone())).await;
        assert!(
            said.as_ref().is_some_and(|said| said.contains(message)),
            "{path} = {wrong}: {said:?}"
        );
        assert_eq!(
            refused(&api, &with(sound.clone(), path, right.clone())).await,
            None,
            "{path} = {right}"
        );
    }
    for path in [
        "spec.template",
        "spec.template.spec",
        "spec.template.apiVersion",
        "spec.template.spec.template",
    ] {
        let said = refused(&api, &with(sound.clone(), path, Value::Null)).await;
        assert!(
            said.as_ref().is_some_and(|said| said.contains("Required value")),
            "without {path}: {said:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_name_of_an_indexed_job_leaves_room_for_its_highest_index() {
    let api = jobs().await;
    let indexed = |length: usize, completions: i64| {
        let job = with(
            job(&"x".repeat(length)),
            &format!("{TEMPLATE}.completionMode"),
            json!("Indexed"),
        );
        with(job, &format!("{TEMPLATE}.completions"), json!(completions))
    };
    // A dash, and one digit for ten indexes, two for eleven.
    for (length, completions, fits) in [
        (61, 10, true),
        (62, 10, false),
        (61, 11, false),
        (60, 11, true),
        (60, 101, false),
        (59, 101, true),
        (63, 0, true),
    ] {
        let said = refused(&api, &indexed(length, completions)).await;
        let expected = "highest index (completions - 1) must have at most 63 characters together";
        assert_eq!(
            said.is_none(),
            fits,
            "{length} characters, {completions} indexes: {said:?}"
        );
        assert!(said.is_none_or(|said| said.contains(expected)));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_cannot_work_is_refused_and_its_good_twin_is_taken() {
    let api = workers().await;
    let cases: Vec<Case> = vec![
        (
            "spec.kubeconfig.secretRef.name",
            json!(""),
            "secretRef.name",
            json!("a"),
        ),
        (
            "spec.kubeconfig.secretRef.name",
            json!("Not_A_Name"),
            "secretRef.name",
            json!("a.b"),
        ),
        (
            "spec.kubeconfig.secretRef.key",
            json!("a/b"),
            "secretRef.key",
            json!("a_b.yaml"),
        ),
        (
            "spec.taints",
            json!([{"key": "a", "value": "1"}, {"key": "a", "value": "2"}]),
            "Duplicate value",
            json!([{"key": "a", "value": "1"}, {"key": "b"}]),
        ),
        (
            "spec.taints",
            json!([{"key": ""}]),
            "spec.taints[0].key",
            json!([{"key": "x.io/a"}]),
        ),
        (
            "spec.taints",
            json!([{"key": "a", "effect": "NoExecute"}]),
            "supported values: \"NoSchedule\"",
            json!([{"key": "a", "effect": "NoSchedule"}]),
        ),
        (
            "spec.namespaces.allow",
            json!(["team-a", "kube-system"]),
            "namespaces of the control plane (kube-*) are never used",
            json!(["team-a", "kubeflow"]),
        ),
        (
            "spec.namespaces.allow",
            json!(["team.a"]),
            "spec.namespaces.allow[0]",
            json!(["team-a"]),
        ),
        (
            "spec.namespaces.allow",
            json!(["a", "a"]),
            "Duplicate value",
            json!(["a", "b"]),
        ),
    ];
    let sound = worker("sound");
    assert_eq!(refused(&api, &sound).await, None);
    for (path, wrong, message, right) in cases {
        let said = refused(&api, &with(sound.clone(), path, wrong.clone())).await;
        assert!(
            said.as_ref().is_some_and(|said| said.contains(message)),
            "{path} = {wrong}: {said:?}"
        );
        assert_eq!(
            refused(&api, &with(sound.clone(), path, right.clone())).await,
            None,
            "{path} = {right}"
        );
    }
}
