//! A pod template reduced to what the scheduler reads. Equal shapes are one value.

use std::sync::Arc;

use super::amounts::Amounts;

/// A pod template reduced to what the scheduler's filters read.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Shape {
    /// Effective request of one pod (`k8s.io/component-helpers/resource.PodRequests`), limits copied where a request is missing;
    /// overhead that the template itself names is in it only without a `RuntimeClass`: admission demands that it equals that of the class, which
    /// is the worker's and is added there.
    pub requests: Amounts,
    /// `nodeSelector`, sorted by key.
    pub node_selector: Vec<(String, String)>,
    /// Terms of the required node affinity, of which one must match; empty: none is asked.
    pub node_affinity: Vec<NodeSelectorTerm>,
    /// Tolerations of node taints, the two defaults of admission (`not-ready`, `unreachable`) left out: they are `NoExecute` for 300 s and
    /// must not make a node that is away look free.
    pub tolerations: Vec<Toleration>,
    /// `runtimeClassName`; its overhead, selector and tolerations are the worker's.
    pub runtime_class: Option<String>,
    /// Rules that the template uses and that are not counted yet (pod affinity, topology spread, resource claims, host ports, ...): a shape with any
    /// fits nowhere *known*.
    pub uncounted: Vec<String>,
}

/// One term of a node selector: all its requirements must hold. An empty term matches nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeSelectorTerm {
    /// On labels.
    pub expressions: Vec<Requirement>,
    /// On fields; only `metadata.name` exists.
    pub fields: Vec<Requirement>,
}

/// One requirement of a node selector.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Requirement {
    /// Label key or field path.
    pub key: String,
    /// How key and values compare.
    pub operator: Operator,
    /// The values.
    pub values: Vec<String>,
}

/// Operators of node selector requirements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operator {
    /// The value is among those named.
    In,
    /// The key is absent, or its value is not among those named.
    NotIn,
    /// The key is there.
    Exists,
    /// The key is not there.
    DoesNotExist,
    /// The value is an integer above the one named.
    Gt,
    /// The value is an integer below the one named.
    Lt,
}

/// Effects of node taints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NodeTaintEffect {
    /// Pods that do not tolerate it are not bound here.
    NoSchedule,
    /// Only scores.
    PreferNoSchedule,
    /// Pods that do not tolerate it are not bound here, and evicted.
    NoExecute,
}

/// A taint of a node.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeTaint {
    /// Key.
    pub key: String,
    /// Value, empty when absent.
    pub value: String,
    /// Effect.
    pub effect: NodeTaintEffect,
}

/// A toleration of a pod.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Toleration {
    /// Key; empty with `exists` tolerates every key.
    pub key: String,
    /// True for operator `Exists`: the value does not matter.
    pub exists: bool,
    /// Value for operator `Equal`.
    pub value: String,
    /// Effect; none means every effect.
    pub effect: Option<NodeTaintEffect>,
}

/// A number of members of one shape.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PodSet {
    /// What each member asks of a node.
    pub shape: Arc<Shape>,
    /// How many members run at once.
    pub count: i64,
}
