//! Best fit: which nodes members are placed on, so that scarce models and large blocks stay whole.

use std::collections::BTreeMap;

use super::classes::Spot;
use super::nodes::{Member, NodeIx};
use super::vector::Vector;
use super::{Cost, Ledger};
use crate::capacity::accelerators;
use crate::resources::PodSet;
use crate::resources::shape::Shape;

/// Devices that one member takes.
pub(super) fn devices(shape: &Shape) -> i64 {
    let requests = shape.requests.iter();
    requests
        .filter(|(name, _)| accelerators::is_device(name))
        .map(|(_, n)| n)
        .sum()
}

/// Numbers of the sets, the largest members first: a large member placed late finds only the holes that small ones left.
pub(super) fn by_size(sets: &[PodSet]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..sets.len()).collect();
    let size = |i: &usize| {
        let shape = &sets[*i].shape;
        (devices(shape), shape.requests.get("cpu"), shape.requests.get("memory"))
    };
    order.sort_by(|a, b| size(b).cmp(&size(a)).then(a.cmp(b)));
    order
}

impl Ledger {
    /// What it would cost to take all pod sets of a job; none: they do not fit, or it is not known. First fit of the largest members: exact for one
    /// set, a lower bound for several (a packing that only an exhaustive search finds is not found by the worker's scheduler either).
    pub fn plan(&mut self, sets: &[PodSet]) -> Option<Cost> {
        self.known().ok()?;
        let mut taken: BTreeMap<NodeIx, Vector> = BTreeMap::new();
        let mut cost = Cost::default();
        for i in by_size(sets) {
            let set = &sets[i];
            let class = self.class(&set.shape);
            if set.count <= 0 {
                continue;
            }
            if !self.counted(class) {
                return None;
            }
            // Most workers are full most of the time, and their totals say so without a look at their nodes.
            if !self.nodes.devices.may_hold(&self.classes.get(class).request, set.count) {
                return None;
            }
            let spots = self.choose(class, set.count, &taken);
            if spots.iter().map(|(_, n)| n).sum::<i64>() < set.count {
                return None;
            }
            let each = devices(&set.shape);
            for (spot, n) in spots {
                cost.rank = cost.rank.max(spot.rank);
                cost.block = cost.block.max(spot.block);
                cost.left += spot.block - n * each;
                if sets.len() > 1 {
                    let request = self.classes.get(class).request.clone();
                    taken.entry(spot.ix).or_default().add_times(&request, n);
                }
            }
        }
        Some(cost)
    }

    /// Up to `need` members of a class on the nodes that suit best, `taken` apart; fewer when there is no more room.
    pub(super) fn choose(&mut self, class: u32, need: i64, taken: &BTreeMap<NodeIx, Vector>) -> Vec<(Spot, i64)> {
        self.sync(class);
        let nodes = &self.nodes;
        let class = self.classes.get(class);
        let each = devices(&class.shape);
        let mut spots = Vec::new();
        for (ix, slots) in (0..).zip(&class.slots) {
            if *slots > 0 {
                spots.push(Spot::new(nodes, ix, nodes.node(ix), *slots, need, each));
            }
        }
        if !taken.is_empty() {
            for spot in &mut spots {
                if let Some(taken) = taken.get(&spot.ix) {
                    let node = nodes.node(spot.ix);
                    let mut held = node.pressed.clone();
                    held.add_times(taken, 1);
                    spot.slots = i64::from(node.free.slots(&held, &class.request));
                }
            }
            spots.retain(|s| s.slots > 0);
        }
        // Each spot takes one member at least, so that no more than `need` of them matter.
        let most = usize::try_from(need).unwrap_or(usize::MAX);
        if most < spots.len() {
            spots.select_nth_unstable(most);
            spots.truncate(most);
        }
        spots.sort_unstable();
        let mut left = need;
        let mut chosen = Vec::new();
        for spot in spots {
            let n = spot.slots.min(left);
            if n == 0 {
                break;
            }
            left -= n;
            chosen.push((spot, n));
        }
        chosen
    }

    /// Nodes on which members that fit nowhere may wait, those that lack least first.
    pub(super) fn least_lacking(&mut self, member: Member) -> Vec<NodeIx> {
        let Some(held) = self.promises.held(member) else {
            return Vec::new();
        };
        let class = self.classes.get(held.class);
        let mut found: Vec<(i64, i64, NodeIx)> = Vec::new();
        for (ix, node) in self.nodes.present() {
            if !class.could_run(&self.nodes, ix) {
                continue;
            }
            let (mut devices, mut kinds) = (0, 0);
            for (resource, n) in class.request.iter() {
                let lack = n - (node.free.get(resource) - node.pressed.get(resource));
                if lack > 0 {
                    kinds += 1;
                    if node.shares.iter().any(|s| s.resource == resource) {
                        devices += lack;
                    }
                }
            }
            found.push((devices, kinds, ix));
        }
        found.sort_unstable();
        found.into_iter().map(|(.., ix)| ix).collect()
    }
}
