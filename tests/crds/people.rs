//! How people and their tools see our kinds: apply, diff, explain, get, wait.

use std::path::Path;

use serde_json::{Value, json};

use crate::plane::{create, job, jobs, kubectl, plane, repository, write_status, yaml_files};

async fn versions(target: &[&str]) -> String {
    let path = "-o=jsonpath={.metadata.generation} {.metadata.resourceVersion} {.items[*].metadata.resourceVersion}";
    kubectl(&[&["get"], target, &[path]].concat()).await
}

/// Applies a file by both ways twice: nothing changes the second time, and then nothing is left to change.
async fn applies_without_drift(file: &Path) {
    let file = file.to_str().unwrap();
    let client: &[&str] = &["apply", "--validate=strict", "-f", file];
    let server: &[&str] = &[
        "apply",
        "--validate=strict",
        "--server-side",
        "--field-manager=gitops",
        "--force-conflicts",
        "-f",
        file,
    ];
    for apply in [client, server] {
        kubectl(&[apply, &["--dry-run=server"]].concat()).await;
        kubectl(apply).await;
        let before = versions(&["-f", file]).await;
        kubectl(apply).await;
        assert_eq!(versions(&["-f", file]).await, before, "{file}: {apply:?}");
    }
    // Ends with 1 when it has something to say.
    let diff = kubectl(&["diff", "-f", file]).await;
    assert_eq!(diff, "", "{file}");
    let diff = kubectl(&["diff", "--server-side", "--field-manager=gitops", "-f", file]).await;
    assert_eq!(diff, "", "{file}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_crds_apply_by_client_and_by_server_and_the_second_time_changes_nothing() {
    plane().await;
    for file in yaml_files("crds") {
        applies_without_drift(&file).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_examples_apply_by_client_and_by_server_and_the_second_time_changes_nothing() {
    plane().await;
    let files = yaml_files("examples");
    assert!(files.len() >= 7, "{files:?}");
    for file in files {
        applies_without_drift(&file).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_manifests_apply_by_client_and_by_server_and_the_second_time_changes_nothing() {
    plane().await;
    // The namespace is in the role files.
    for name in ["manager-role", "worker-role", "worker-role-namespaces", "deployment"] {
        applies_without_drift(&repository(&format!("deploy/{name}.yaml"))).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_sees_no_drift_whatever_the_operator_has_written() {
    let api = jobs().await;
    let object = job("drift");
    let file = plane().await.folder().join("drift.json");
    std::fs::write(&file, object.to_string()).unwrap();
    let file = file.to_str().unwrap();
    kubectl(&["apply", "-f", file]).await;
    for phase in [
        "Queued",
        "Assigned",
        "Running",
        "Succeeded",
        "Failed",
        "Unknown",
        "Suspended",
    ] {
        let mirror =
            json!({"active": 2, "conditions": [{"type": "Suspended", "status": "False"}], "newer": {"than": "us"}});
        let status = json!({"observedGeneration": 1, "phase": phase, "run": 1, "mirrorStatus": mirror});
        write_status(&api, "drift", &status).await;
        assert_eq!(kubectl(&["diff", "-f", file]).await, "", "{phase}");
        let before = versions(&["mkj", "drift"]).await;
        kubectl(&["apply", "-f", file]).await;
        assert_eq!(versions(&["mkj", "drift"]).await, before, "{phase}");
        let stored = api.get("drift").await.unwrap();
        assert_eq!(
            stored.data["status"]["mirrorStatus"], mirror,
            "fields that we do not know survive"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_template_is_stored_as_it_was_written() {
    let api = jobs().await;
    let template = json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"uid": "u", "futureMeta": {"a": 1}, "managedFields": [{"manager": "kubectl"}], "creationTimestamp": null},
        "spec": {
            "futureKnob": "1.0",
            "managedBy": "example.com/other",
            "suspend": true,
            "ttlSecondsAfterFinished": 5,
            "template": {"spec": {"hostUsers": false, "containers": [{
                "name": "c", "resources": {"limits": {"cpu": "1000m", "memory": "1.0Gi", "nvidia.com/gpu": 8}},
            }]}},
        },
        "status": {"active": 1},
    });
    let stored = create(
        &api,
        &crate::plane::with(job("as-written"), "spec.template", template.clone()),
    )
    .await;
    assert_eq!(stored.data["spec"]["template"], template);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_object_is_not_taken_for_one_that_is_ready() {
    let api = jobs().await;
    let new = create(&api, &job("new")).await;
    let status = |object: &kube::api::DynamicObject| object.data["status"].clone();
    let expected = json!({
        "observedGeneration": -1,
        "phase": "Queued",
        "conditions": [{
            "type": "Ready", "status": "Unknown", "reason": "Pending",
            "message": "the operator has not seen this object yet",
            "lastTransitionTime": "1970-01-01T00:00:00Z",
        }],
    });
    assert_eq!(status(&api.get("new").await.unwrap()), expected);
    assert!(new.metadata.generation == Some(1));
    let waited = plane()
        .await
        .kubectl(&["wait", "--for=condition=Ready", "--timeout=1s", "mkj/new"])
        .await
        .unwrap();
    assert!(!waited.status.success(), "{}", waited.stdout);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_columns_say_where_in_what_state_and_how_fresh() {
    let api = jobs().await;
    create(&api, &job("columns")).await;
    let condition = |type_: &str, status: &str, reason: &str, message: &str| json!({"type": type_, "status": status, "reason": reason, "message": message, "lastTransitionTime": "2026-01-01T00:00:00Z"});
    let status = json!({
        "observedGeneration": 1, "phase": "Unknown", "run": 3, "lastAttempt": 4,
        "assignment": {"cluster": "eu", "clusterUID": "u", "run": 3, "number": 4, "claim": "c", "since": "2026-01-01T00:00:00Z"},
        "conditions": [condition("Ready", "True", "Running", "all pods started"), condition("StatusFresh", "False", "WorkerLost", "")],
    });
    write_status(&api, "columns", &status).await;
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let table = kubectl(&["get", "mkj", "columns"]).await;
    let lines: Vec<_> = table.lines().map(words).collect();
    assert_eq!(lines[0], words("NAME PHASE WORKER REASON FRESH ATTEMPTS AGE"));
    assert_eq!(lines[1][..6], words("columns Unknown eu Running False 4")[..]);
    let wide = kubectl(&["get", "mkj", "columns", "-o", "wide"]).await;
    assert!(
        wide.lines().next().unwrap().ends_with("MESSAGE") && wide.contains("all pods started"),
        "{wide}"
    );
    let workers = kubectl(&["get", "wc", "-o", "wide"]).await;
    let expected =
        "NAME CONNECTED REASON CORDONED FREE LARGEST RUNNING PROMISED VERSION AGE AUTHORIZED CAPACITY LOST UID MESSAGE";
    if let Some(head) = workers.lines().next() {
        assert_eq!(words(head), words(expected));
    }
}

/// Every property below that explains nothing.
fn unexplained(path: &str, schema: &Value, found: &mut Vec<String>, seen: &mut usize) {
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{path}.{name}");
        *seen += 1;
        if property["description"].as_str().is_none_or(str::is_empty) {
            found.push(path.clone());
        }
        unexplained(&path, property, found, seen);
        unexplained(&path, &property["items"], found, seen);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn kubectl_explains_every_field() {
    plane().await;
    let document = kubectl(&["get", "--raw", "/openapi/v3/apis/multikueue.rs/v1alpha1"]).await;
    let document: Value = serde_json::from_str(&document).unwrap();
    for kind in ["MultiKueueJob", "WorkerCluster"] {
        let schema = &document["components"]["schemas"][format!("rs.multikueue.v1alpha1.{kind}")];
        // `metadata` is a reference to the description of the API server's own type.
        let (mut found, mut seen) = (Vec::new(), 0);
        unexplained(kind, schema, &mut found, &mut seen);
        assert!(seen > 30, "{seen} fields of {kind}");
        assert_eq!(found, Vec::<String>::new());
    }
    for (field, words) in [
        ("multikueuejob", "until a worker cluster has room for all of it"),
        ("multikueuejob.spec.run", "It may only grow"),
        (
            "multikueuejob.spec.template.spec.suspend",
            "spec.suspend of the MultiKueueJob",
        ),
        (
            "multikueuejob.spec.placement.clusterSelector.matchExpressions",
            "Requirements that must all hold",
        ),
        (
            "multikueuejob.status.phase",
            "Every pod has been Running or finished once",
        ),
        ("workercluster.spec.kubeconfig.secretRef", "operator's own namespace"),
    ] {
        let text = kubectl(&["explain", field])
            .await
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
        assert!(text.to_lowercase().contains(&words.to_lowercase()), "{field}: {text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_template_meets_a_clear_limit_of_client_side_apply_only() {
    let plane = plane().await;
    let script = "x".repeat(300 * 1024);
    let object = crate::plane::with(job("large"), "spec.template.spec.template.spec.script", json!(script)).to_string();
    let refused = plane.kubectl_with_input(&["apply", "-f", "-"], &object).await.unwrap();
    assert!(
        refused.stderr.contains("metadata.annotations: Too long"),
        "{}",
        refused.stderr
    );
    let taken = plane
        .kubectl_with_input(&["apply", "--server-side", "-f", "-"], &object)
        .await
        .unwrap();
    assert!(taken.status.success(), "{}", taken.stderr);
}
