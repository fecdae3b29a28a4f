//! The account of one worker: what is free on each node, what is used, and what is promised.

mod classes;
mod devices;
mod events;
mod explain;
mod intern;
mod nodes;
mod placing;
mod plan;
mod promises;
mod settle;
mod vector;

use std::collections::BTreeMap;
use std::sync::Arc;

pub use devices::ModelTotal;

use self::classes::{Classes, Context, Standing};
use self::intern::{Charges, Resources};
use self::nodes::{NodeIx, Nodes};
use self::promises::Promises;
use super::accelerators::DeviceReport;
use super::reason::Reason;
use super::rows::RuntimeClassRow;
use crate::resources::Shape;

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
    /// How much of what the next member asks is missing on the node that has most of it, in thousandths: of two workers that lack as many members the one
    /// that is nearer.
    pub missing: i64,
    /// The worker has nodes for the shape, and they are full: time may help. False: its nodes are not for the shape, or it is not known.
    pub full: bool,
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

/// A pod on the books.
#[derive(Debug, Clone)]
struct PodEntry {
    node: NodeIx,
    charge: u32,
    job: Option<Arc<str>>,
    running: bool,
    deleting: bool,
}

/// Own pods of one job.
#[derive(Debug, Clone, Default)]
struct OwnPods {
    id: Arc<str>,
    pods: JobPods,
    /// Their number by what they are charged.
    charges: Vec<(u32, i64)>,
}

/// The account of one worker.
///
/// Every change (`events.rs`) ends in `settle.rs`, which moves promised members off nodes where others took their room. So three things hold after
/// each call: no node has placed members without the room for them; a member is unplaced only while no node has room for it beyond what older
/// promises wait for; and an unplaced member's request is charged on the node it waits for, so that nothing takes that room before it.
#[derive(Debug, Clone)]
pub struct Ledger {
    nodes: Nodes,
    resources: Resources,
    classes: Classes,
    charges: Charges,
    pods: BTreeMap<Box<str>, PodEntry>,
    jobs: BTreeMap<Arc<str>, OwnPods>,
    promises: Promises,
    runtimes: Option<BTreeMap<Arc<str>, RuntimeClassRow>>,
    /// Why nodes and pods (in this order) are not known.
    unknown: [Option<String>; 2],
    /// Whose watch (in this order) fails.
    failing: [bool; 2],
    generation: u64,
    work: u64,
}

impl Default for Ledger {
    fn default() -> Self {
        Self::new()
    }
}

impl Ledger {
    /// An account of nothing: capacity is unknown until nodes and pods were listed.
    pub fn new() -> Self {
        Self {
            nodes: Nodes::new(),
            resources: Resources::default(),
            classes: Classes::default(),
            charges: Charges::default(),
            pods: BTreeMap::new(),
            jobs: BTreeMap::new(),
            promises: Promises::default(),
            runtimes: None,
            unknown: [
                Some("nodes are not listed yet".into()),
                Some("pods are not listed yet".into()),
            ],
            failing: [false; 2],
            generation: 0,
            work: 0,
        }
    }

    /// Grows with every change that may have made room, and with no other.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Grows with every change of what is free: what was computed before is still true while it stays.
    pub fn version(&self) -> (u64, u64, u64) {
        (self.nodes.clock, self.nodes.devices.ranking, self.generation)
    }

    /// Nodes looked at by shapes so far: the unit of the budget of a scheduling cycle.
    pub fn work(&self) -> u64 {
        self.work
    }

    /// Own pods of a job.
    pub fn job_pods(&self, id: &str) -> JobPods {
        self.jobs.get(id).map_or_else(JobPods::default, |own| own.pods)
    }

    /// How many members of a shape could be bound now, one after the other, without preemption and beyond all promises.
    pub fn fit(&mut self, shape: &Arc<Shape>) -> Fit {
        let ix = self.class(shape);
        match &self.classes.get(ix).standing {
            Standing::Broken(message) => return Fit::Error(message.clone()),
            Standing::Unknown(_, message) => return Fit::Unknown(message.clone()),
            Standing::Nowhere(..) => return Fit::Known { members: 0 },
            Standing::Counted => {}
        }
        if let Err(message) = self.known() {
            return Fit::Unknown(message.into());
        }
        self.sync(ix);
        Fit::Known {
            members: self.classes.get(ix).total,
        }
    }

    /// Members of a shape that would fit if every job of ours on the worker ended; none while that is not known. Strangers' pods count as there for good.
    pub fn fit_without_ours(&mut self, shape: &Arc<Shape>) -> Option<i64> {
        self.known().ok()?;
        let ix = self.class(shape);
        let class = self.classes.get(ix);
        if class.standing != Standing::Counted {
            return None;
        }
        let mut members = 0;
        for (node, _) in self.nodes.present() {
            members += i64::from(class.slots_without_ours(&self.nodes, node));
        }
        self.work += self.nodes.list.len() as u64;
        Some(members)
    }

    /// Is there a node on which members of either shape could ever run?
    pub fn could_meet(&mut self, one: &Arc<Shape>, other: &Arc<Shape>) -> bool {
        let (one, other) = (self.class(one), self.class(other));
        let nodes = &self.nodes;
        self.work += nodes.list.len() as u64;
        for (ix, _) in nodes.present() {
            if self.classes.get(one).could_run(nodes, ix) && self.classes.get(other).could_run(nodes, ix) {
                return true;
            }
        }
        false
    }

    /// Accelerators, for the worker's status.
    pub fn devices(&self) -> DeviceReport {
        self.nodes.devices.report()
    }

    /// Grows when `models` says something new.
    pub fn models_revision(&self) -> u64 {
        self.nodes.devices.revision
    }

    /// Accelerator models on this worker.
    pub fn models(&self) -> impl Iterator<Item = ModelTotal> {
        self.nodes.devices.models()
    }

    /// How scarce each model is in the fleet: higher is scarcer. Best fit leaves the scarcest alone.
    pub fn set_model_ranks(&mut self, rank: impl Fn(&str) -> u32) {
        self.nodes.devices.set_ranks(rank);
    }

    fn class(&mut self, shape: &Arc<Shape>) -> u32 {
        let context = Context {
            nodes: &mut self.nodes,
            resources: &mut self.resources,
            runtimes: self.runtimes.as_ref(),
        };
        self.classes.intern(shape, context)
    }

    fn counted(&mut self, class: u32) -> bool {
        self.classes.get(class).standing == Standing::Counted
    }

    fn sync(&mut self, class: u32) {
        self.work += self.classes.get(class).sync(&self.nodes) as u64;
    }
}

#[cfg(test)]
mod tests;
