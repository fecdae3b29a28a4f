//! Nodes with what is free on each, grouped by what filters read, and a log of which changed when.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::devices::{self, DeviceTotals, Share};
use super::intern::{Resources, Texts};
use super::vector::Vector;
use crate::capacity::filters::{DRIVER_UPGRADE, Facts, MIG_STATE};
use crate::capacity::rows::NodeRow;
use crate::resources::shape::{NodeTaint, NodeTaintEffect};

/// Nodes are numbered; numbers of nodes that are gone are used again.
pub(super) type NodeIx = u32;

/// Which set of which promise: promises by age, sets by size.
pub(super) type Member = (u64, u32);

/// What a node says of itself in single bits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Flags {
    unschedulable: bool,
    ready: bool,
    deleting: bool,
}

/// A node. One that is not (yet, or any more) there but has pods is kept for them with `present: false`: the two watches are not ordered.
#[derive(Debug, Clone, Default)]
pub(super) struct Node {
    pub(super) name: Arc<str>,
    pub(super) present: bool,
    labels: Box<[(u32, u32)]>,
    taints: Arc<[NodeTaint]>,
    flags: Flags,
    pub(super) allocatable: Vector,
    capacity: Vector,
    /// Nodes of one group are the same to every filter, names apart.
    pub(super) group: u32,
    /// Allocatable less bound pods and placed members. Negative where devices went away under running pods.
    pub(super) free: Vector,
    /// Charged for promised members that fit nowhere and wait for room here.
    pub(super) pressed: Vector,
    /// What of the used room belongs to our own jobs: it comes back.
    pub(super) ours: Vector,
    /// Live pods bound here.
    pub(super) pods: u32,
    /// Members placed here, oldest promise first.
    pub(super) placed: BTreeSet<Member>,
    /// Members that wait for room here.
    pub(super) waiting: BTreeSet<Member>,
    /// When it last changed.
    pub(super) changed: u64,
    /// Its accelerators.
    pub(super) shares: Box<[Share]>,
    /// Free accelerators.
    pub(super) block: i64,
}

impl Node {
    /// Takes pods at all: what accelerators on others are is neither free nor used.
    pub(super) fn in_service(&self) -> bool {
        self.present
            && self.flags.ready
            && !self.flags.deleting
            && !self.flags.unschedulable
            && !self.taints.iter().any(|t| {
                t.effect != NodeTaintEffect::PreferNoSchedule && crate::capacity::accelerators::out_of_service(&t.key)
            })
    }

    pub(super) fn capacity(&self) -> &Vector {
        &self.capacity
    }
}

/// What makes two nodes the same to every filter.
type Signature = (Vec<(u32, u32)>, Vec<(String, String, NodeTaintEffect)>, bool, Flags);

/// All nodes of a worker.
#[derive(Debug, Clone, Default)]
pub(super) struct Nodes {
    pub(super) list: Vec<Node>,
    by_name: BTreeMap<Arc<str>, NodeIx>,
    vacant: Vec<NodeIx>,
    texts: Texts,
    texts_after_rebuild: usize,
    /// Label keys that some filter reads.
    keys: BTreeSet<u32>,
    groups: BTreeMap<Signature, u32>,
    pub(super) facts: Vec<Facts>,
    /// Grows when groups were made anew: verdicts by group are void.
    pub(super) grouping: u64,
    /// Grows with every change of a node.
    pub(super) clock: u64,
    log: Vec<(u64, NodeIx)>,
    /// Nodes as they were before the operation under way, with whether their row changed.
    pub(super) dirty: BTreeMap<NodeIx, Before>,
    pub(super) devices: DeviceTotals,
}

/// A node before the operation under way.
#[derive(Debug, Clone, Default)]
pub(super) struct Before {
    pub(super) free: Vector,
    pub(super) pressed: Vector,
    /// Its row changed too: filters may say otherwise now.
    pub(super) row: bool,
}

impl Nodes {
    pub(super) fn find(&self, name: &str) -> Option<NodeIx> {
        self.by_name.get(name).copied()
    }

    pub(super) fn node(&self, ix: NodeIx) -> &Node {
        &self.list[ix as usize]
    }

    /// The node for a change: notes the state before, and the time.
    pub(super) fn touch(&mut self, ix: NodeIx) -> &mut Node {
        self.clock += 1;
        let node = &mut self.list[ix as usize];
        self.dirty.entry(ix).or_insert_with(|| Before {
            free: node.free.clone(),
            pressed: node.pressed.clone(),
            row: false,
        });
        // Changes of one operation that follow on one another are one entry.
        match self.log.last_mut() {
            Some((time, last)) if *last == ix => *time = self.clock,
            _ => self.log.push((self.clock, ix)),
        }
        node.changed = self.clock;
        if self.log.len() > 2 * self.list.len() + 256 {
            let list = &self.list;
            self.log.retain(|(time, ix)| list[*ix as usize].changed == *time);
        }
        &mut self.list[ix as usize]
    }

    /// Nodes that changed after `time`.
    pub(super) fn changed_since(&self, time: u64) -> impl Iterator<Item = NodeIx> {
        let start = self.log.partition_point(|(t, _)| *t <= time);
        self.log[start..]
            .iter()
            .filter(|(t, ix)| self.list[*ix as usize].changed == *t)
            .map(|(_, ix)| *ix)
    }

    /// The node of that name, kept for its pods when it is not known.
    pub(super) fn find_or_keep(&mut self, name: &Arc<str>) -> NodeIx {
        if let Some(ix) = self.find(name) {
            return ix;
        }
        let node = Node {
            name: name.clone(),
            ..Node::default()
        };
        let ix = if let Some(ix) = self.vacant.pop() {
            self.list[ix as usize] = node;
            ix
        } else {
            self.list.push(node);
            NodeIx::try_from(self.list.len() - 1).unwrap_or(NodeIx::MAX)
        };
        self.by_name.insert(name.clone(), ix);
        self.regroup(ix);
        self.touch(ix);
        ix
    }

    /// Takes over a row; false when it says nothing new.
    pub(super) fn upsert(&mut self, row: &NodeRow, resources: &mut Resources) -> bool {
        let ix = self.find_or_keep(&row.name);
        let mut labels: Vec<(u32, u32)> = row
            .labels
            .iter()
            .map(|(k, v)| (self.texts.intern(k), self.texts.intern(v)))
            .collect();
        labels.sort_unstable();
        let allocatable = resources.vector(&row.allocatable);
        let capacity = resources.vector(&row.capacity);
        let flags = Flags {
            unschedulable: row.unschedulable,
            ready: row.ready,
            deleting: row.deleting,
        };
        let node = self.node(ix);
        if node.present
            && *node.labels == *labels
            && *node.taints == *row.taints
            && node.flags == flags
            && node.allocatable == allocatable
            && node.capacity == capacity
        {
            return false;
        }
        let shares = devices::shares(row, &mut self.devices, |name| resources.number(name));
        let node = self.touch(ix);
        node.present = true;
        node.labels = labels.into();
        if *node.taints != *row.taints {
            node.taints = row.taints.as_slice().into();
        }
        node.flags = flags;
        node.free.add_times(&node.allocatable, -1);
        node.free.add_times(&allocatable, 1);
        node.allocatable = allocatable;
        node.capacity = capacity;
        self.devices.replace(&mut self.list[ix as usize], shares);
        self.mark_row(ix);
        self.regroup(ix);
        if self.texts.len() > 2 * self.texts_after_rebuild + 4096 {
            self.rebuild();
        }
        true
    }

    /// The node is gone; what runs there stays on the books.
    pub(super) fn delete(&mut self, ix: NodeIx) {
        let node = self.touch(ix);
        node.present = false;
        let allocatable = std::mem::take(&mut node.allocatable);
        node.free.add_times(&allocatable, -1);
        node.capacity = Vector::default();
        self.devices.replace(&mut self.list[ix as usize], Box::default());
        self.mark_row(ix);
        self.regroup(ix);
    }

    /// Ends an operation for one node: its totals, and its number when nothing is left of it.
    pub(super) fn settle(&mut self, ix: NodeIx) {
        self.devices.refresh(&mut self.list[ix as usize]);
        let node = &self.list[ix as usize];
        if !node.present && node.pods == 0 && node.placed.is_empty() && node.waiting.is_empty() && !node.name.is_empty()
        {
            self.by_name.remove(&node.name);
            let changed = node.changed;
            self.list[ix as usize] = Node {
                changed,
                ..Node::default()
            };
            self.regroup(ix);
            self.vacant.push(ix);
        }
    }

    /// Present nodes, by number.
    pub(super) fn present(&self) -> impl Iterator<Item = (NodeIx, &Node)> {
        (0..).zip(&self.list).filter(|(_, n)| n.present)
    }

    /// Filters that read these label keys are about to be asked.
    pub(super) fn use_keys<'a>(&mut self, keys: impl Iterator<Item = &'a str>) {
        let mut regroup = false;
        for key in keys {
            let before = self.texts.len();
            let key = self.texts.intern_str(key);
            // A key that no node ever had tells none apart.
            regroup |= self.keys.insert(key) && self.texts.len() == before;
        }
        if regroup {
            self.regroup_all();
        }
    }

    /// The group of nodes has no members before the first key is in use; the driver's states are read of every node.
    pub(super) fn new() -> Self {
        let mut nodes = Self::default();
        nodes.use_keys([DRIVER_UPGRADE, MIG_STATE].into_iter());
        nodes
    }

    /// Number of texts kept.
    #[cfg(test)]
    pub(super) fn texts_len(&self) -> usize {
        self.texts.len()
    }

    fn mark_row(&mut self, ix: NodeIx) {
        if let Some(before) = self.dirty.get_mut(&ix) {
            before.row = true;
        }
    }

    fn regroup_all(&mut self) {
        self.grouping += 1;
        self.groups.clear();
        self.facts.clear();
        for ix in 0..self.list.len() {
            self.regroup(NodeIx::try_from(ix).unwrap_or(NodeIx::MAX));
        }
    }

    fn regroup(&mut self, ix: NodeIx) {
        let node = &self.list[ix as usize];
        let labels: Vec<(u32, u32)> = node
            .labels
            .iter()
            .filter(|(k, _)| self.keys.contains(k))
            .copied()
            .collect();
        let taints = node.taints.iter().map(|t| (t.key.clone(), t.value.clone(), t.effect));
        let signature = (labels, taints.collect(), node.present, node.flags);
        if let Some(group) = self.groups.get(&signature) {
            self.list[ix as usize].group = *group;
            return;
        }
        let mut labels: Vec<_> = signature
            .0
            .iter()
            .map(|(k, v)| (self.texts.text(*k).clone(), self.texts.text(*v).clone()))
            .collect();
        labels.sort();
        let group = u32::try_from(self.facts.len()).unwrap_or(u32::MAX);
        self.facts.push(Facts {
            labels,
            taints: node.taints.clone(),
            unschedulable: node.flags.unschedulable,
            ready: node.flags.ready && node.present,
            deleting: node.flags.deleting,
        });
        self.groups.insert(signature, group);
        self.list[ix as usize].group = group;
        // Groups that lost their nodes (a label with a counter in it) are swept by making all anew.
        if self.facts.len() > 2 * self.list.len() + 64 {
            self.regroup_all();
        }
    }

    /// Forgets texts that no node has any more: names of nodes that came and went.
    fn rebuild(&mut self) {
        let old = std::mem::take(&mut self.texts);
        self.keys = self.keys.iter().map(|k| self.texts.intern(old.text(*k))).collect();
        for node in &mut self.list {
            let mut labels: Vec<(u32, u32)> = node
                .labels
                .iter()
                .map(|(k, v)| (self.texts.intern(old.text(*k)), self.texts.intern(old.text(*v))))
                .collect();
            labels.sort_unstable();
            node.labels = labels.into();
        }
        self.texts_after_rebuild = self.texts.len();
        self.regroup_all();
    }
}
