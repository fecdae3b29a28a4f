//! Why members of a shape have no room: a closed set of words.

use std::fmt;

/// Why members of a shape have no room on a worker, or on one node of it. The words go into `status.waiting.reasons` and metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// Too few free accelerators, or too few on one node.
    InsufficientDevices,
    /// Too little free cpu.
    InsufficientCpu,
    /// Too little free memory.
    InsufficientMemory,
    /// Too little free ephemeral storage.
    InsufficientEphemeralStorage,
    /// The nodes take no more pods.
    InsufficientPods,
    /// Too little of any other resource.
    InsufficientResource,
    /// The node is not Ready.
    NodeNotReady,
    /// The node is being deleted.
    NodeDeleting,
    /// The node is cordoned.
    Unschedulable,
    /// A taint with `NoSchedule` or `NoExecute` is not tolerated.
    UntoleratedTaint,
    /// `nodeSelector`, required node affinity or the selector of the `RuntimeClass` does not match.
    SelectorMismatch,
    /// The device driver of the node is being replaced, or its devices are being cut anew.
    DriverNotReady,
    /// The worker has no `RuntimeClass` of that name.
    RuntimeClassMissing,
    /// The worker has no nodes.
    NoNodes,
    /// Nodes or pods of the worker cannot be read.
    CapacityUnknown,
    /// The template uses a rule that is not counted yet.
    RuleNotCounted,
    /// The API server would refuse such a pod.
    InvalidTemplate,
}

impl Reason {
    /// The reason as it is written into a status.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::InsufficientDevices => "InsufficientDevices",
            Self::InsufficientCpu => "InsufficientCPU",
            Self::InsufficientMemory => "InsufficientMemory",
            Self::InsufficientEphemeralStorage => "InsufficientEphemeralStorage",
            Self::InsufficientPods => "InsufficientPods",
            Self::InsufficientResource => "InsufficientResource",
            Self::NodeNotReady => "NodeNotReady",
            Self::NodeDeleting => "NodeDeleting",
            Self::Unschedulable => "Unschedulable",
            Self::UntoleratedTaint => "UntoleratedTaint",
            Self::SelectorMismatch => "SelectorMismatch",
            Self::DriverNotReady => "DriverNotReady",
            Self::RuntimeClassMissing => "RuntimeClassMissing",
            Self::NoNodes => "NoNodes",
            Self::CapacityUnknown => "CapacityUnknown",
            Self::RuleNotCounted => "RuleNotCounted",
            Self::InvalidTemplate => "InvalidTemplate",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
