use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::resources::Quantity;

fn spec(value: &Value) -> PodSpecLite {
    serde_json::from_value(value.clone()).unwrap()
}

fn status(value: &Value) -> PodStatusLite {
    serde_json::from_value(value.clone()).unwrap()
}

fn list(value: &Value) -> ResourceList {
    serde_json::from_value(value.clone()).unwrap()
}

fn container(requests: &Value) -> Value {
    json!({"resources": {"requests": requests}})
}

fn sidecar(requests: &Value) -> Value {
    json!({"restartPolicy": "Always", "resources": {"requests": requests}})
}

#[track_caller]
fn assert_template(pod: &Value, expected: &Value) {
    assert_eq!(template_request(&spec(pod)), list(expected), "{pod}");
}

/// Case 93.
#[test]
fn a_limit_without_a_request_is_the_request() {
    assert_template(
        &json!({"containers": [{"resources": {"limits": {"nvidia.com/gpu": 2, "cpu": "2"}, "requests": {"cpu": "500m"}}}]}),
        &json!({"nvidia.com/gpu": 2, "cpu": "500m"}),
    );
    assert_template(
        &json!({"containers": [{"resources": {"limits": {"memory": "1Gi"}, "requests": {"memory": 0}}}]}),
        &json!({"memory": 0}),
    );
    assert_template(
        &json!({"containers": [{"resources": null}], "initContainers": null}),
        &json!({}),
    );
}

/// Case 94.
#[test]
fn init_containers_and_sidecars_are_peaks_and_not_sums() {
    let (sidecar_100m, init_200m, app_100m) = (
        sidecar(&json!({"cpu": "100m"})),
        container(&json!({"cpu": "200m"})),
        container(&json!({"cpu": "100m"})),
    );
    assert_template(
        &json!({"initContainers": [sidecar_100m, init_200m], "containers": [app_100m]}),
        &json!({"cpu": "300m"}),
    );
    // A sidecar that starts after the init container does not run beside it.
    assert_template(
        &json!({"initContainers": [init_200m, sidecar_100m], "containers": [app_100m]}),
        &json!({"cpu": "200m"}),
    );
    let gpu = json!({"nvidia.com/gpu": "1"});
    assert_template(
        &json!({"initContainers": [container(&gpu)], "containers": [container(&gpu)]}),
        &gpu,
    );
    assert_template(
        &json!({"initContainers": [sidecar(&gpu)], "containers": [container(&gpu)]}),
        &json!({"nvidia.com/gpu": "2"}),
    );
    // Only `Always` makes a sidecar.
    let never = json!({"restartPolicy": "Never", "resources": {"requests": gpu}});
    assert_template(
        &json!({"initContainers": [never], "containers": [container(&gpu)]}),
        &gpu,
    );
}

#[test]
fn pod_level_requests_replace_those_of_containers_but_never_devices() {
    let containers = json!([container(&json!({"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": 1}))]);
    assert_template(
        &json!({"containers": containers, "resources": {"requests": {"cpu": "4", "hugepages-2Mi": "4Mi", "nvidia.com/gpu": 8}}}),
        &json!({"cpu": "4", "memory": "1Gi", "hugepages-2Mi": "4Mi", "nvidia.com/gpu": 1}),
    );
}

/// Seen on kube-scheduler 1.37.2 (`capacity.md` 8).
#[test]
fn a_pod_level_limit_is_the_request_only_where_no_container_asks() {
    assert_template(
        &json!({"containers": [container(&json!({"cpu": 1}))], "resources": {"limits": {"cpu": 4, "memory": "2Gi"}}}),
        &json!({"cpu": 1, "memory": "2Gi"}),
    );
    let huge = json!({"resources": {"requests": {"hugepages-1Gi": "1Gi"}, "limits": {"hugepages-1Gi": "1Gi"}}});
    assert_template(
        &json!({"containers": [huge], "resources": {"limits": {"hugepages-1Gi": "2Gi"}}}),
        &json!({"hugepages-1Gi": "2Gi"}),
    );
}

/// Case 95.
#[test]
fn overhead_comes_on_top_of_everything_and_once() {
    let pod = |class: Value| {
        json!({
            "containers": [container(&json!({"cpu": 1}))],
            "resources": {"requests": {"cpu": 2}},
            "overhead": {"cpu": "250m", "memory": "120Mi"},
            "runtimeClassName": class,
        })
    };
    assert_template(&pod(Value::Null), &json!({"cpu": "2250m", "memory": "120Mi"}));
    // With a class the overhead is the class's, which the worker's row adds.
    assert_template(&pod(json!("kata")), &json!({"cpu": 2}));
    let bound = bound_request(&spec(&pod(json!("kata"))), &PodStatusLite::default());
    assert_eq!(bound, list(&json!({"cpu": "2250m", "memory": "120Mi"})));
}

#[test]
fn fractions_are_summed_before_they_are_rounded() {
    let third = container(&json!({"cpu": "0.3m", "memory": "0.5"}));
    let charge = charged(
        &spec(&json!({"containers": [third, third, third]})),
        &PodStatusLite::default(),
        &mut Names::default(),
    );
    assert_eq!((charge.get("cpu"), charge.get("memory")), (1, 2));
}

#[track_caller]
fn assert_bound(pod: &Value, pod_status: &Value, expected: &Value) {
    assert_eq!(
        bound_request(&spec(pod), &status(pod_status)),
        list(expected),
        "{pod_status}"
    );
}

#[test]
fn a_resize_charges_the_largest_of_asked_allocated_and_in_force() {
    let pod = json!({"containers": [{"name": "a", "resources": {"requests": {"cpu": 2, "nvidia.com/gpu": 1}}}]});
    let state = |allocated: Value, actuated: Value, reason: &str| {
        json!({
            "conditions": [{"type": "PodResizePending", "status": "True", "reason": reason}],
            "containerStatuses": [{"name": "a", "allocatedResources": allocated, "resources": {"requests": actuated}}],
        })
    };
    let cpu = |n: u32| json!({"cpu": n, "nvidia.com/gpu": 1});
    assert_bound(&pod, &state(cpu(1), cpu(1), "Deferred"), &cpu(2));
    assert_bound(&pod, &state(cpu(3), cpu(1), "Deferred"), &cpu(3));
    assert_bound(&pod, &state(cpu(1), cpu(4), "Deferred"), &cpu(4));
    // What can never be granted is not charged.
    assert_bound(&pod, &state(cpu(1), cpu(1), "Infeasible"), &cpu(1));
    assert_bound(&pod, &state(cpu(1), Value::Null, "Infeasible"), &cpu(1));
    assert_bound(&pod, &json!({}), &cpu(2));
}

#[test]
fn a_pod_level_resize_is_charged_by_the_pod_level_status() {
    let pod = json!({
        "containers": [{"name": "a", "resources": {"requests": {"cpu": 1}}}],
        "resources": {"requests": {"cpu": 2}},
        "overhead": {"cpu": 1},
    });
    let state = |reason: &str| {
        json!({
            "conditions": [{"type": "PodResizePending", "status": "True", "reason": reason}],
            "allocatedResources": {"cpu": "1500m"},
            "resources": {"requests": {"cpu": "1200m"}},
        })
    };
    assert_bound(&pod, &state("Deferred"), &json!({"cpu": 3}));
    assert_bound(&pod, &state("Infeasible"), &json!({"cpu": "2500m"}));
    assert_bound(&pod, &json!({}), &json!({"cpu": 3}));
}

fn any_container() -> impl Strategy<Value = ContainerLite> {
    (
        any::<bool>(),
        prop::collection::btree_map(
            prop::sample::select(vec!["cpu", "memory", "nvidia.com/gpu"]),
            0_i64..9,
            0..3,
        ),
    )
        .prop_map(|(always, requests)| ContainerLite {
            restart_policy: always.then(|| "Always".to_owned()),
            resources: ResourcesLite {
                requests: requests
                    .into_iter()
                    .map(|(name, units)| (name.to_owned(), Quantity::from_units(units)))
                    .collect(),
                limits: ResourceList::new(),
            },
            ..ContainerLite::default()
        })
}

proptest! {
    /// The same rule as a schedule: at every moment of the pod's life, what runs then.
    #[test]
    fn the_request_is_the_largest_sum_of_what_ever_runs_at_once(
        init in prop::collection::vec(any_container(), 0..4),
        containers in prop::collection::vec(any_container(), 1..4),
    ) {
        let pod = PodSpecLite { init_containers: init.clone(), containers: containers.clone(), ..PodSpecLite::default() };
        let read = bound_request(&pod, &PodStatusLite::default());
        let always = |container: &&ContainerLite| container.restart_policy.is_some();
        for name in ["cpu", "memory", "nvidia.com/gpu"] {
            let of = |container: &ContainerLite| container.resources.requests.get(name).map_or(0, |quantity| quantity.units_ceil());
            let starting = (0..init.len()).map(|i| init[..i].iter().filter(always).map(of).sum::<i64>() + of(&init[i])).max().unwrap_or(0);
            let running = init.iter().filter(always).chain(&containers).map(of).sum::<i64>();
            prop_assert_eq!(read.get(name).map_or(0, |quantity| quantity.units_ceil()), starting.max(running));
        }
        prop_assert_eq!(template_request(&pod), read);
    }
}
