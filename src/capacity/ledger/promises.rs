//! Promises: members that have no pod yet are placed on concrete nodes, so that no node is promised more than it has.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::Ledger;
use super::nodes::{Member, NodeIx};
use super::plan::by_size;
use crate::resources::PodSet;

/// The members of one pod set that have no pod yet.
#[derive(Debug, Clone, Default)]
pub(super) struct Held {
    pub(super) class: u32,
    count: i64,
    /// With room on a node.
    pub(super) placed: BTreeMap<NodeIx, i64>,
    /// Without room, each pressing on a node that it shall get.
    pub(super) waiting: BTreeMap<NodeIx, i64>,
    /// Without room, and no node could ever take them.
    pub(super) nowhere: i64,
}

impl Held {
    pub(super) fn unplaced(&self) -> i64 {
        self.nowhere + self.waiting.values().sum::<i64>()
    }

    fn total(&self) -> i64 {
        self.unplaced() + self.placed.values().sum::<i64>()
    }
}

/// Room held for one job.
#[derive(Debug, Clone)]
pub(super) struct Promise {
    id: Arc<str>,
    wanted: i64,
    sets: Vec<Held>,
}

/// All promises of a worker, by age.
#[derive(Debug, Clone, Default)]
pub(super) struct Promises {
    next: u64,
    pub(super) list: BTreeMap<u64, Promise>,
    by_id: BTreeMap<Arc<str>, u64>,
    /// Sets with unplaced members.
    pub(super) homeless: BTreeSet<Member>,
    /// Sets that lost a place or want more since they were last looked at.
    pub(super) fresh: BTreeSet<Member>,
    /// Nodes where members wait no more since this was last looked at.
    pub(super) eased: BTreeSet<NodeIx>,
    /// Promises whose pods changed, with the nodes where one appeared.
    touched: BTreeMap<u64, Vec<NodeIx>>,
}

impl Promises {
    pub(super) fn find(&self, id: &str) -> Option<u64> {
        self.by_id.get(id).copied()
    }

    pub(super) fn ids(&self) -> Vec<Arc<str>> {
        self.list.values().map(|p| p.id.clone()).collect()
    }

    pub(super) fn held(&self, (seq, set): Member) -> Option<&Held> {
        self.list.get(&seq)?.sets.get(set as usize)
    }

    pub(super) fn held_mut(&mut self, (seq, set): Member) -> Option<&mut Held> {
        self.list.get_mut(&seq)?.sets.get_mut(set as usize)
    }

    pub(super) fn touch(&mut self, id: &str, appeared: Option<NodeIx>) {
        if let Some(seq) = self.find(id) {
            self.touched.entry(seq).or_default().extend(appeared);
        }
    }

    pub(super) fn take_touched(&mut self) -> BTreeMap<u64, Vec<NodeIx>> {
        std::mem::take(&mut self.touched)
    }

    fn members(&self, seq: u64) -> impl Iterator<Item = Member> + use<> {
        let sets = self.list.get(&seq).map_or(0, |p| p.sets.len());
        (0..u32::try_from(sets).unwrap_or(u32::MAX)).map(move |set| (seq, set))
    }

    /// Sets of all promises.
    pub(super) fn all(&self) -> Vec<Member> {
        self.list.keys().flat_map(|seq| self.members(*seq)).collect()
    }

    /// Notes whether a set has unplaced members.
    pub(super) fn note(&mut self, member: Member) {
        if self.held(member).is_some_and(|h| h.unplaced() > 0) {
            self.homeless.insert(member);
        } else {
            self.homeless.remove(&member);
        }
    }
}

impl Ledger {
    /// Holds room for all members of a job, less those of its pods that are seen bound. `id` is the job's uid. A second promise of that id replaces
    /// the first.
    pub fn promise(&mut self, id: &Arc<str>, sets: &[PodSet]) {
        let wanted = sets.iter().map(|s| s.count.max(0)).sum();
        let held: Vec<Held> = by_size(sets)
            .into_iter()
            .map(|i| Held {
                class: self.class(&sets[i].shape),
                count: sets[i].count.max(0),
                ..Held::default()
            })
            .collect();
        if let Some(seq) = self.promises.find(id) {
            let same = self.promises.list.get(&seq).is_some_and(|p| {
                let before = p.sets.iter().map(|h| (h.class, h.count));
                before.eq(held.iter().map(|h| (h.class, h.count)))
            });
            if same {
                self.set_wanted(id, wanted);
                return;
            }
            self.release(id);
        }
        for h in &held {
            self.classes.get(h.class).users += 1;
        }
        let seq = self.promises.next;
        self.promises.next += 1;
        self.promises.by_id.insert(id.clone(), seq);
        self.promises.list.insert(
            seq,
            Promise {
                id: id.clone(),
                wanted,
                sets: held,
            },
        );
        self.promises.touch(id, None);
        self.finish();
    }

    /// How many members in all still want room: the bound ones included, the finished ones not. With several sets the number is spent on them in
    /// order, the largest members first.
    pub fn set_wanted(&mut self, id: &str, wanted: i64) {
        let Some(seq) = self.promises.find(id) else { return };
        if let Some(promise) = self.promises.list.get_mut(&seq)
            && promise.wanted != wanted.max(0)
        {
            promise.wanted = wanted.max(0);
            self.promises.touch(id, None);
            self.finish();
        }
    }

    /// Ends a promise.
    pub fn release(&mut self, id: &str) {
        let Some(seq) = self.promises.by_id.remove(id) else {
            return;
        };
        for member in self.promises.members(seq) {
            self.drop_members(member, i64::MAX, None);
            self.promises.homeless.remove(&member);
            self.promises.fresh.remove(&member);
        }
        if let Some(promise) = self.promises.list.remove(&seq) {
            for held in promise.sets {
                self.classes.get(held.class).users -= 1;
            }
        }
        self.finish();
    }

    /// Is there a promise of that id?
    pub fn is_promised(&self, id: &str) -> bool {
        self.promises.find(id).is_some()
    }

    /// Ids of all promises, the oldest first.
    pub fn promised(&self) -> impl Iterator<Item = &Arc<str>> {
        self.promises.list.values().map(|p| &p.id)
    }

    /// Where the members of a promise that have no pod yet are placed, by node.
    #[cfg(test)]
    pub(super) fn placed(&self, id: &str) -> BTreeMap<Arc<str>, i64> {
        let mut placed: BTreeMap<Arc<str>, i64> = BTreeMap::new();
        let sets = self.promises.find(id).and_then(|seq| self.promises.list.get(&seq));
        for (ix, n) in sets.iter().flat_map(|p| &p.sets).flat_map(|h| &h.placed) {
            *placed.entry(self.nodes.node(*ix).name.clone()).or_default() += n;
        }
        placed
    }

    /// Promised members that are not bound and for which no node has room at present.
    pub fn unplaced(&self) -> i64 {
        let homeless = self.promises.homeless.iter();
        homeless
            .filter_map(|m| self.promises.held(*m))
            .map(Held::unplaced)
            .sum()
    }

    /// Makes the members held equal to those wanted less those bound. Members whose pod appeared leave the node where it did, if they can.
    pub(super) fn adjust(&mut self, seq: u64, appeared: &[NodeIx]) {
        for (member, need) in self.promises.members(seq).zip(self.needs(seq)) {
            let Some(held) = self.promises.held(member) else {
                continue;
            };
            let mut surplus = held.total() - need;
            for ix in appeared {
                if surplus > 0 && self.promises.held(member).is_some_and(|h| h.placed.contains_key(ix)) {
                    self.drop_members(member, 1, Some(*ix));
                    surplus -= 1;
                }
            }
            if surplus > 0 {
                self.drop_members(member, surplus, None);
            }
            if surplus < 0
                && let Some(held) = self.promises.held_mut(member)
            {
                held.nowhere -= surplus;
                self.promises.fresh.insert(member);
            }
            self.promises.note(member);
        }
    }

    /// Members without a pod, set by set: a pod belongs to the set whose members are charged what it is; one that fits none (a webhook changed it)
    /// to the first that lacks one.
    fn needs(&mut self, seq: u64) -> Vec<i64> {
        let Some(promise) = self.promises.list.get(&seq) else {
            return Vec::new();
        };
        let mut left = promise.wanted;
        let mut needs = Vec::with_capacity(promise.sets.len());
        for (i, held) in promise.sets.iter().enumerate() {
            let last = i + 1 == promise.sets.len();
            let wanted = if last { left } else { left.min(held.count) };
            left -= wanted;
            needs.push(wanted);
        }
        let Some(job) = self.jobs.get(&promise.id) else {
            return needs;
        };
        let mut strays = 0;
        for (charge, n) in &job.charges {
            let charge = self.charges.get(*charge);
            let mut n = *n;
            for (held, need) in promise.sets.iter().zip(&mut needs) {
                if self.classes.get(held.class).request.same(charge) {
                    let taken = n.min(*need);
                    *need -= taken;
                    n -= taken;
                }
            }
            strays += n;
        }
        for need in &mut needs {
            let taken = strays.min(*need);
            *need -= taken;
            strays -= taken;
        }
        needs
    }
}
