//! The end of every change: members whose room was taken move, those without room get what became free, and the books are closed.

use std::collections::{BTreeMap, BTreeSet};

use super::Ledger;
use super::nodes::{Before, Member, Node, NodeIx};
use super::vector::Vector;

impl Ledger {
    /// Ends a change. While capacity is unknown nothing is moved: the half of a picture would only shuffle members about.
    pub(super) fn finish(&mut self) {
        for (seq, appeared) in self.promises.take_touched() {
            self.adjust(seq, &appeared);
        }
        if self.known().is_ok() {
            self.evict();
            self.rehouse();
        }
        let mut grew = false;
        let dirty = std::mem::take(&mut self.nodes.dirty);
        for (ix, before) in &dirty {
            let node = self.nodes.node(*ix);
            grew |= node.present && (before.row || has_more(node, before));
            self.nodes.settle(*ix);
        }
        if grew {
            self.generation += 1;
        }
    }

    /// Members leave nodes that they may not use any more, or that have less than was promised: the youngest promise first.
    fn evict(&mut self) {
        let dirty: Vec<(NodeIx, bool)> = self.nodes.dirty.iter().map(|(ix, b)| (*ix, b.row)).collect();
        for (ix, row) in dirty {
            if row {
                let node = self.nodes.node(ix);
                for member in node.placed.union(&node.waiting).copied().collect::<Vec<_>>() {
                    if !self.passes(member, ix) {
                        self.dislodge(member, ix, i64::MAX);
                    }
                }
            }
            for member in self.nodes.node(ix).placed.iter().rev().copied().collect::<Vec<_>>() {
                let excess = self.excess(member, ix);
                if excess > 0 {
                    let freed = self.unplace(member, ix, excess);
                    if let Some(held) = self.promises.held_mut(member) {
                        held.nowhere += freed;
                    }
                    self.promises.homeless.insert(member);
                    self.promises.fresh.insert(member);
                }
            }
        }
    }

    fn passes(&mut self, member: Member, ix: NodeIx) -> bool {
        let Some(class) = self.promises.held(member).map(|h| h.class) else {
            return false;
        };
        self.nodes.node(ix).present && self.classes.get(class).verdict(&self.nodes, ix).is_ok()
    }

    /// How many members of the set would have to leave the node for what they take to be there.
    fn excess(&mut self, member: Member, ix: NodeIx) -> i64 {
        let Some(class) = self.promises.held(member).map(|h| h.class) else {
            return 0;
        };
        let node = self.nodes.node(ix);
        let request = self.classes.get(class).request.iter().filter(|(_, n)| *n > 0);
        request
            .map(|(r, n)| {
                let missing = (-node.free.get(r)).max(0);
                // Rounded up: part of a member is a member.
                (missing + n - 1) / n
            })
            .max()
            .unwrap_or(0)
    }

    /// Unplaced members get room, the oldest promise first. One that is placed leaves what it waited for to younger ones, so that the nodes with news
    /// grow on the way.
    fn rehouse(&mut self) {
        let dirty = self.nodes.dirty.iter();
        let mut grown: BTreeSet<NodeIx> = dirty
            .filter(|(ix, before)| has_grown(self.nodes.node(**ix), before))
            .map(|(ix, _)| *ix)
            .collect();
        let rows = self.nodes.dirty.values().any(|b| b.row);
        let fresh = std::mem::take(&mut self.promises.fresh);
        let mut next: Member = (0, 0);
        loop {
            grown.append(&mut self.promises.eased);
            let homeless = self
                .promises
                .homeless
                .range(next..)
                .next()
                .filter(|_| !grown.is_empty());
            let Some(member) = homeless.into_iter().chain(fresh.range(next..).next()).min().copied() else {
                break;
            };
            next = (member.0, member.1 + 1);
            let is_fresh = fresh.contains(&member);
            if is_fresh {
                self.place_best(member);
            } else {
                for ix in &grown {
                    self.place_before_younger(member, *ix);
                }
            }
            if is_fresh || rows {
                self.press_rest(member);
            }
        }
    }

    fn unplaced_of(&self, member: Member) -> i64 {
        self.promises.held(member).map_or(0, super::promises::Held::unplaced)
    }

    fn place_best(&mut self, member: Member) {
        let (unplaced, Some(class)) = (self.unplaced_of(member), self.promises.held(member).map(|h| h.class)) else {
            return;
        };
        if unplaced == 0 {
            return;
        }
        for (spot, n) in self.choose(class, unplaced, &BTreeMap::new()) {
            self.place(member, spot.ix, n);
        }
        // What younger promises wait for is not theirs before this one's.
        if self.unplaced_of(member) > 0 {
            let younger = self
                .promises
                .homeless
                .range(member..)
                .filter_map(|m| self.promises.held(*m));
            let contested: BTreeSet<NodeIx> = younger.flat_map(|h| h.waiting.keys().copied()).collect();
            for ix in contested {
                self.place_before_younger(member, ix);
            }
        }
    }

    /// Places what fits on one node, held back only by what older promises wait for there.
    fn place_before_younger(&mut self, member: Member, ix: NodeIx) {
        let unplaced = self.unplaced_of(member);
        let Some(class) = self.promises.held(member).map(|h| h.class) else {
            return;
        };
        if unplaced == 0 {
            return;
        }
        let mut held = Vector::default();
        for older in self.nodes.node(ix).waiting.range(..member) {
            if let Some(h) = self.promises.held(*older)
                && let Some(n) = h.waiting.get(&ix)
            {
                held.add_times(&self.classes.get(h.class).request, *n);
            }
        }
        let class = self.classes.get(class);
        let slots = class.slots_on(&self.nodes, ix, &self.nodes.node(ix).free, &held);
        let n = unplaced.min(i64::from(slots));
        if n > 0 {
            self.place(member, ix, n);
        }
    }

    /// Members that found no room wait for it on the nodes that lack least, so that nothing younger takes it from under them.
    fn press_rest(&mut self, member: Member) {
        let nowhere = self.promises.held(member).map_or(0, |h| h.nowhere);
        if nowhere == 0 {
            return;
        }
        let mut left = nowhere;
        let class = self.promises.held(member).map_or(0, |h| h.class);
        for ix in self.least_lacking(member) {
            // As many as it could take if all that is ours ended, and one in any case.
            let room = self.classes.get(class).slots_without_ours(&self.nodes, ix);
            let n = i64::from(room.max(1)).min(left);
            self.press(member, ix, n);
            left -= n;
            if left == 0 {
                break;
            }
        }
    }

    /// Everything is looked at anew: capacity became known, or what members are charged changed.
    pub(super) fn reconsider(&mut self) {
        for ix in 0..NodeIx::try_from(self.nodes.list.len()).unwrap_or(NodeIx::MAX) {
            self.nodes.touch(ix);
            if let Some(before) = self.nodes.dirty.get_mut(&ix) {
                before.row = true;
            }
        }
        self.promises.fresh = self.promises.homeless.clone();
    }
}

/// Is more of anything free than before, what is waited for apart? Without a copy: this runs once for every event of a pod.
fn has_more(node: &Node, before: &Before) -> bool {
    let more = |r: u32| node.free.get(r) - node.pressed.get(r) > before.free.get(r) - before.pressed.get(r);
    let named = [&node.free, &node.pressed, &before.free, &before.pressed];
    named.iter().any(|v| v.iter().any(|(r, _)| more(r)))
}

fn has_grown(node: &Node, before: &Before) -> bool {
    node.present && (before.row || node.free.exceeds(&before.free))
}
