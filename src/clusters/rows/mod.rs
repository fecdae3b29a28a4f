//! Nodes, pods and runtime classes: the fields that are decoded, and the rows that they become.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::node::v1::RuntimeClass;
use serde::Deserialize;

use super::interner::Interner;
use super::slim::{Lite, Meta};
use crate::capacity::{NodeRow, RuntimeClassRow};
use crate::resources::amounts::{Amounts, Names, ResourceList};
use crate::resources::requests::is_extended;
use crate::resources::shape::{NodeTaint, NodeTaintEffect, Toleration};

mod pod;

pub use pod::PodLite;

/// Texts that many rows repeat.
#[derive(Debug, Default)]
pub struct Texts {
    /// Namespaces, node names, labels.
    pub shared: Interner,
    /// Resource names; there are few, for ever.
    pub resources: Names,
}

/// The fields of a node that are read.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct NodeLite {
    metadata: Meta,
    spec: NodeSpec,
    status: NodeStatus,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct NodeSpec {
    unschedulable: bool,
    taints: Vec<Taint>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Taint {
    key: String,
    value: String,
    effect: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct NodeStatus {
    allocatable: ResourceList,
    capacity: ResourceList,
    conditions: Vec<Condition>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Condition {
    r#type: String,
    status: String,
}

impl Lite for NodeLite {
    type Kind = Node;
}

impl NodeLite {
    /// The row of this node.
    pub fn row(self, texts: &mut Texts) -> NodeRow {
        let labels = self.metadata.labels.iter();
        let mut extended = self.status.capacity;
        extended.retain(|name, _| is_extended(name));
        NodeRow {
            name: self.metadata.name.as_str().into(),
            labels: labels
                .map(|(key, value)| (texts.shared.intern(key), texts.shared.intern(value)))
                .collect(),
            taints: self.spec.taints.into_iter().filter_map(Taint::read).collect(),
            unschedulable: self.spec.unschedulable,
            ready: self
                .status
                .conditions
                .iter()
                .any(|c| c.r#type == "Ready" && c.status == "True"),
            deleting: self.metadata.deletion_timestamp.is_some(),
            allocatable: Amounts::from_quantities(&self.status.allocatable, &mut texts.resources),
            capacity: Amounts::from_quantities(&extended, &mut texts.resources),
        }
    }
}

impl Taint {
    fn read(self) -> Option<NodeTaint> {
        Some(NodeTaint {
            key: self.key,
            value: self.value,
            effect: effect(&self.effect)?,
        })
    }
}

/// An effect that a newer Kubernetes adds is none that the scheduler of today filters by.
fn effect(name: &str) -> Option<NodeTaintEffect> {
    match name {
        "NoSchedule" => Some(NodeTaintEffect::NoSchedule),
        "PreferNoSchedule" => Some(NodeTaintEffect::PreferNoSchedule),
        "NoExecute" => Some(NodeTaintEffect::NoExecute),
        _ => None,
    }
}

/// The fields of a `RuntimeClass` that are read.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct RuntimeClassLite {
    overhead: Overhead,
    scheduling: Scheduling,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Overhead {
    pod_fixed: ResourceList,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Scheduling {
    node_selector: BTreeMap<String, String>,
    tolerations: Vec<TolerationLite>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct TolerationLite {
    key: String,
    operator: String,
    value: String,
    effect: String,
}

impl Lite for RuntimeClassLite {
    type Kind = RuntimeClass;
}

impl RuntimeClassLite {
    /// The row of this runtime class.
    pub fn row(self, texts: &mut Texts) -> RuntimeClassRow {
        RuntimeClassRow {
            overhead: Amounts::from_quantities(&self.overhead.pod_fixed, &mut texts.resources),
            node_selector: self.scheduling.node_selector.into_iter().collect(),
            tolerations: self
                .scheduling
                .tolerations
                .into_iter()
                .filter_map(TolerationLite::read)
                .collect(),
        }
    }
}

impl TolerationLite {
    fn read(self) -> Option<Toleration> {
        let effect = match self.effect.as_str() {
            "" => None,
            // One that is not known tolerates nothing that is.
            name => Some(effect(name)?),
        };
        Some(Toleration {
            key: self.key,
            exists: self.operator == "Exists",
            value: self.value,
            effect,
        })
    }
}

#[cfg(test)]
mod tests;
