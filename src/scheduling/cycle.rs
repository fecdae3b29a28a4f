//! One pass over the queue: filter, fit, score, promise.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::class::Class;
use super::job::Rank;
use super::scheduler::{Cycle, Placed, Scheduler};
use super::site::{self, Site};
use crate::api::Now;
use crate::capacity::Cost;

/// Workers by name.
pub(super) type Sites = BTreeMap<Arc<str>, Site>;

/// What was seen of the workers, so that nothing is tried twice.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// Names, in order: the place of a name here is the number of the worker.
    names: Vec<Arc<str>>,
    /// Revision and generation of each.
    stamps: Vec<(u64, u64)>,
    /// The epoch in which each last changed.
    pub(super) changed: Vec<u64>,
    /// Grows whenever any worker may have more room.
    pub(super) epoch: u64,
    models: u64,
}

impl Seen {
    pub(super) fn new() -> Self {
        Self {
            // New classes were tried up to epoch 0: without any worker they are found to have no room, too.
            epoch: 1,
            ..Self::default()
        }
    }

    pub(super) fn forget(&mut self, name: &str) {
        if let Ok(i) = self.names.binary_search_by(|n| (**n).cmp(name)) {
            self.stamps[i] = (u64::MAX, u64::MAX);
            self.models = u64::MAX;
        }
    }

    /// The worker may have room for what was refused before.
    pub(super) fn bump(&mut self, name: &str) {
        if let Ok(i) = self.names.binary_search_by(|n| (**n).cmp(name)) {
            self.epoch += 1;
            self.changed[i] = self.epoch;
        }
    }
}

/// Work done in one call, in nodes looked at.
#[derive(Debug)]
pub(super) struct Meter {
    budget: u64,
    spent: u64,
}

impl Meter {
    pub(super) fn new(budget: usize) -> Self {
        Self {
            budget: budget as u64,
            spent: 0,
        }
    }

    /// The budget is used up. The first step is always made, else a budget below one step would never end.
    pub(super) fn exhausted(&self) -> bool {
        self.spent > 0 && self.spent >= self.budget
    }

    pub(super) fn add(&mut self, work: u64) {
        self.spent += work.max(1);
    }
}

/// How one class fared.
enum Tried {
    Room(Arc<str>),
    NoRoom,
    OutOfBudget,
}

impl Scheduler {
    /// Assigns what fits, in order: all or nothing on one worker, each at once a promise on its ledger. `budget` is work in units of one node looked at by
    /// one shape, 10 to 50 ns; one step is always made. When it runs out, the next call goes on where this one stopped.
    pub fn cycle(&mut self, sites: &mut Sites, now: Now, budget: usize) -> Cycle {
        let mut meter = Meter::new(budget);
        let mut cycle = Cycle::default();
        self.observe(sites);
        self.reserve(sites, now, &mut Meter::new(budget / 2));
        loop {
            let epoch = self.seen.epoch;
            let untried = self.classes.iter().filter(|(_, c)| c.tried < epoch);
            let mut heads: BTreeSet<(Rank, u32)> = untried
                .filter_map(|(ix, c)| Some((c.queue.first()?.clone(), *ix)))
                .collect();
            while let Some((rank, ix)) = heads.pop_first() {
                match self.try_class(ix, &rank, sites, &mut meter) {
                    Tried::OutOfBudget => return cycle,
                    Tried::NoRoom => {
                        cycle.passed_over += 1;
                        if let Some(class) = self.classes.get_mut(&ix) {
                            class.tried = epoch;
                            class.failing_since.get_or_insert(now.mono);
                        }
                    }
                    Tried::Room(site) => {
                        cycle.placed.extend(self.assign(&rank, &site, sites));
                        if let Some(class) = self.classes.get_mut(&ix) {
                            class.failing_since = None;
                            heads.extend(class.queue.first().map(|next| (next.clone(), ix)));
                        }
                    }
                }
            }
            // A reservation that ended with a placement frees its worker for those that were held back before it.
            if self.seen.epoch == epoch {
                break;
            }
        }
        cycle.finished = true;
        cycle
    }

    /// Notes which workers may have more room than when they were last looked at, and how scarce each accelerator model is.
    pub(super) fn observe(&mut self, sites: &mut Sites) {
        let seen = &mut self.seen;
        if !seen.names.iter().eq(sites.keys()) {
            let stamp = |name: &Arc<str>| {
                seen.names
                    .binary_search(name)
                    .ok()
                    .map(|i| (seen.stamps[i], seen.changed[i]))
            };
            let kept: Vec<_> = sites
                .keys()
                .map(|n| stamp(n).unwrap_or(((u64::MAX, u64::MAX), 0)))
                .collect();
            (seen.stamps, seen.changed) = kept.into_iter().unzip();
            seen.names = sites.keys().cloned().collect();
            seen.models = u64::MAX;
            for class in self.classes.values_mut() {
                class.plans.clear();
                class.lacking.clear();
                class.evaluated = None;
            }
            self.telling.restart();
        }
        let next = seen.epoch + 1;
        let mut models = 0u64;
        for (i, site) in sites.values().enumerate() {
            let stamp = (site.revision(), site.ledger.generation());
            if seen.stamps[i] != stamp {
                seen.stamps[i] = stamp;
                seen.changed[i] = next;
                seen.epoch = next;
            }
            models = models.wrapping_add(site.ledger.models_revision());
        }
        if seen.models != models {
            seen.models = models;
            rank_models(sites);
        }
    }

    fn try_class(&mut self, ix: u32, rank: &Rank, sites: &mut Sites, meter: &mut Meter) -> Tried {
        let Some(class) = self.classes.get_mut(&ix) else {
            return Tried::NoRoom;
        };
        class.plans.resize(sites.len(), None);
        let mut best: Option<(Reverse<i64>, Cost, Arc<str>)> = None;
        for (i, (name, site)) in sites.iter_mut().enumerate() {
            // A worker that had no room and did not get any since has none.
            if self.seen.changed[i] <= class.tried
                || site::admits(site.meta(), &class.asks, &self.config.operator_namespace).is_err()
            {
                continue;
            }
            let Ok(cost) = plan(class, i, site, meter) else {
                return Tried::OutOfBudget;
            };
            let Some(cost) = cost else { continue };
            let held = self
                .reservation
                .as_ref()
                .is_some_and(|r| r.holds_back(class, rank, name, site, meter));
            if held {
                continue;
            }
            let preference = site::preference(&class.asks.placement, &site.meta().labels);
            let score = (Reverse(preference), cost, name.clone());
            if best.as_ref().is_none_or(|b| score < *b) {
                best = Some(score);
            }
        }
        best.map_or(Tried::NoRoom, |(_, _, name)| Tried::Room(name))
    }

    /// The job leaves the queue and its room is promised.
    fn assign(&mut self, rank: &Rank, name: &Arc<str>, sites: &mut Sites) -> Option<Placed> {
        let site = sites.get_mut(name)?;
        let job = self.remove(&rank.key)?;
        site.ledger.promise(&job.uid, &job.pod_sets);
        Some(Placed {
            key: job.key,
            uid: job.uid,
            site: name.clone(),
            cluster_uid: site.meta().cluster_uid.clone(),
        })
    }
}

/// The budget ran out before it was known.
struct OutOfBudget;

/// What the class would cost the worker, as it is now; none: it has no room.
fn plan(class: &mut Class, i: usize, site: &mut Site, meter: &mut Meter) -> Result<Option<Cost>, OutOfBudget> {
    if let Some((version, cost)) = class.plans[i]
        && version == site.ledger.version()
    {
        return Ok(cost);
    }
    if meter.exhausted() {
        return Err(OutOfBudget);
    }
    let before = site.ledger.work();
    let cost = site.ledger.plan(&class.asks.pod_sets);
    meter.add(site.ledger.work() - before);
    class.plans[i] = Some((site.ledger.version(), cost));
    Ok(cost)
}

/// Ranks the accelerator models of the fleet. More memory is scarcer, since more jobs need it and fewer devices have it; where labels do not tell, or tell the
/// same, the model with fewer devices is. Prices would say more, and nobody publishes them.
fn rank_models(sites: &mut Sites) {
    let mut totals: BTreeMap<Arc<str>, (i64, i64)> = BTreeMap::new();
    for model in sites.values().flat_map(|s| s.ledger.models()) {
        let total = totals.entry(model.name).or_default();
        total.0 = total.0.max(model.memory_mib);
        total.1 += model.devices;
    }
    let mut order: Vec<(i64, Reverse<i64>, Arc<str>)> = totals
        .into_iter()
        .map(|(name, (memory, devices))| (memory, Reverse(devices), name))
        .collect();
    order.sort();
    let ranks: BTreeMap<Arc<str>, u32> = order.into_iter().map(|(_, _, name)| name).zip(1..).collect();
    for site in sites.values_mut() {
        site.ledger
            .set_model_ranks(|name| ranks.get(name).copied().unwrap_or(0));
    }
}
