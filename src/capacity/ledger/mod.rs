//! The account of one worker: what is free on each node, what is used, and what is promised.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::accelerators::DeviceReport;
use super::reason::Reason;
use super::rows::{NodeRow, PodRow, RuntimeClassRow};
use crate::resources::Shape;
use crate::resources::shape::PodSet;

/// How many members of a shape a worker can take now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fit {
    /// Exactly this many.
    Known {
        /// Members that could be bound one after the other without preemption.
        members: i64,
    },
    /// It cannot be said; why, in a sentence. Neither zero nor free.
    Unknown(String),
    /// The template is broken; how, in a sentence.
    Error(String),
}

/// Why a worker lacks room, with numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shortfall {
    /// The class of the reason.
    pub reason: Reason,
    /// One sentence with numbers.
    pub message: String,
    /// Members that fit now.
    pub members: i64,
    /// Members that find no room.
    pub lacking: i64,
}

/// What taking a job would cost the worker; less is better. Compared field by field, in order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cost {
    /// Rank of the scarcest accelerator model used; 0: none.
    pub rank: u32,
    /// Devices left over on the nodes used: blocks broken for it.
    pub left: i64,
    /// Largest free block used.
    pub block: i64,
}

/// Own pods of a job on the worker, as the pod watch shows them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct JobPods {
    /// Bound and not finished, those being deleted included.
    pub bound: i64,
    /// Of these, in phase Running.
    pub running: i64,
    /// Of these, being deleted.
    pub deleting: i64,
}

/// A watch that the counting rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Watched {
    /// Nodes.
    Nodes,
    /// Bound, live pods.
    Pods,
}

/// The account of one worker.
#[derive(Debug, Clone, Default)]
pub struct Ledger {
    generation: u64,
}

impl Ledger {
    /// An account of nothing: capacity is unknown until nodes and pods were listed.
    pub fn new() -> Self {
        Self::default()
    }

    /// A node as a watch or a list shows it.
    pub fn upsert_node(&mut self, _row: &NodeRow) {}
    /// A node is gone; its pods stay on the books until they are gone too.
    pub fn delete_node(&mut self, _name: &str) {}
    /// All nodes.
    pub fn reset_nodes(&mut self, _rows: &[NodeRow]) {}
    /// A bound, live pod.
    pub fn upsert_pod(&mut self, _row: &PodRow) {}
    /// A pod is finished or gone.
    pub fn delete_pod(&mut self, _namespace: &str, _name: &str) {}
    /// All bound, live pods.
    pub fn reset_pods(&mut self, _rows: &[PodRow]) {}
    /// All runtime classes.
    pub fn set_runtime_classes(&mut self, _classes: BTreeMap<Arc<str>, RuntimeClassRow>) {}
    /// Nothing of the worker can be believed until nodes and pods are both listed again.
    pub fn set_unknown(&mut self, _message: &str) {}
    /// One watch is not running; capacity is unknown until its list is complete again.
    pub fn watch_lost(&mut self, _watched: Watched, _message: &str) {}
    /// Nodes and pods are known; else why not, in a sentence.
    pub fn known(&self) -> Result<(), &str> {
        Err("not built")
    }
    /// Grows with every change that may have made room, and with no other.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Holds room for all members of a job, less those of its pods that are seen bound. `id` is the job's uid. A second promise of that id replaces the first.
    pub fn promise(&mut self, _id: &Arc<str>, _sets: &[PodSet]) {}
    /// How many members in all still want room: the bound ones included, the finished ones not.
    pub fn set_wanted(&mut self, _id: &str, _wanted: i64) {}
    /// Ends a promise.
    pub fn release(&mut self, _id: &str) {}
    /// Is there a promise of that id?
    pub fn is_promised(&self, _id: &str) -> bool {
        false
    }
    /// Promised members that are not bound and for which no node has room at present.
    pub fn unplaced(&self) -> i64 {
        0
    }
    /// Own pods of a job.
    pub fn job_pods(&self, _id: &str) -> JobPods {
        JobPods::default()
    }

    /// How many members of a shape could be bound now.
    pub fn fit(&mut self, _shape: &Arc<Shape>) -> Fit {
        Fit::Unknown("not built".into())
    }
    /// What it would cost to take all pod sets of a job; none: they do not fit, or it is not known.
    pub fn plan(&mut self, _sets: &[PodSet]) -> Option<Cost> {
        None
    }
    /// Why so many members of a shape do not fit; none when they do.
    pub fn explain(&mut self, _sets: &[PodSet]) -> Option<Shortfall> {
        None
    }
    /// Accelerators, for the worker's status.
    pub fn devices(&self) -> DeviceReport {
        DeviceReport::default()
    }
}
