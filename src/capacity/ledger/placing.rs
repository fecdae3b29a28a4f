//! Single moves of promised members: onto a node and off it, into the line of those who wait for it and out of it.

use super::Ledger;
use super::nodes::{Member, NodeIx};
use super::vector::Vector;

impl Ledger {
    /// Forgets up to `n` members: from one node, or those without room first.
    pub(super) fn drop_members(&mut self, member: Member, n: i64, at: Option<NodeIx>) {
        let mut left = n;
        if let Some(ix) = at {
            self.unplace(member, ix, left);
            return;
        }
        let Some(held) = self.promises.held_mut(member) else {
            return;
        };
        let nowhere = held.nowhere.min(left);
        held.nowhere -= nowhere;
        left -= nowhere;
        while left > 0
            && let Some(ix) = self
                .promises
                .held(member)
                .and_then(|h| h.waiting.keys().next_back().copied())
        {
            left -= self.unpress(member, ix, left);
        }
        while left > 0
            && let Some(ix) = self
                .promises
                .held(member)
                .and_then(|h| h.placed.keys().next_back().copied())
        {
            left -= self.unplace(member, ix, left);
        }
    }

    /// Gives `n` unplaced members room on a node.
    pub(super) fn place(&mut self, member: Member, ix: NodeIx, n: i64) {
        let Some(held) = self.promises.held_mut(member) else {
            return;
        };
        *held.placed.entry(ix).or_default() += n;
        let request = self.classes.get(held.class).request.clone();
        let from_nowhere = held.nowhere.min(n);
        held.nowhere -= from_nowhere;
        let mut waiting = n - from_nowhere;
        let node = self.nodes.touch(ix);
        node.free.add_times(&request, -n);
        node.ours.add_times(&request, n);
        node.placed.insert(member);
        waiting -= self.unpress(member, ix, waiting);
        while waiting > 0
            && let Some(at) = self
                .promises
                .held(member)
                .and_then(|h| h.waiting.keys().next_back().copied())
        {
            waiting -= self.unpress(member, at, waiting);
        }
        self.promises.note(member);
    }

    /// Takes up to `n` members off a node; returns how many. They are in no account then.
    pub(super) fn unplace(&mut self, member: Member, ix: NodeIx, n: i64) -> i64 {
        let Some(held) = self.promises.held_mut(member) else {
            return n;
        };
        let Some(here) = held.placed.get_mut(&ix) else { return 0 };
        let n = n.min(*here);
        *here -= n;
        let gone = *here == 0;
        if gone {
            held.placed.remove(&ix);
        }
        let request = self.classes.get(held.class).request.clone();
        let node = self.nodes.touch(ix);
        node.free.add_times(&request, n);
        node.ours.add_times(&request, -n);
        if gone {
            node.placed.remove(&member);
        }
        n
    }

    /// Lets `n` members that are nowhere wait for room on a node.
    pub(super) fn press(&mut self, member: Member, ix: NodeIx, n: i64) {
        let Some(held) = self.promises.held_mut(member) else {
            return;
        };
        held.nowhere -= n;
        *held.waiting.entry(ix).or_default() += n;
        let request = self.classes.get(held.class).request.clone();
        let node = self.nodes.touch(ix);
        node.pressed.add_times(&request, n);
        node.waiting.insert(member);
    }

    /// Up to `n` members wait no more on a node; returns how many. They are in no account then.
    pub(super) fn unpress(&mut self, member: Member, ix: NodeIx, n: i64) -> i64 {
        let Some(held) = self.promises.held_mut(member) else {
            return n;
        };
        let Some(here) = held.waiting.get_mut(&ix) else {
            return 0;
        };
        let n = n.min(*here);
        if n == 0 {
            return 0;
        }
        *here -= n;
        let gone = *here == 0;
        if gone {
            held.waiting.remove(&ix);
        }
        let request = self.classes.get(held.class).request.clone();
        let node = self.nodes.touch(ix);
        node.pressed.add_times(&request, -n);
        self.promises.eased.insert(ix);
        if gone {
            node.waiting.remove(&member);
            if node.waiting.is_empty() {
                node.pressed = Vector::default();
            }
        }
        n
    }

    /// All members of a set that are on a node, placed or waiting, are nowhere from now on.
    pub(super) fn dislodge(&mut self, member: Member, ix: NodeIx, n: i64) {
        let placed = self.unplace(member, ix, n);
        let waiting = self.unpress(member, ix, n.saturating_sub(placed));
        if placed + waiting > 0
            && let Some(held) = self.promises.held_mut(member)
        {
            held.nowhere += placed + waiting;
            self.promises.fresh.insert(member);
            self.promises.note(member);
        }
    }
}
