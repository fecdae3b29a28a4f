//! What a pod asks of its node, from what stands in its spec, and what a pod on a node is charged.
//!
//! The rules are those of `k8s.io/component-helpers/resource.PodRequests`, which the scheduler and the kubelet share, behind the defaulting
//! that the API server does to pods but not to templates (`SetDefaults_Pod`).

use std::borrow::Cow;

use serde::{Deserialize, Deserializer};

use super::amounts::{Amounts, CPU, Names, ResourceList};

/// The parts of a `PodSpec` that decide what the pod is charged and where it is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PodSpecLite {
    /// Containers.
    #[serde(default, deserialize_with = "null_is_default")]
    pub containers: Vec<ContainerLite>,
    /// Init containers in order; those that restart always are sidecars.
    #[serde(default, deserialize_with = "null_is_default")]
    pub init_containers: Vec<ContainerLite>,
    /// Pod-level resources.
    #[serde(default, deserialize_with = "null_is_default")]
    pub resources: ResourcesLite,
    /// What running the pod costs besides, as admission copied it from its `RuntimeClass`.
    #[serde(default, deserialize_with = "null_is_default")]
    pub overhead: ResourceList,
    /// Name of its `RuntimeClass`.
    #[serde(default)]
    pub runtime_class_name: Option<String>,
    /// The node it is bound to.
    #[serde(default)]
    pub node_name: Option<String>,
}

/// The parts of a container that are read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ContainerLite {
    /// Name; statuses refer to it.
    #[serde(default)]
    pub name: String,
    /// Requests and limits.
    #[serde(default, deserialize_with = "null_is_default")]
    pub resources: ResourcesLite,
    /// `Always` on an init container makes it a sidecar.
    #[serde(default)]
    pub restart_policy: Option<String>,
}

/// Requests and limits.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct ResourcesLite {
    /// Requests by resource.
    #[serde(default, deserialize_with = "null_is_default")]
    pub requests: ResourceList,
    /// Limits by resource.
    #[serde(default, deserialize_with = "null_is_default")]
    pub limits: ResourceList,
}

/// The parts of a `PodStatus` that decide what the pod is charged.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PodStatusLite {
    /// `Pending`, `Running`, `Succeeded`, `Failed` or `Unknown`.
    #[serde(default)]
    pub phase: Option<String>,
    /// Conditions.
    #[serde(default, deserialize_with = "null_is_default")]
    pub conditions: Vec<PodConditionLite>,
    /// State of containers.
    #[serde(default, deserialize_with = "null_is_default")]
    pub container_statuses: Vec<ContainerStatusLite>,
    /// State of init containers.
    #[serde(default, deserialize_with = "null_is_default")]
    pub init_container_statuses: Vec<ContainerStatusLite>,
    /// What the kubelet allocated to the whole pod.
    #[serde(default)]
    pub allocated_resources: Option<ResourceList>,
    /// What the whole pod's cgroup has.
    #[serde(default)]
    pub resources: Option<ActuatedLite>,
}

/// A condition of a pod.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct PodConditionLite {
    /// Type.
    #[serde(rename = "type", default)]
    pub kind: String,
    /// Reason.
    #[serde(default, deserialize_with = "null_is_default")]
    pub reason: String,
}

/// The state of a container under an in-place resize.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ContainerStatusLite {
    /// Name of the container.
    #[serde(default)]
    pub name: String,
    /// What the kubelet allocated to it.
    #[serde(default)]
    pub allocated_resources: Option<ResourceList>,
    /// What it runs with.
    #[serde(default)]
    pub resources: Option<ActuatedLite>,
}

/// Requests as they are in force.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct ActuatedLite {
    /// Requests by resource.
    #[serde(default)]
    pub requests: Option<ResourceList>,
}

/// Reads null as the default: a user's YAML may hold an empty key, which the API server takes for an absent one.
pub(crate) fn null_is_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Option::<T>::deserialize(deserializer).map(Option::unwrap_or_default)
}

/// True for resources that may be set for a pod as a whole. Devices never are.
pub fn is_pod_level(name: &str) -> bool {
    name == CPU || name == "memory" || is_huge_page(name)
}

/// True for sizes of huge pages.
pub fn is_huge_page(name: &str) -> bool {
    name.starts_with("hugepages-")
}

/// True for extended resources: those with a domain that is not Kubernetes' own.
pub fn is_extended(name: &str) -> bool {
    name.contains('/') && !name.contains("kubernetes.io/") && !name.starts_with("requests.")
}

/// The effective request of a pod that is yet to be made from a template: defaulted as the API server will default it, counted as the scheduler
/// will count it.
///
/// Overhead of the template counts only without a `RuntimeClass`: admission demands that it equals that of the class, which the caller adds
/// from the worker.
pub fn template_request(spec: &PodSpecLite) -> ResourceList {
    let mut sum = aggregate(spec, |container| with_limits(&container.resources));
    let pod_level = pod_level_request(&spec.resources, &sum);
    replace_pod_level(&mut sum, &pod_level);
    if spec.runtime_class_name.is_none() {
        add(&mut sum, &spec.overhead);
    }
    sum
}

/// What a pod on a node is charged: the largest of what its spec asks, what the kubelet allocated and what is in force; a resize that can never be
/// granted (`PodResizePending` with reason `Infeasible`) does not count. Each of the three is summed over the pod before they are compared.
pub fn bound_request(spec: &PodSpecLite, status: &PodStatusLite) -> ResourceList {
    let infeasible = status
        .conditions
        .iter()
        .find(|condition| condition.kind == "PodResizePending")
        .is_some_and(|condition| condition.reason == "Infeasible");
    let asked = |container: &ContainerLite| {
        if infeasible {
            ResourceList::new()
        } else {
            container.resources.requests.clone()
        }
    };
    let in_force = status
        .resources
        .as_ref()
        .and_then(|resources| resources.requests.as_ref());

    let mut sum = if infeasible {
        ResourceList::new()
    } else {
        aggregate(spec, |container| Cow::Borrowed(&container.resources.requests))
    };
    if let (Some(allocated), Some(actuated)) = (&status.allocated_resources, in_force) {
        raise(&mut sum, allocated);
        raise(&mut sum, actuated);
    } else {
        let allocated = aggregate(spec, |container| match allocated_of(status, &container.name) {
            Some(list) => Cow::Borrowed(list),
            None => Cow::Owned(asked(container)),
        });
        let actuated = aggregate(spec, |container| {
            match actuated_of(status, &container.name).or_else(|| allocated_of(status, &container.name)) {
                Some(list) => Cow::Borrowed(list),
                None => Cow::Owned(asked(container)),
            }
        });
        raise(&mut sum, &allocated);
        raise(&mut sum, &actuated);
    }

    if spec.resources.requests.keys().any(|name| is_pod_level(name)) {
        let mut pod_level = spec.resources.requests.clone();
        if status.resources.is_some() {
            if infeasible {
                pod_level.clear();
            }
            for list in [in_force, status.allocated_resources.as_ref()].into_iter().flatten() {
                raise(&mut pod_level, list);
            }
        }
        replace_pod_level(&mut sum, &pod_level);
    }
    add(&mut sum, &spec.overhead);
    sum
}

/// What a pod on a node is charged, in the scheduler's units; the slot it takes (1 of `pods`) is not in it.
pub fn charged(spec: &PodSpecLite, status: &PodStatusLite, names: &mut Names) -> Amounts {
    Amounts::from_quantities(&bound_request(spec, status), names)
}

/// Containers run together with all sidecars; each init container runs with the sidecars before it. The pod needs the larger.
fn aggregate<'a>(spec: &'a PodSpecLite, of: impl Fn(&'a ContainerLite) -> Cow<'a, ResourceList>) -> ResourceList {
    let mut sidecars = ResourceList::new();
    let mut peak = ResourceList::new();
    for container in &spec.init_containers {
        let request = of(container);
        if container.restart_policy.as_deref() == Some("Always") {
            add(&mut sidecars, &request);
            raise(&mut peak, &sidecars);
        } else {
            let mut together = sidecars.clone();
            add(&mut together, &request);
            raise(&mut peak, &together);
        }
    }
    let mut run = sidecars;
    for container in &spec.containers {
        add(&mut run, &of(container));
    }
    raise(&mut run, &peak);
    run
}

fn with_limits(resources: &ResourcesLite) -> Cow<'_, ResourceList> {
    if resources
        .limits
        .keys()
        .all(|name| resources.requests.contains_key(name))
    {
        return Cow::Borrowed(&resources.requests);
    }
    let mut requests = resources.limits.clone();
    requests.extend(
        resources
            .requests
            .iter()
            .map(|(name, quantity)| (name.clone(), *quantity)),
    );
    Cow::Owned(requests)
}

/// The pod-level requests after defaulting. A pod-level limit becomes the request where no container asks for the resource; cpu and memory that
/// containers ask for keep the containers' sum, huge pages cannot be overcommitted and take the limit.
fn pod_level_request(pod: &ResourcesLite, containers: &ResourceList) -> ResourceList {
    let mut requests = pod.requests.clone();
    for (name, limit) in &pod.limits {
        let summed = containers.contains_key(name) && !is_huge_page(name);
        if !requests.contains_key(name) && !summed {
            requests.insert(name.clone(), *limit);
        }
    }
    requests
}

fn replace_pod_level(sum: &mut ResourceList, pod_level: &ResourceList) {
    for (name, quantity) in pod_level {
        if is_pod_level(name) {
            sum.insert(name.clone(), *quantity);
        }
    }
}

fn status_of<'a>(status: &'a PodStatusLite, name: &str) -> Option<&'a ContainerStatusLite> {
    let mut all = status.container_statuses.iter().chain(&status.init_container_statuses);
    all.find(|container| container.name == name)
}

fn allocated_of<'a>(status: &'a PodStatusLite, name: &str) -> Option<&'a ResourceList> {
    status_of(status, name)?.allocated_resources.as_ref()
}

fn actuated_of<'a>(status: &'a PodStatusLite, name: &str) -> Option<&'a ResourceList> {
    status_of(status, name)?.resources.as_ref()?.requests.as_ref()
}

fn add(sum: &mut ResourceList, list: &ResourceList) {
    for (name, quantity) in list {
        match sum.get_mut(name) {
            Some(amount) => *amount = amount.saturating_add(*quantity),
            None => {
                sum.insert(name.clone(), *quantity);
            }
        }
    }
}

fn raise(peak: &mut ResourceList, list: &ResourceList) {
    for (name, quantity) in list {
        match peak.get_mut(name) {
            Some(amount) => *amount = (*amount).max(*quantity),
            None => {
                peak.insert(name.clone(), *quantity);
            }
        }
    }
}

#[cfg(test)]
mod tests;
