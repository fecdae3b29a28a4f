//! What may change when: runs only grow, and what runs is what was written when it was placed.

use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use multikueue::api::crds::crds;
use serde_json::{Value, json};

use crate::plane::{
    change_refused, create, install, job, jobs, kubectl, plane, refused, soon, with, worker, workers, write_status,
};

const REFUSAL: &str =
    "spec.template may change only while no worker is assigned, or after the end together with a higher spec.run";

fn assignment() -> Value {
    json!({"cluster": "eu", "clusterUID": "u", "run": 1, "number": 1, "claim": "c", "since": "2026-01-01T00:00:00Z"})
}

fn status(phase: &str, assignment: Option<Value>) -> Value {
    let status = json!({"observedGeneration": 1, "phase": phase, "run": 1, "lastAttempt": 1, "failedAttempts": 0});
    match assignment {
        Some(assignment) => with(status, "assignment", assignment),
        None => status,
    }
}

fn image(image: &str) -> Value {
    json!([{"name": "c", "image": image, "env": [{"name": "A", "value": "1"}]}])
}

fn edit(value: &Value) -> Value {
    json!({"spec": {"template": {"spec": {"template": {"spec": {"containers": value}}}}}})
}

#[tokio::test(flavor = "multi_thread")]
async fn the_run_only_grows() {
    let api = jobs().await;
    create(&api, &with(job("grows"), "spec.run", json!(3))).await;
    let run = |run: i64| json!({"spec": {"run": run}});
    let said = change_refused(&api, "grows", &run(2)).await;
    assert!(
        said.as_ref()
            .is_some_and(|said| said.contains("spec.run may only grow")),
        "{said:?}"
    );
    // Left out it would be 1 again, by default.
    let said = change_refused(&api, "grows", &json!({"spec": {"run": null}})).await;
    assert!(
        said.as_ref()
            .is_some_and(|said| said.contains("spec.run may only grow")),
        "{said:?}"
    );
    assert_eq!(change_refused(&api, "grows", &run(3)).await, None);
    assert_eq!(change_refused(&api, "grows", &run(4)).await, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_template_changes_while_queued_not_while_assigned_and_after_the_end_with_a_higher_run() {
    let api = jobs().await;
    create(&api, &job("edits")).await;
    let edit = edit(&image("registry.example/train:2"));
    let edit_and_run = with(edit.clone(), "spec.run", json!(2));
    assert_eq!(
        change_refused(&api, "edits", &edit).await,
        None,
        "nobody has seen it yet"
    );
    let states = [
        ("Queued", None, true, true),
        ("Suspended", None, true, true),
        ("Queued", Some(assignment()), false, false),
        ("Assigned", Some(assignment()), false, false),
        ("Running", Some(assignment()), false, false),
        ("Unknown", Some(assignment()), false, false),
        ("Suspended", Some(assignment()), false, false),
        ("Succeeded", Some(assignment()), false, true),
        ("Failed", Some(assignment()), false, true),
        ("Succeeded", None, false, true),
        ("Failed", None, false, true),
    ];
    for (phase, assigned, alone, with_run) in states {
        let bound = assigned.is_some();
        write_status(&api, "edits", &status(phase, assigned)).await;
        for (patch, taken) in [(&edit, alone), (&edit_and_run, with_run)] {
            let said = change_refused(&api, "edits", patch).await;
            assert_eq!(said.is_none(), taken, "{phase}, assigned: {bound}: {said:?}");
            assert!(said.is_none_or(|said| said.contains(REFUSAL)), "{phase}");
        }
        for other in [
            json!({"spec": {"suspend": true}}),
            json!({"spec": {"run": 2}}),
            json!({"spec": {"priorityClassName": "high"}}),
            json!({"spec": {"policy": {"maxAttempts": 9}, "placement": {"clusterSelector": {"matchLabels": {"a": "b"}}}}}),
            json!({"metadata": {"finalizers": ["multikueue.rs/dispatched"], "labels": {"a": "b"}}}),
        ] {
            assert_eq!(change_refused(&api, "edits", &other).await, None, "{phase}: {other}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_change_of_the_template_is_too_deep_to_be_seen() {
    let api = jobs().await;
    create(
        &api,
        &with(job("deep"), "spec.template.spec.podFailurePolicy", json!({"rules": []})),
    )
    .await;
    write_status(&api, "deep", &status("Running", Some(assignment()))).await;
    let pod = |value: Value| json!({"spec": {"template": {"spec": {"template": {"spec": value}}}}});
    let job_spec = |value: Value| json!({"spec": {"template": {"spec": value}}});
    for patch in [
        pod(
            json!({"containers": [{"name": "c", "image": "registry.example/train:1", "env": [{"name": "A", "value": "2"}]}]}),
        ),
        pod(json!({"nodeSelector": {"a": "c"}})),
        // As many fields as before, one in the place of another.
        pod(json!({"nodeSelector": null, "tolerations": []})),
        pod(json!({"nodeSelector": {"a": null, "b": "b"}})),
        job_spec(json!({"parallelism": null, "completions": 2})),
        job_spec(json!({"podFailurePolicy": null, "successPolicy": {"rules": []}})),
        job_spec(json!({"podFailurePolicy": {"rules": [{"action": "Ignore"}]}})),
        job_spec(json!({"template": {"metadata": {"labels": {"a": "b"}}}})),
        job_spec(json!({"parallelism": 3})),
        job_spec(json!({"futureKnob": 1})),
        json!({"spec": {"template": {"metadata": {"labels": {"a": "b"}}}}}),
    ] {
        let said = change_refused(&api, "deep", &patch).await;
        assert!(
            said.as_ref().is_some_and(|said| said.contains(REFUSAL)),
            "{patch}: {said:?}"
        );
    }
    assert_eq!(
        change_refused(&api, "deep", &json!({"spec": {"template": {"kind": "Job"}}})).await,
        None,
        "no change"
    );
}

/// The CRD of jobs under another group and another name, since kubectl finds kinds by name alone; with or without its rules.
fn copy(rules: bool) -> Value {
    let crd = serde_json::to_value(&crds()[0]).unwrap();
    let crd = with(crd, "spec.group", json!("before.multikueue.rs"));
    let mut crd = with(crd, "metadata.name", json!("earlierjobs.before.multikueue.rs"));
    crd["spec"]["names"] =
        json!({"kind": "EarlierJob", "listKind": "EarlierJobList", "plural": "earlierjobs", "singular": "earlierjob"});
    if !rules {
        let schema = &mut crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        assert!(
            schema
                .as_object_mut()
                .unwrap()
                .remove("x-kubernetes-validations")
                .is_some()
        );
        let template = &mut schema["properties"]["spec"]["properties"]["template"];
        assert!(
            template
                .as_object_mut()
                .unwrap()
                .remove("x-kubernetes-validations")
                .is_some()
        );
    }
    crd
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rule_made_later_blocks_neither_status_nor_finalizers_of_what_is_there() {
    install(&copy(false)).await;
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("before.multikueue.rs", "v1alpha1", "EarlierJob"));
    let api: Api<DynamicObject> = Api::default_namespaced_with(plane().await.client().await.unwrap(), &kind);
    let old = |name: &str| {
        let job = with(job(name), "apiVersion", json!("before.multikueue.rs/v1alpha1"));
        with(job, "kind", json!("EarlierJob"))
    };
    let long = "x".repeat(63);
    let indexed = with(old(&long), "spec.template.spec.completionMode", json!("Indexed"));
    let objects = [
        ("a.b", old("a.b")),
        (long.as_str(), with(indexed, "spec.template.spec.completions", json!(5))),
        ("never", with(old("never"), "spec.template.spec.parallelism", json!(0))),
    ];
    for (_, object) in &objects {
        create(&api, object).await;
    }
    install(&copy(true)).await;
    soon("the new rules are served", async || {
        refused(&api, &old("c.d")).await.is_some()
    })
    .await;
    for (name, _) in objects {
        write_status(&api, name, &status("Queued", None)).await;
        for finalizers in [json!(["multikueue.rs/dispatched"]), json!([])] {
            let patch = json!([{"op": "add", "path": "/metadata/finalizers", "value": finalizers}]);
            let patch = Patch::<Value>::Json(serde_json::from_value(patch).unwrap());
            api.patch(name, &PatchParams::default(), &patch).await.unwrap();
        }
    }
    kubectl(&["delete", "crd", "earlierjobs.before.multikueue.rs", "--wait=false"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_can_be_cordoned_and_its_status_written_at_any_time() {
    let api = workers().await;
    create(&api, &worker("changes")).await;
    let condition = json!({
        "type": "Connected", "status": "False", "reason": "Timeout", "message": "no answer within 10 s",
        "observedGeneration": 1, "lastTransitionTime": "2026-01-01T00:00:00Z",
    });
    write_status(
        &api,
        "changes",
        &json!({"observedGeneration": 1, "conditions": [condition]}),
    )
    .await;
    for patch in [
        json!({"spec": {"cordoned": true}}),
        json!({"spec": {"taints": [{"key": "a"}], "forceDetach": true}}),
    ] {
        assert_eq!(change_refused(&api, "changes", &patch).await, None, "{patch}");
    }
}
