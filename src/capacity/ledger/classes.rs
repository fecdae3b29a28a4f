//! Shapes that were asked for, each with its slots on every node: recomputed only where a node changed.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::intern::{PODS, Resources};
use super::nodes::{Node, NodeIx, Nodes};
use super::vector::Vector;
use crate::capacity::filters;
use crate::capacity::reason::Reason;
use crate::capacity::rows::RuntimeClassRow;
use crate::resources::Shape;

/// Shapes kept at most, those of promises apart; the one not asked for the longest goes first.
const KEPT: usize = 1024;

/// Why a shape is not simply counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Standing {
    /// It is.
    Counted,
    /// It cannot be said.
    Unknown(Reason, String),
    /// It fits nowhere here.
    Nowhere(Reason, String),
    /// It is broken.
    Broken(String),
}

/// A shape on this worker.
#[derive(Debug, Clone)]
pub(super) struct Class {
    pub(super) shape: Arc<Shape>,
    runtime: Option<RuntimeClassRow>,
    /// What one member is charged, overhead and its place among `pods` included.
    pub(super) request: Vector,
    pub(super) standing: Standing,
    /// Members of it that fit on each node now; numbers of nodes beyond its end have none.
    pub(super) slots: Vec<u16>,
    /// Their sum.
    pub(super) total: i64,
    /// Promises that use it.
    pub(super) users: usize,
    verdicts: Vec<Option<Result<(), Reason>>>,
    grouping: u64,
    by_name: bool,
    synced: u64,
    asked: u64,
}

impl Class {
    /// May a member be bound to the node, room apart?
    pub(super) fn verdict(&mut self, nodes: &Nodes, ix: NodeIx) -> Result<(), Reason> {
        let node = nodes.node(ix);
        let check = || {
            let facts = &nodes.facts[node.group as usize];
            filters::check(&self.shape, self.runtime.as_ref(), &node.name, facts)
        };
        if self.by_name {
            return check();
        }
        if self.grouping != nodes.grouping {
            self.grouping = nodes.grouping;
            self.verdicts.clear();
        }
        let group = node.group as usize;
        if let Some(Some(known)) = self.verdicts.get(group) {
            return *known;
        }
        let verdict = check();
        if self.verdicts.len() <= group {
            self.verdicts.resize(nodes.facts.len().max(group + 1), None);
        }
        self.verdicts[group] = Some(verdict);
        verdict
    }

    /// Members that fit on the node, by `free` less `held`.
    pub(super) fn slots_on(&mut self, nodes: &Nodes, ix: NodeIx, free: &Vector, held: &Vector) -> u16 {
        if !nodes.node(ix).present {
            return 0;
        }
        let slots = free.slots(held, &self.request);
        // Most nodes are full most of the time: the cheap question first.
        if slots == 0 || self.verdict(nodes, ix).is_err() {
            0
        } else {
            slots
        }
    }

    /// Members that would fit on the node if all that is ours there ended.
    pub(super) fn slots_without_ours(&mut self, nodes: &Nodes, ix: NodeIx) -> u16 {
        let node = nodes.node(ix);
        let slots = node.free.slots_with(&node.ours, &self.request);
        if slots == 0 || !node.present || self.verdict(nodes, ix).is_err() {
            0
        } else {
            slots
        }
    }

    /// Could a member ever run on the node, as it is?
    pub(super) fn could_run(&mut self, nodes: &Nodes, ix: NodeIx) -> bool {
        self.slots_on(nodes, ix, &nodes.node(ix).allocatable, &Vector::default()) > 0
    }

    /// Brings the slots up to date; returns the number of nodes looked at.
    pub(super) fn sync(&mut self, nodes: &Nodes) -> usize {
        if self.synced == nodes.clock {
            return 0;
        }
        let mut work = 0;
        if self.synced == 0 {
            self.slots = vec![0; nodes.list.len()];
            self.total = 0;
            for (ix, _) in nodes.present() {
                self.refresh(nodes, ix);
            }
            work += nodes.list.len();
        } else {
            self.slots.resize(nodes.list.len(), 0);
            for ix in nodes.changed_since(self.synced) {
                self.refresh(nodes, ix);
                work += 1;
            }
        }
        self.synced = nodes.clock;
        work
    }

    fn refresh(&mut self, nodes: &Nodes, ix: NodeIx) {
        let node = nodes.node(ix);
        let slots = self.slots_on(nodes, ix, &node.free, &node.pressed);
        let before = std::mem::replace(&mut self.slots[ix as usize], slots);
        self.total += i64::from(slots) - i64::from(before);
    }

    fn compile(&mut self, context: &mut Context<'_>) {
        let shape = self.shape.clone();
        self.standing = standing(&shape, context.runtimes);
        self.runtime = shape
            .runtime_class
            .as_deref()
            .and_then(|name| context.runtimes?.get(name).cloned());
        self.request = context.resources.vector(&shape.requests);
        if let Some(runtime) = &self.runtime {
            self.request.add_times(&context.resources.vector(&runtime.overhead), 1);
        }
        self.request.add(PODS, 1);
        self.by_name = shape.node_affinity.iter().any(|t| !t.fields.is_empty());
        context
            .nodes
            .use_keys(filters::label_keys(&shape, self.runtime.as_ref()));
        self.verdicts.clear();
        self.synced = 0;
    }
}

fn standing(shape: &Shape, runtimes: Option<&BTreeMap<Arc<str>, RuntimeClassRow>>) -> Standing {
    if let Err(message) = filters::validate(shape) {
        return Standing::Broken(message);
    }
    if !shape.uncounted.is_empty() {
        return Standing::Unknown(
            Reason::RuleNotCounted,
            format!(
                "the template uses {}, which is not counted yet",
                shape.uncounted.join(", ")
            ),
        );
    }
    match (&shape.runtime_class, runtimes) {
        (Some(_), None) => Standing::Unknown(
            Reason::CapacityUnknown,
            "the runtime classes of the worker are not known yet".into(),
        ),
        (Some(name), Some(runtimes)) if !runtimes.contains_key(name.as_str()) => Standing::Nowhere(
            Reason::RuntimeClassMissing,
            format!("the worker has no RuntimeClass {name}"),
        ),
        _ => Standing::Counted,
    }
}

/// What a class is made from.
pub(super) struct Context<'a> {
    pub(super) nodes: &'a mut Nodes,
    pub(super) resources: &'a mut Resources,
    pub(super) runtimes: Option<&'a BTreeMap<Arc<str>, RuntimeClassRow>>,
}

/// All shapes that were asked for, by number.
#[derive(Debug, Clone, Default)]
pub(super) struct Classes {
    list: Vec<Class>,
    by_shape: BTreeMap<Arc<Shape>, u32>,
    vacant: Vec<u32>,
    clock: u64,
}

impl Classes {
    pub(super) fn intern(&mut self, shape: &Arc<Shape>, mut context: Context<'_>) -> u32 {
        self.clock += 1;
        if let Some(ix) = self.by_shape.get(shape).copied() {
            self.list[ix as usize].asked = self.clock;
            return ix;
        }
        if self.by_shape.len() >= KEPT {
            self.evict();
        }
        let mut class = Class {
            shape: shape.clone(),
            runtime: None,
            request: Vector::default(),
            standing: Standing::Counted,
            slots: Vec::new(),
            total: 0,
            users: 0,
            verdicts: Vec::new(),
            grouping: 0,
            by_name: false,
            synced: 0,
            asked: self.clock,
        };
        class.compile(&mut context);
        let ix = if let Some(ix) = self.vacant.pop() {
            self.list[ix as usize] = class;
            ix
        } else {
            self.list.push(class);
            u32::try_from(self.list.len() - 1).unwrap_or(u32::MAX)
        };
        self.by_shape.insert(shape.clone(), ix);
        ix
    }

    /// The class of a number that `intern` gave. A number is given to another shape only when no promise uses it, and never by the call that asked
    /// for it.
    pub(super) fn get(&mut self, ix: u32) -> &mut Class {
        &mut self.list[ix as usize]
    }

    /// Classes anew after the runtime classes changed.
    pub(super) fn recompile(&mut self, mut context: Context<'_>) {
        for class in self.list.iter_mut().filter(|c| c.shape.runtime_class.is_some()) {
            class.compile(&mut context);
        }
    }

    fn evict(&mut self) {
        let unused = (0u32..).zip(&self.list).filter(|(_, c)| c.users == 0 && c.asked > 0);
        if let Some((_, ix)) = unused.map(|(ix, c)| (c.asked, ix)).min() {
            let class = &mut self.list[ix as usize];
            self.by_shape.remove(&class.shape);
            class.shape = Arc::default();
            class.slots = Vec::new();
            class.asked = 0;
            self.vacant.push(ix);
        }
    }
}

/// Room by node in the order in which it is best taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Spot {
    /// Rank of the scarcest model on the node.
    pub(super) rank: u32,
    /// Devices left over there.
    pub(super) left: i64,
    /// Free devices there now.
    pub(super) block: i64,
    pub(super) ix: NodeIx,
    pub(super) slots: i64,
}

impl Spot {
    /// The node as a spot for up to `need` members that take `devices` each.
    pub(super) fn new(nodes: &Nodes, ix: NodeIx, node: &Node, slots: u16, need: i64, devices: i64) -> Self {
        let slots = i64::from(slots);
        Self {
            rank: nodes.devices.rank(node),
            left: node.block - slots.min(need) * devices,
            block: node.block,
            ix,
            slots,
        }
    }
}
