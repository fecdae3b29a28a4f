//! The scheduler's node filters, node by node.
//!
//! Rules: `pkg/scheduler/framework/plugins/{nodeunschedulable,tainttoleration,nodeaffinity}` and `component-helpers/scheduling/corev1`. Stricter than the
//! scheduler in three points, each of which is about to become a taint or a lower allocatable: a node that is not Ready, one that is being
//! deleted, and one whose device driver is being replaced.

use std::sync::Arc;

use super::reason::Reason;
use super::rows::RuntimeClassRow;
use crate::resources::Shape;
use crate::resources::shape::{NodeSelectorTerm, NodeTaint, NodeTaintEffect, Operator, Requirement, Toleration};

/// Taint that a cordon puts on a node, which a pod may tolerate.
const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";
/// Where the NVIDIA operator says how far the replacement of a driver is.
pub(super) const DRIVER_UPGRADE: &str = "nvidia.com/gpu-driver-upgrade-state";
/// Where the NVIDIA operator says how far a new MIG partitioning is.
pub(super) const MIG_STATE: &str = "nvidia.com/mig.config.state";

/// What the filters read of a node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts {
    /// Labels, sorted by key; those that no filter reads may be left out.
    pub labels: Vec<(Arc<str>, Arc<str>)>,
    /// Taints.
    pub taints: Arc<[NodeTaint]>,
    /// `spec.unschedulable`.
    pub unschedulable: bool,
    /// Condition `Ready` is True.
    pub ready: bool,
    /// Has a `deletionTimestamp`.
    pub deleting: bool,
}

impl Facts {
    fn label(&self, key: &str) -> Option<&str> {
        self.labels
            .binary_search_by(|(k, _)| (**k).cmp(key))
            .ok()
            .map(|i| &*self.labels[i].1)
    }
}

/// May a pod of the shape be bound to the node, room apart? A selector that does not match is named first: such a node is not meant at all.
pub fn check(shape: &Shape, runtime: Option<&RuntimeClassRow>, name: &str, facts: &Facts) -> Result<(), Reason> {
    let selectors = runtime
        .iter()
        .flat_map(|r| &r.node_selector)
        .chain(&shape.node_selector);
    for (key, value) in selectors {
        if facts.label(key) != Some(value) {
            return Err(Reason::SelectorMismatch);
        }
    }
    if !shape.node_affinity.is_empty() && !shape.node_affinity.iter().any(|t| term_matches(t, name, facts)) {
        return Err(Reason::SelectorMismatch);
    }
    if !facts.ready {
        return Err(Reason::NodeNotReady);
    }
    if facts.deleting {
        return Err(Reason::NodeDeleting);
    }
    let tolerated = |key: &str, value: &str, effect| {
        let extra = runtime.iter().flat_map(|r| &r.tolerations);
        extra
            .chain(&shape.tolerations)
            .any(|t| tolerates(t, key, value, effect))
    };
    if facts.unschedulable && !tolerated(UNSCHEDULABLE, "", NodeTaintEffect::NoSchedule) {
        return Err(Reason::Unschedulable);
    }
    for taint in &*facts.taints {
        if taint.effect != NodeTaintEffect::PreferNoSchedule && !tolerated(&taint.key, &taint.value, taint.effect) {
            return Err(if taint.key == UNSCHEDULABLE {
                Reason::Unschedulable
            } else {
                Reason::UntoleratedTaint
            });
        }
    }
    let nvidia = || {
        shape
            .requests
            .iter()
            .any(|(name, n)| n > 0 && name.starts_with("nvidia.com/"))
    };
    if driver_busy(facts) && nvidia() {
        return Err(Reason::DriverNotReady);
    }
    Ok(())
}

/// The devices of the node are about to go: waiting in line for a new driver (`upgrade-required`) is not yet that.
pub(super) fn driver_busy(facts: &Facts) -> bool {
    let upgrading = !matches!(
        facts.label(DRIVER_UPGRADE),
        None | Some("" | "upgrade-done" | "upgrade-required")
    );
    upgrading || matches!(facts.label(MIG_STATE), Some("pending" | "rebooting"))
}

fn tolerates(toleration: &Toleration, key: &str, value: &str, effect: NodeTaintEffect) -> bool {
    toleration.effect.is_none_or(|e| e == effect)
        && if toleration.key.is_empty() {
            // Without a key only `Exists` is valid.
            toleration.exists
        } else {
            toleration.key == key && (toleration.exists || toleration.value == value)
        }
}

fn term_matches(term: &NodeSelectorTerm, name: &str, facts: &Facts) -> bool {
    !(term.expressions.is_empty() && term.fields.is_empty())
        && term.expressions.iter().all(|r| holds(r, facts.label(&r.key)))
        && term.fields.iter().all(|r| holds(r, Some(name)))
}

fn holds(requirement: &Requirement, value: Option<&str>) -> bool {
    let named = |v: &str| requirement.values.iter().any(|w| w == v);
    let compare = |f: fn(&i64, &i64) -> bool| {
        let bound = requirement.values.first().and_then(|v| v.parse::<i64>().ok());
        let value = value.and_then(|v| v.parse::<i64>().ok());
        value.zip(bound).is_some_and(|(v, b)| f(&v, &b))
    };
    match requirement.operator {
        Operator::In => value.is_some_and(named),
        Operator::NotIn => !value.is_some_and(named),
        Operator::Exists => value.is_some(),
        Operator::DoesNotExist => value.is_none(),
        Operator::Gt => compare(i64::gt),
        Operator::Lt => compare(i64::lt),
    }
}

/// Would the API server take such a pod? Else what is wrong, in a sentence.
pub fn validate(shape: &Shape) -> Result<(), String> {
    if let Some((name, amount)) = shape.requests.iter().find(|(_, n)| *n < 0) {
        return Err(format!("the request of {name} is {amount}; it must not be negative"));
    }
    for term in &shape.node_affinity {
        for r in &term.expressions {
            let n = r.values.len();
            let (right, wanted) = match r.operator {
                Operator::In | Operator::NotIn => (n > 0, "at least one value"),
                Operator::Exists | Operator::DoesNotExist => (n == 0, "no values"),
                Operator::Gt | Operator::Lt => (n == 1 && r.values[0].parse::<i64>().is_ok(), "one integer"),
            };
            if !right {
                return Err(format!(
                    "node affinity on {}: operator {:?} has {:?}; it takes {wanted}",
                    r.key, r.operator, r.values
                ));
            }
        }
        for r in &term.fields {
            if r.key != "metadata.name" || r.values.len() != 1 || !matches!(r.operator, Operator::In | Operator::NotIn)
            {
                return Err(format!(
                    "node affinity on field {}: {:?} {:?}; only metadata.name In or NotIn one value exists",
                    r.key, r.operator, r.values
                ));
            }
        }
    }
    Ok(())
}

/// Label keys that decide whether nodes pass the shape.
pub(super) fn label_keys<'a>(shape: &'a Shape, runtime: Option<&'a RuntimeClassRow>) -> impl Iterator<Item = &'a str> {
    let selectors = shape.node_selector.iter();
    let selectors = selectors.chain(runtime.into_iter().flat_map(|r| &r.node_selector));
    let expressions = shape.node_affinity.iter().flat_map(|t| &t.expressions);
    selectors
        .map(|(key, _)| key.as_str())
        .chain(expressions.map(|r| r.key.as_str()))
}

#[cfg(test)]
mod tests;
