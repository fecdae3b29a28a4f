//! Pods: the fields that are decoded, what is charged for them, and the rows that they become.

use k8s_openapi::api::core::v1::Pod;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use tracing::warn;

use super::{Condition, amounts};
use crate::api::names;
use crate::capacity::PodRow;
use crate::clusters::interner::Interner;
use crate::clusters::slim::{Lite, Meta};
use crate::resources::amounts::{Amounts, ResourceList};

/// A pod as a watch decodes it.
#[derive(Debug, Clone)]
pub enum PodLite {
    /// The fields that are read.
    Whole(Box<PodFields>),
    /// Nobody knows what it holds.
    Unreadable(Box<PodPlace>, String),
}

/// The fields of a pod that are read.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct PodFields {
    metadata: Meta,
    spec: PodSpec,
    status: PodStatus,
}

/// Where a pod is, read by itself when the rest cannot be.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct PodPlace {
    metadata: Meta,
    spec: PlaceSpec,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct PlaceSpec {
    node_name: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct PodSpec {
    node_name: String,
    containers: Vec<Container>,
    init_containers: Vec<Container>,
    overhead: ResourceList,
    resources: Option<Resources>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Container {
    name: String,
    restart_policy: Option<String>,
    resources: Resources,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Resources {
    requests: Option<ResourceList>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct PodStatus {
    phase: String,
    conditions: Vec<Condition>,
    container_statuses: Option<Vec<ContainerStatus>>,
    init_container_statuses: Option<Vec<ContainerStatus>>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ContainerStatus {
    name: String,
    allocated_resources: Option<ResourceList>,
    resources: Option<Resources>,
}

impl Lite for PodLite {
    type Kind = Pod;
}

impl<'de> Deserialize<'de> for PodLite {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <&RawValue>::deserialize(deserializer)?.get();
        match serde_json::from_str(raw) {
            Ok(fields) => Ok(Self::Whole(Box::new(fields))),
            Err(e) => match serde_json::from_str(raw) {
                Ok(place) => Ok(Self::Unreadable(Box::new(place), e.to_string())),
                Err(e) => Err(D::Error::custom(e)),
            },
        }
    }
}

impl PodLite {
    /// The row of this pod. One that cannot be read closes the node that it is on: leaving it out would make the node look free, and calling the capacity
    /// of the whole worker unknown would let one object stop all.
    pub fn row(self, texts: &mut Interner) -> PodRow {
        match self {
            Self::Whole(fields) => fields.row(texts),
            Self::Unreadable(place, message) => {
                warn!(
                    namespace = place.metadata.namespace,
                    name = place.metadata.name,
                    "pod cannot be read, its node is closed: {message}"
                );
                let mut charged = Amounts::default();
                charged.set(texts.intern("pods"), MORE_PODS_THAN_ANY_NODE_TAKES);
                PodRow {
                    namespace: texts.intern(&place.metadata.namespace),
                    name: place.metadata.name.into(),
                    uid: place.metadata.uid.into(),
                    node: texts.intern(&place.spec.node_name),
                    charged,
                    ..PodRow::default()
                }
            }
        }
    }
}

const MORE_PODS_THAN_ANY_NODE_TAKES: i64 = 1 << 32;

impl PodFields {
    fn row(self, texts: &mut Interner) -> PodRow {
        let charged = self.charged();
        PodRow {
            namespace: texts.intern(&self.metadata.namespace),
            name: self.metadata.name.as_str().into(),
            uid: self.metadata.uid.as_str().into(),
            node: texts.intern(&self.spec.node_name),
            charged: amounts(&charged, texts),
            job_uid: self.metadata.labels.get(names::JOB_UID).map(|uid| texts.intern(uid)),
            running: self.status.phase == "Running",
            deleting: self.metadata.deletion_timestamp.is_some(),
        }
    }

    /// What the scheduler charges for a bound pod: `PodRequests` of `k8s.io/component-helpers/resource` with `UseStatusResources`.
    fn charged(&self) -> ResourceList {
        let infeasible = self
            .status
            .conditions
            .iter()
            .any(|c| c.r#type == "PodResizePending" && c.reason == "Infeasible");
        let request = |container: &Container, statuses: Option<&Vec<ContainerStatus>>| {
            let status = statuses.and_then(|all| all.iter().find(|status| status.name == container.name));
            in_place(container, status, infeasible)
        };

        let mut side = ResourceList::new();
        let mut peak = ResourceList::new();
        for container in &self.spec.init_containers {
            let mut own = request(container, self.status.init_container_statuses.as_ref());
            if container.restart_policy.as_deref() == Some("Always") {
                add(&mut side, &own);
                most(&mut peak, &side);
            } else {
                add(&mut own, &side);
                most(&mut peak, &own);
            }
        }
        let mut total = side;
        for container in &self.spec.containers {
            add(&mut total, &request(container, self.status.container_statuses.as_ref()));
        }
        most(&mut total, &peak);
        // Of what is asked for at the level of the pod, only these three kinds count.
        let pod_level = self
            .spec
            .resources
            .iter()
            .filter_map(|resources| resources.requests.as_ref())
            .flatten();
        for (name, quantity) in pod_level {
            if name == "cpu" || name == "memory" || name.starts_with("hugepages-") {
                total.insert(name.clone(), *quantity);
            }
        }
        add(&mut total, &self.spec.overhead);
        total
    }
}

/// A container that is being resized is charged the most of what it asks for, what it was granted, and what it has; when the node can never grant it,
/// the latter two.
fn in_place(container: &Container, status: Option<&ContainerStatus>, infeasible: bool) -> ResourceList {
    let spec = container.resources.requests.clone().unwrap_or_default();
    let Some(status) = status else { return spec };
    let granted = status.allocated_resources.as_ref();
    let actual = status
        .resources
        .as_ref()
        .and_then(|resources| resources.requests.as_ref());
    if granted.is_none() && actual.is_none() {
        return spec;
    }
    let mut charged = if infeasible { ResourceList::new() } else { spec };
    for other in [granted, actual].into_iter().flatten() {
        most(&mut charged, other);
    }
    charged
}

fn add(sum: &mut ResourceList, other: &ResourceList) {
    for (name, quantity) in other {
        let entry = sum.entry(name.clone()).or_default();
        *entry = entry.saturating_add(*quantity);
    }
}

fn most(of: &mut ResourceList, other: &ResourceList) {
    for (name, quantity) in other {
        let entry = of.entry(name.clone()).or_default();
        *entry = (*entry).max(*quantity);
    }
}
