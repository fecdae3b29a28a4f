use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{job, raw};
use crate::api::{JobKey, MirrorIdentity, ResourceVersion, names};
use crate::workload::{Job, MirrorInput, Workload};

fn identity() -> MirrorIdentity {
    MirrorIdentity {
        origin: "0123456789abcdef".to_owned(),
        manager_uid: "manager-1".to_owned(),
        cluster_uid: "cluster-1".to_owned(),
        job: "team-a/train".to_owned(),
        job_uid: "job-1".to_owned(),
        run: 2,
        number: 7,
    }
}

fn mirror(template: &Value) -> Value {
    let input = MirrorInput {
        template: &raw(template),
        key: &JobKey::new("team-a", "train"),
        identity: &identity(),
        origin_name: "manager-1/multikueue",
        nonce: "claim.1",
    };
    Job.mirror(&input).unwrap().to_value()
}

fn strings(value: &Value) -> BTreeMap<String, String> {
    serde_json::from_value(value.clone()).unwrap()
}

#[test]
fn a_mirror_sleeps_under_the_job_s_own_name_and_carries_our_marks() {
    let made = mirror(&job(&json!({"parallelism": 4})));
    assert_eq!(
        made["metadata"],
        json!({
            "name": "train",
            "namespace": "team-a",
            "labels": {"multikueue.rs/origin": "0123456789abcdef", "multikueue.rs/job-uid": "job-1"},
            "annotations": {
                "multikueue.rs/origin-name": "manager-1/multikueue",
                "multikueue.rs/manager-uid": "manager-1",
                "multikueue.rs/cluster-uid": "cluster-1",
                "multikueue.rs/run": "2",
                "multikueue.rs/job": "team-a/train",
                "multikueue.rs/attempt": "7",
                "multikueue.rs/nonce": "claim.1",
            },
        })
    );
    assert_eq!(made["spec"]["suspend"], true);
    assert_eq!(
        made["spec"]["template"]["metadata"]["labels"],
        json!({"multikueue.rs/job-uid": "job-1"})
    );
    let read = MirrorIdentity::read(
        &strings(&made["metadata"]["labels"]),
        &strings(&made["metadata"]["annotations"]),
    );
    assert_eq!(read, Some(identity()));
}

#[test]
fn an_object_without_one_of_the_marks_is_a_stranger_s() {
    let made = mirror(&job(&json!({})));
    let (labels, annotations) = (
        strings(&made["metadata"]["labels"]),
        strings(&made["metadata"]["annotations"]),
    );
    for name in [names::ORIGIN, names::JOB_UID] {
        let mut labels = labels.clone();
        labels.remove(name);
        assert_eq!(MirrorIdentity::read(&labels, &annotations), None, "{name}");
    }
    for name in [names::MANAGER_UID, names::CLUSTER_UID, names::RUN, names::ATTEMPT] {
        let mut annotations = annotations.clone();
        annotations.remove(name);
        assert_eq!(MirrorIdentity::read(&labels, &annotations), None, "{name}");
    }
    let mut malformed = annotations;
    malformed.insert(names::RUN.to_owned(), "second".to_owned());
    assert_eq!(MirrorIdentity::read(&labels, &malformed), None);
}

/// Case 111.
#[test]
fn managed_by_suspend_and_ttl_of_the_template_do_not_travel() {
    let made = mirror(&job(
        &json!({"managedBy": "example.com/other", "suspend": false, "ttlSecondsAfterFinished": 5}),
    ));
    assert_eq!(made["spec"]["suspend"], true);
    assert_eq!(
        (
            made["spec"].get("managedBy"),
            made["spec"].get("ttlSecondsAfterFinished")
        ),
        (None, None)
    );
}

/// Case 50.
#[test]
fn a_ttl_of_zero_cannot_take_the_result_away() {
    assert_eq!(
        mirror(&job(&json!({"ttlSecondsAfterFinished": 0})))["spec"].get("ttlSecondsAfterFinished"),
        None
    );
}

/// A Job as `kubectl get -o json` shows it.
fn from_a_cluster(extra: &Value) -> Value {
    let generated = json!({
        "controller-uid": "old", "job-name": "old", "batch.kubernetes.io/controller-uid": "old", "batch.kubernetes.io/job-name": "old",
        "app": "train",
    });
    let mut object = job(&json!({
        "selector": {"matchLabels": {"batch.kubernetes.io/controller-uid": "old"}},
        "manualSelector": false,
        "suspend": false,
        "podReplacementPolicy": "TerminatingOrFailed",
    }));
    object["metadata"] = json!({
        "name": "old", "namespace": "elsewhere", "generateName": "old-", "uid": "old", "resourceVersion": "7", "generation": 3,
        "creationTimestamp": "2026-01-01T00:00:00Z", "deletionTimestamp": null, "managedFields": [{}], "selfLink": "/x",
        "ownerReferences": [{"uid": "cron"}], "finalizers": ["foregroundDeletion"], "labels": generated,
        "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}", "batch.kubernetes.io/job-tracking": "", "team": "a"},
    });
    object["spec"]["template"]["metadata"] = json!({"creationTimestamp": null, "labels": generated});
    object["status"] = json!({"succeeded": 1, "conditions": [{"type": "Complete", "status": "True"}]});
    for (name, value) in extra.as_object().unwrap() {
        object["spec"][name] = value.clone();
    }
    object
}

/// Case 104 (a).
#[test]
fn what_an_api_server_generated_is_stripped() {
    let made = mirror(&from_a_cluster(&json!({})));
    let keys: Vec<_> = made["metadata"].as_object().unwrap().keys().collect();
    assert_eq!(keys, ["name", "namespace", "labels", "annotations"]);
    assert_eq!(
        (&made["metadata"]["name"], &made["metadata"]["namespace"]),
        (&json!("train"), &json!("team-a"))
    );
    let labels = strings(&made["metadata"]["labels"]);
    assert_eq!(
        labels.keys().collect::<Vec<_>>(),
        ["app", names::JOB_UID, names::ORIGIN]
    );
    let annotations = strings(&made["metadata"]["annotations"]);
    assert!(
        annotations
            .keys()
            .all(|name| name == "team" || name.starts_with(names::PREFIX)),
        "{annotations:?}"
    );
    assert_eq!(
        made["spec"]["template"]["metadata"],
        json!({"labels": {"app": "train", "multikueue.rs/job-uid": "job-1"}})
    );
    assert_eq!((made.get("status"), made["spec"].get("selector")), (None, None));
    assert_eq!(made["spec"]["podReplacementPolicy"], "TerminatingOrFailed");
}

/// Case 104 (b) and (d).
#[test]
fn a_manual_selector_keeps_the_selector_and_every_label() {
    let made = mirror(&from_a_cluster(
        &json!({"manualSelector": true, "selector": {"matchLabels": {"job-name": "old"}}}),
    ));
    assert_eq!(made["spec"]["selector"], json!({"matchLabels": {"job-name": "old"}}));
    for labels in [
        &made["metadata"]["labels"],
        &made["spec"]["template"]["metadata"]["labels"],
    ] {
        for label in [
            "controller-uid",
            "job-name",
            "batch.kubernetes.io/controller-uid",
            "batch.kubernetes.io/job-name",
        ] {
            assert_eq!(labels[label], "old", "{label}");
        }
    }
}

/// Case 104 (c).
#[test]
fn legacy_labels_alone_are_stripped_too() {
    let mut template = job(&json!({}));
    template["spec"]["template"]["metadata"] = json!({"labels": {"controller-uid": "old", "job-name": "old"}});
    assert_eq!(
        mirror(&template)["spec"]["template"]["metadata"]["labels"],
        json!({"multikueue.rs/job-uid": "job-1"})
    );
}

#[test]
fn neither_the_job_nor_its_pods_are_handed_to_another_queue_manager() {
    let mut template = job(&json!({}));
    let handed =
        json!({"kueue.x-k8s.io/queue-name": "q", "kueue.x-k8s.io/prebuilt-workload-name": "w", "app": "train"});
    template["metadata"] = json!({"labels": handed, "annotations": handed});
    template["spec"]["template"]["metadata"] = json!({"labels": handed, "annotations": handed});
    let made = mirror(&template);
    assert!(!made.to_string().contains("kueue.x-k8s.io"), "{made}");
    for metadata in [&made["metadata"], &made["spec"]["template"]["metadata"]] {
        assert_eq!(
            (&metadata["labels"]["app"], &metadata["annotations"]["app"]),
            (&json!("train"), &json!("train"))
        );
    }
}

#[test]
fn a_template_cannot_forge_our_marks() {
    let mut template = job(&json!({}));
    let forged = json!({"multikueue.rs/origin": "x", "multikueue.rs/job-uid": "x", "multikueue.rs/nonce": "x", "multikueue.rs/other": "x"});
    template["metadata"] = json!({"labels": forged, "annotations": forged});
    template["spec"]["template"]["metadata"] = json!({"labels": forged});
    let made = mirror(&template);
    assert!(!made.to_string().contains(r#":"x""#), "{made}");
}

/// Case 109.
#[test]
fn fields_newer_than_this_code_survive_at_every_level() {
    let mut template = job(&json!({"futureKnob": 1}));
    template["futureKnob"] = json!(1);
    template["metadata"] = json!({"futureKnob": 1});
    let pod = &mut template["spec"]["template"];
    pod["futureKnob"] = json!(1);
    pod["spec"]["futureKnob"] = json!({"deep": [1, {"big": 9_007_199_254_740_993_i64}]});
    pod["spec"]["hostUsers"] = json!(false);
    pod["spec"]["resources"] = json!({"requests": {"cpu": "1000m"}});
    pod["spec"]["securityContext"] = json!({"appArmorProfile": {"type": "Unconfined"}});
    let made = mirror(&template);
    assert_eq!(
        (
            &made["futureKnob"],
            &made["metadata"]["futureKnob"],
            &made["spec"]["futureKnob"]
        ),
        (&json!(1), &json!(1), &json!(1))
    );
    assert_eq!(made["spec"]["template"]["futureKnob"], 1);
    assert_eq!(made["spec"]["template"]["spec"], template["spec"]["template"]["spec"]);
}

/// Case 108.
#[test]
fn pods_are_replaced_only_when_they_are_gone_unless_the_template_says_otherwise() {
    assert_eq!(mirror(&job(&json!({})))["spec"]["podReplacementPolicy"], "Failed");
    assert_eq!(
        mirror(&job(&json!({"podReplacementPolicy": null})))["spec"]["podReplacementPolicy"],
        "Failed"
    );
    // With a podFailurePolicy it is the only value that an API server accepts.
    assert_eq!(
        mirror(&job(&json!({"podFailurePolicy": {"rules": []}})))["spec"]["podReplacementPolicy"],
        "Failed"
    );
    let said = mirror(&job(&json!({"podReplacementPolicy": "TerminatingOrFailed"})));
    assert_eq!(said["spec"]["podReplacementPolicy"], "TerminatingOrFailed");
}

#[test]
fn a_template_of_the_wrong_form_is_an_error_and_no_object() {
    for template in [
        json!(null),
        json!([]),
        json!({"metadata": 1}),
        json!({"metadata": {"labels": []}}),
        json!({"spec": "x"}),
        json!({"spec": {"manualSelector": "true"}}),
        json!({"spec": {"template": {"metadata": {"labels": 5}}}}),
    ] {
        let input = MirrorInput {
            template: &raw(&template),
            key: &JobKey::new("a", "b"),
            identity: &identity(),
            origin_name: "o",
            nonce: "n",
        };
        assert!(Job.mirror(&input).is_err(), "{template}");
    }
}

#[test]
fn a_release_tests_uid_nonce_and_deletion_before_it_writes() {
    assert_eq!(
        Job.release_patch("u1", "n1", "n2"),
        json!([
            {"op": "test", "path": "/metadata/uid", "value": "u1"},
            {"op": "test", "path": "/metadata/annotations/multikueue.rs~1nonce", "value": "n1"},
            {"op": "test", "path": "/metadata/deletionTimestamp", "value": null},
            {"op": "replace", "path": "/metadata/annotations/multikueue.rs~1nonce", "value": "n2"},
            {"op": "replace", "path": "/spec/suspend", "value": false},
        ])
    );
}

#[test]
fn a_stop_is_bound_to_uid_and_version_and_renews_the_nonce() {
    assert_eq!(
        Job.suspend_patch("u1", ResourceVersion(42), "n2"),
        json!({
            "metadata": {"uid": "u1", "resourceVersion": "42", "annotations": {"multikueue.rs/nonce": "n2"}},
            "spec": {"suspend": true},
        })
    );
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[a-zA-Z0-9 ]{0,8}".prop_map(Value::from)
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("x[a-zA-Z]{1,6}", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    /// Case 109: nothing unknown is lost, wherever it stands.
    #[test]
    fn whatever_a_template_says_beyond_what_is_overridden_is_in_the_mirror(job_extra in any_json(), pod_extra in any_json(), label in "[a-z]{1,9}") {
        let mut template = job(&json!({"zJob": job_extra}));
        template["metadata"] = json!({"labels": {label.clone(): "kept"}});
        template["spec"]["template"]["spec"]["zPod"] = pod_extra.clone();
        let made = mirror(&template);
        prop_assert_eq!(&made["spec"]["zJob"], &template["spec"]["zJob"]);
        prop_assert_eq!(&made["spec"]["template"]["spec"], &template["spec"]["template"]["spec"]);
        prop_assert_eq!(&made["metadata"]["labels"][&label], "kept");
        // A mirror of a mirror is the same mirror.
        prop_assert_eq!(mirror(&made), made);
    }
}
