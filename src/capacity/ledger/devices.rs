//! Accelerators by model, kept up to date node by node.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::nodes::Node;
use super::vector::Vector;
use crate::api::worker_cluster::Devices;
use crate::capacity::accelerators::{self, DeviceReport};
use crate::capacity::rows::NodeRow;

/// What one node adds to the totals of one model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Share {
    pub(super) resource: u32,
    pub(super) model: u32,
    /// Each node that has the resource has a share of it: not so where the same devices go by several names.
    sole: bool,
    free: i64,
    used: i64,
    unavailable: i64,
    /// Free whether or not the node takes pods: some tolerate what keeps others away.
    left: i64,
}

/// One model on this worker.
#[derive(Debug, Clone, Default)]
struct Model {
    name: Arc<str>,
    nodes: usize,
    total: Devices,
    memory_mib: i64,
    rank: u32,
}

/// A model as others see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelTotal {
    /// Name.
    pub name: Arc<str>,
    /// Devices, whatever their state.
    pub devices: i64,
    /// Memory of one in MiB, 0 when no label tells.
    pub memory_mib: i64,
}

/// Accelerators of a worker by model.
#[derive(Debug, Clone, Default)]
pub(super) struct DeviceTotals {
    models: Vec<Model>,
    by_name: BTreeMap<Arc<str>, u32>,
    /// Number of nodes by size of their free block.
    blocks: BTreeMap<i64, usize>,
    /// By resource, whether or not the nodes take pods: devices free, and number of nodes by how many are.
    left: BTreeMap<u32, i64>,
    lefts: BTreeMap<(u32, i64), usize>,
    /// Grows when the number of devices of a model changes.
    pub(super) revision: u64,
    /// Grows when ranks were set anew.
    pub(super) ranking: u64,
}

/// The accelerators that a row names, without amounts yet.
pub(super) fn shares(
    row: &NodeRow,
    totals: &mut DeviceTotals,
    mut number: impl FnMut(&Arc<str>) -> u32,
) -> Box<[Share]> {
    let names: Vec<&Arc<str>> = row
        .allocatable
        .iter()
        .chain(row.capacity.iter().filter(|(n, _)| row.allocatable.get(n) == 0))
        .map(|(name, _)| name)
        .collect();
    let label = |key: &str| {
        let at = row.labels.binary_search_by(|(k, _)| (**k).cmp(key));
        at.ok().map(|i| &*row.labels[i].1)
    };
    let counted: Vec<&str> = accelerators::counted(names.iter().map(|n| &***n)).collect();
    let devices = names.into_iter().filter(|n| counted.contains(&&***n));
    devices
        .map(|resource| Share {
            resource: number(resource),
            sole: !accelerators::NEURON.contains(&&**resource),
            model: totals.model(&accelerators::model(resource, label), accelerators::memory_mib(label)),
            ..Share::default()
        })
        .collect()
}

impl DeviceTotals {
    fn model(&mut self, name: &str, memory_mib: i64) -> u32 {
        if let Some(ix) = self.by_name.get(name) {
            let model = &mut self.models[*ix as usize];
            if memory_mib > model.memory_mib {
                model.memory_mib = memory_mib;
                self.revision += 1;
            }
            return *ix;
        }
        let ix = u32::try_from(self.models.len()).unwrap_or(u32::MAX);
        let name: Arc<str> = name.into();
        self.models.push(Model {
            name: name.clone(),
            memory_mib,
            ..Model::default()
        });
        self.by_name.insert(name, ix);
        ix
    }

    /// The node has other accelerators from now on.
    pub(super) fn replace(&mut self, node: &mut Node, shares: Box<[Share]>) {
        self.subtract(node);
        for share in &node.shares {
            self.models[share.model as usize].nodes -= 1;
        }
        node.shares = shares;
        for share in &node.shares {
            self.models[share.model as usize].nodes += 1;
        }
        self.add(node);
        self.revision += 1;
    }

    /// What is free or used on the node changed.
    pub(super) fn refresh(&mut self, node: &mut Node) {
        if !node.shares.is_empty() {
            self.subtract(node);
            self.add(node);
        }
    }

    fn subtract(&mut self, node: &Node) {
        for share in &node.shares {
            let total = &mut self.models[share.model as usize].total;
            total.free -= share.free;
            total.used -= share.used;
            total.unavailable -= share.unavailable;
            if share.left > 0 {
                *self.left.entry(share.resource).or_default() -= share.left;
                less(&mut self.lefts, &(share.resource, share.left));
            }
        }
        if node.block > 0 {
            less(&mut self.blocks, &node.block);
        }
    }

    fn add(&mut self, node: &mut Node) {
        let in_service = node.in_service();
        let mut shares = std::mem::take(&mut node.shares);
        node.block = 0;
        for share in &mut shares {
            let allocatable = node.allocatable.get(share.resource);
            let all = allocatable.max(node.capacity().get(share.resource));
            let left = node.free.get(share.resource) - node.pressed.get(share.resource);
            share.used = (allocatable - left).clamp(0, all);
            share.free = if in_service { left.clamp(0, allocatable) } else { 0 };
            share.unavailable = (all - share.used - share.free).max(0);
            node.block += share.free;
            let total = &mut self.models[share.model as usize].total;
            total.free += share.free;
            total.used += share.used;
            total.unavailable += share.unavailable;
            share.left = if node.present && share.sole { left.max(0) } else { 0 };
            if share.left > 0 {
                *self.left.entry(share.resource).or_default() += share.left;
                *self.lefts.entry((share.resource, share.left)).or_default() += 1;
            }
        }
        node.shares = shares;
        if node.block > 0 {
            *self.blocks.entry(node.block).or_default() += 1;
        }
    }

    /// Could `count` members fit, by the totals of their devices alone?
    pub(super) fn may_hold(&self, request: &Vector, count: i64) -> bool {
        request.iter().all(|(resource, n)| {
            let Some(left) = self.left.get(&resource) else {
                return true;
            };
            let largest = self.lefts.range((resource, 0)..=(resource, i64::MAX)).next_back();
            *left >= n.saturating_mul(count) && (n == 0 || largest.is_some_and(|((_, most), _)| *most >= n))
        })
    }

    pub(super) fn report(&self) -> DeviceReport {
        let live = self.models.iter().filter(|m| m.nodes > 0);
        DeviceReport {
            by_model: live.map(|m| (m.name.to_string(), m.total.clone())).collect(),
            free: self.models.iter().map(|m| m.total.free).sum(),
            largest_free_block: self.blocks.last_key_value().map_or(0, |(block, _)| *block),
        }
    }

    pub(super) fn models(&self) -> impl Iterator<Item = ModelTotal> {
        let live = self.models.iter().filter(|m| m.nodes > 0);
        live.map(|m| ModelTotal {
            name: m.name.clone(),
            devices: m.total.free + m.total.used + m.total.unavailable,
            memory_mib: m.memory_mib,
        })
    }

    pub(super) fn set_ranks(&mut self, rank: impl Fn(&str) -> u32) {
        for model in &mut self.models {
            let rank = rank(&model.name);
            if model.rank != rank {
                model.rank = rank;
                self.ranking += 1;
            }
        }
    }

    /// Rank of the scarcest model on the node, 0 without accelerators.
    pub(super) fn rank(&self, node: &Node) -> u32 {
        let ranks = node.shares.iter().map(|s| self.models[s.model as usize].rank);
        ranks.max().unwrap_or(0)
    }
}

/// One fewer; none is no entry.
fn less<K: Ord>(counts: &mut BTreeMap<K, usize>, key: &K) {
    if let Some(count) = counts.get_mut(key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(key);
        }
    }
}
