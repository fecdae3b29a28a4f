use serde_json::{Value, json};

use super::*;

fn read(spec: &Value) -> Result<Shape, TemplateError> {
    let document = json!({"spec": spec});
    shape(&Field::root("spec.template.spec.template", &document))
}

/// A pod spec of one container with `extra` beside it.
fn pod(extra: &Value) -> Value {
    let mut spec = json!({"containers": [{"name": "main", "resources": {"limits": {"nvidia.com/gpu": 8}}}]});
    for (name, value) in extra.as_object().unwrap() {
        spec[name] = value.clone();
    }
    spec
}

fn requirement_of(key: &str, operator: Operator, values: &[&str]) -> Requirement {
    Requirement {
        key: key.to_owned(),
        operator,
        values: values.iter().map(|value| (*value).to_owned()).collect(),
    }
}

#[test]
fn what_filters_is_in_the_shape_and_what_only_scores_is_not() {
    let read = read(&pod(&json!({
        "nodeSelector": {"zone": "b", "arch": "amd64"},
        "runtimeClassName": "kata",
        "affinity": {
            "nodeAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": {}}],
                "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{
                    "matchExpressions": [
                        {"key": "model", "operator": "In", "values": ["h100", "a100", "h100"]},
                        {"key": "mem", "operator": "Gt", "values": ["79"]},
                        {"key": "old", "operator": "DoesNotExist"},
                    ],
                    "matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["n1"]}],
                }, {}]},
            },
            "podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1}]},
        },
        "topologySpreadConstraints": [{"whenUnsatisfiable": "ScheduleAnyway", "topologyKey": "zone", "maxSkew": 1}],
        "tolerations": [
            {"operator": "Exists"},
            {"key": "gpu", "value": "yes", "effect": "NoSchedule"},
            {"key": "gpu", "operator": "Equal", "value": "yes", "effect": "NoSchedule", "tolerationSeconds": 3},
        ],
    })))
    .unwrap();
    assert_eq!(
        read.requests.iter().map(|(name, n)| (&**name, n)).collect::<Vec<_>>(),
        [("nvidia.com/gpu", 8)]
    );
    assert_eq!(
        read.node_selector,
        [
            ("arch".to_owned(), "amd64".to_owned()),
            ("zone".to_owned(), "b".to_owned())
        ]
    );
    assert_eq!(
        read.node_affinity,
        [
            NodeSelectorTerm::default(),
            NodeSelectorTerm {
                expressions: vec![
                    requirement_of("mem", Operator::Gt, &["79"]),
                    requirement_of("model", Operator::In, &["a100", "h100"]),
                    requirement_of("old", Operator::DoesNotExist, &[]),
                ],
                fields: vec![requirement_of("metadata.name", Operator::NotIn, &["n1"])],
            }
        ]
    );
    let toleration = |key: &str, exists, value: &str, effect| Toleration {
        key: key.to_owned(),
        exists,
        value: value.to_owned(),
        effect,
    };
    assert_eq!(
        read.tolerations,
        [
            toleration("", true, "", None),
            toleration("gpu", false, "yes", Some(NodeTaintEffect::NoSchedule)),
        ]
    );
    assert_eq!(read.runtime_class.as_deref(), Some("kata"));
    assert_eq!(read.uncounted, [""; 0]);
}

#[test]
fn templates_that_differ_only_in_order_and_in_what_is_not_read_have_one_shape() {
    let one = read(&pod(
        &json!({"nodeSelector": {"a": "1", "b": "2"}, "tolerations": [{"key": "x", "operator": "Exists"}, {"operator": "Exists"}]}),
    ));
    let other = read(&pod(&json!({
        "tolerations": [{"operator": "Exists"}, {"key": "x", "operator": "Exists", "effect": ""}],
        "nodeSelector": {"b": "2", "a": "1"},
        "hostUsers": false,
        "futureKnob": 1,
        "priorityClassName": "high",
        "affinity": null,
    })));
    assert_eq!(one.unwrap(), other.unwrap());
}

#[test]
fn each_rule_that_is_not_counted_is_named() {
    let port = |port: Value| json!({"containers": [{"ports": [port]}]});
    let required = json!({"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone"}]});
    for (extra, word) in [
        (json!({"affinity": {"podAffinity": required}}), "required pod affinity"),
        (
            json!({"affinity": {"podAntiAffinity": required}}),
            "required pod anti-affinity",
        ),
        (
            json!({"topologySpreadConstraints": [{"whenUnsatisfiable": "DoNotSchedule"}]}),
            "topology spread with DoNotSchedule",
        ),
        (
            json!({"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpu"}]}),
            "resource claims",
        ),
        (json!({"schedulingGates": [{"name": "hold"}]}), "scheduling gates"),
        (json!({"schedulingGroup": {"podGroupName": "g"}}), "scheduling group"),
        (json!({"workloadRef": {"name": "w"}}), "workload reference"),
        (port(json!({"containerPort": 80, "hostPort": 80})), "host ports"),
        (
            json!({"hostNetwork": true, "containers": [{"ports": [{"containerPort": 80}]}]}),
            "host ports",
        ),
        (
            json!({"initContainers": [{"restartPolicy": "Always", "ports": [{"hostPort": 80}]}]}),
            "host ports",
        ),
        (
            json!({"volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": "d"}}]}),
            "persistent volume claims",
        ),
        (
            json!({"volumes": [{"name": "d", "ephemeral": {}}]}),
            "ephemeral volumes",
        ),
        (
            json!({"volumes": [{"name": "d", "gcePersistentDisk": {"pdName": "d"}}]}),
            "disks named in the template",
        ),
        (
            json!({"tolerations": [{"key": "a", "operator": "Gt", "value": "1"}]}),
            "tolerations with Gt or Lt",
        ),
    ] {
        assert_eq!(read(&pod(&extra)).unwrap().uncounted, [word], "{extra}");
    }
    for extra in [
        port(json!({"containerPort": 80})),
        json!({"volumes": [{"name": "a", "emptyDir": {}}, {"name": "b", "configMap": {"name": "b"}}, {"name": "c", "csi": {"driver": "x"}}]}),
        json!({"hostNetwork": true}),
        json!({"schedulingGates": [], "resourceClaims": null}),
    ] {
        assert_eq!(read(&pod(&extra)).unwrap().uncounted, [""; 0], "{extra}");
    }
}

#[track_caller]
fn assert_error(extra: &Value, path: &str, found: &str, right: &str) {
    let error = read(&pod(extra)).unwrap_err();
    let text = error.to_string();
    let TemplateError::Invalid {
        path: at,
        found: what,
        right: rather,
    } = error
    else {
        panic!("{text}");
    };
    assert!(
        at.starts_with("spec.template.spec.template.spec") && at.ends_with(path),
        "{text}"
    );
    assert!(what.starts_with(found) && what.len() <= 100, "{text}");
    assert!(rather.contains(right), "{text}");
}

#[test]
fn errors_name_the_field_what_was_found_and_what_would_be_right() {
    let resources = |resources: Value| json!({"containers": [{"resources": resources}]});
    for (extra, path, found, right) in [
        (
            json!({"nodeName": "n1"}),
            "nodeName",
            "\"n1\"",
            "kubernetes.io/hostname",
        ),
        (json!({"containers": []}), "containers", "[]", "one container"),
        (json!({"containers": null}), "containers", "missing", "one container"),
        (json!({"containers": 7}), "containers", "7", "a list"),
        (
            json!({"nodeSelector": {"gpus": 8}}),
            "nodeSelector.gpus",
            "8",
            "a string",
        ),
        (
            resources(json!({"limits": {"nvidia.com/gpu": "500m"}})),
            "containers[0].resources.limits[nvidia.com/gpu]",
            "\"500m\"",
            "a whole number",
        ),
        (
            resources(json!({"requests": {"nvidia.com/gpu": 1}})),
            "containers[0].resources.requests[nvidia.com/gpu]",
            "1",
            "equal limit",
        ),
        (
            resources(json!({"requests": {"a.b/gpu": 1}, "limits": {"a.b/gpu": 2}})),
            "containers[0].resources.requests[a.b/gpu]",
            "1",
            "the limit, 2",
        ),
        (
            resources(json!({"requests": {"cpu": "2"}, "limits": {"cpu": "500m"}})),
            "containers[0].resources.requests.cpu",
            "\"2\"",
            "at most the limit, 500m",
        ),
        (
            resources(json!({"requests": {"memory": "64GB"}})),
            "containers[0].resources.requests.memory",
            "\"64GB\"",
            "64Gi",
        ),
        (
            resources(json!({"requests": {"memory": "-1"}})),
            "containers[0].resources.requests.memory",
            "\"-1\"",
            "0 or more",
        ),
        (
            json!({"resources": {"limits": {"nvidia.com/gpu": 1}}}),
            "resources.limits[nvidia.com/gpu]",
            "1",
            "cpu, memory and huge pages",
        ),
    ] {
        assert_error(&extra, path, found, right);
    }
    assert!(read(&json!(null)).is_err() && read(&json!({})).is_err());
}

#[test]
fn errors_in_selectors_and_tolerations_name_the_item() {
    let affinity = |term: Value| json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": term}}}});
    let expression = |expression: Value| affinity(json!([{"matchExpressions": [expression]}]));
    for (extra, path, found, right) in [
        (
            json!({"tolerations": [{"operator": "In"}]}),
            "tolerations[0].operator",
            "\"In\"",
            "Equal or Exists",
        ),
        (
            json!({"tolerations": [{"value": "x"}]}),
            "tolerations[0].operator",
            "missing",
            "Exists",
        ),
        (
            json!({"tolerations": [{"key": "a", "effect": "noSchedule"}]}),
            "tolerations[0].effect",
            "\"noSchedule\"",
            "NoSchedule",
        ),
        (
            json!({"tolerations": [{"operator": "Exists", "value": "x"}]}),
            "tolerations[0].value",
            "\"x\"",
            "no value",
        ),
        (
            affinity(json!([])),
            "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms",
            "[]",
            "one term",
        ),
        (
            expression(json!({"key": "a", "operator": "in", "values": ["x"]})),
            "matchExpressions[0].operator",
            "\"in\"",
            "NotIn",
        ),
        (
            expression(json!({"key": "a", "operator": "In"})),
            "matchExpressions[0].values",
            "missing",
            "one value",
        ),
        (
            expression(json!({"key": "a", "operator": "Exists", "values": ["x"]})),
            "matchExpressions[0].values",
            "[\"x\"]",
            "no values",
        ),
        (
            expression(json!({"key": "a", "operator": "Gt", "values": ["1", "2"]})),
            "matchExpressions[0].values",
            "[\"1\",\"2\"]",
            "exactly one",
        ),
        (
            affinity(json!([{"matchFields": [{"key": "metadata.uid", "operator": "In", "values": ["x"]}]}])),
            "matchFields[0].key",
            "\"metadata.uid\"",
            "metadata.name",
        ),
        (
            json!({"topologySpreadConstraints": [{}]}),
            "topologySpreadConstraints[0].whenUnsatisfiable",
            "missing",
            "a string",
        ),
        (json!({"affinity": "gpu"}), "affinity", "\"gpu\"", "an object"),
        (json!({"runtimeClassName": 5}), "spec", "{", "a pod spec"),
    ] {
        assert_error(&extra, path, found, right);
    }
}
