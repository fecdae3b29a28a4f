//! Backfill with a bound: a job that was passed over for long holds one worker.

use std::cmp::Reverse;
use std::sync::Arc;
use std::time::Duration;

use super::class::{Asks, Class, Version};
use super::cycle::{Meter, Sites};
use super::job::Rank;
use super::scheduler::Scheduler;
use super::site::{self, Site};
use crate::api::Now;
use crate::capacity::Fit;

/// How long a job that no worker could ever take is not looked at again as one to reserve for.
const HOPELESS: Duration = Duration::from_mins(1);

/// A worker held for a job.
#[derive(Debug, Clone)]
pub(super) struct Reservation {
    /// The job.
    pub(super) rank: Rank,
    class: u32,
    asks: Asks,
    /// The worker.
    pub(super) site: Arc<str>,
    /// State of its ledger in which it could take the job.
    version: Option<Version>,
}

impl Reservation {
    /// May a job of the class not be assigned to the worker? Not when it ranks below and could ever run on a node on which the reserved job could:
    /// how soon such a node is empty enough depends on all that runs there. On other nodes it takes nothing from the reserved job.
    pub(super) fn holds_back(
        &self,
        class: &Class,
        rank: &Rank,
        name: &str,
        site: &mut Site,
        meter: &mut Meter,
    ) -> bool {
        if *name != *self.site || *rank <= self.rank {
            return false;
        }
        let before = site.ledger.work();
        let meets = (self.asks.pod_sets.iter())
            .any(|a| (class.asks.pod_sets.iter()).any(|b| site.ledger.could_meet(&a.shape, &b.shape)));
        meter.add(site.ledger.work() - before);
        meets
    }
}

impl Scheduler {
    /// The first job that was passed over for long enough, and for which a worker exists that could take it, reserves the worker where it lacks least. It keeps
    /// that worker while it could still take it: to move on would start the wait anew. When the budget runs out, the next call goes on.
    pub(super) fn reserve(&mut self, sites: &mut Sites, now: Now, meter: &mut Meter) {
        let due = |since: Duration| now.mono.saturating_sub(since) >= self.config.reserve_after;
        let mut waiting: Vec<(Rank, u32)> = self
            .classes
            .iter()
            .filter(|(_, c)| c.failing_since.is_some_and(due) && c.hopeless_until <= now.mono)
            .filter_map(|(ix, c)| Some((c.queue.first()?.clone(), *ix)))
            .collect();
        waiting.sort();
        for (rank, ix) in waiting {
            if self.keeps(&rank, ix, sites, meter) {
                return;
            }
            match self.nearest(ix, sites, now, meter) {
                Search::OutOfBudget => return,
                Search::Hopeless => {}
                Search::Found(site) => {
                    self.clear_reservation();
                    let asks = self.classes.get(&ix).map(|c| c.asks.clone());
                    self.reservation = asks.map(|asks| Reservation {
                        rank,
                        class: ix,
                        asks,
                        site,
                        version: None,
                    });
                    return;
                }
            }
        }
        self.clear_reservation();
    }

    /// Does the job have the reservation, on a worker that could still take it?
    fn keeps(&mut self, rank: &Rank, ix: u32, sites: &mut Sites, meter: &mut Meter) -> bool {
        let Some(kept) = self.reservation.as_mut().filter(|r| r.rank == *rank && r.class == ix) else {
            return false;
        };
        let Some(site) = sites.get_mut(&kept.site) else {
            return false;
        };
        if site::admits(site.meta(), &kept.asks, &self.config.operator_namespace).is_err() {
            return false;
        }
        if kept.version != Some(site.ledger.version()) {
            if lacking(&kept.asks, site, meter).is_none() {
                return false;
            }
            kept.version = Some(site.ledger.version());
        }
        true
    }

    /// The worker where the class lacks least. What each lacks is good enough for a minute: it only ranks workers, and the one chosen is looked at anew
    /// with each of its changes.
    fn nearest(&mut self, ix: u32, sites: &mut Sites, now: Now, meter: &mut Meter) -> Search {
        let Some(class) = self.classes.get_mut(&ix) else {
            return Search::Hopeless;
        };
        class.lacking.resize(sites.len(), None);
        let mut best: Option<(i64, Reverse<i64>, Arc<str>)> = None;
        for (i, (name, site)) in sites.iter_mut().enumerate() {
            if site::admits(site.meta(), &class.asks, &self.config.operator_namespace).is_err() {
                continue;
            }
            let known = class.lacking[i].filter(|(at, _)| now.mono.saturating_sub(*at) < HOPELESS);
            let lacking = if let Some((_, lacking)) = known {
                lacking
            } else if meter.exhausted() {
                return Search::OutOfBudget;
            } else {
                let lacking = lacking(&class.asks, site, meter);
                class.lacking[i] = Some((now.mono, lacking));
                lacking
            };
            let Some(lacking) = lacking else { continue };
            let preference = site::preference(&class.asks.placement, &site.meta().labels);
            let score = (lacking, Reverse(preference), name.clone());
            if best.as_ref().is_none_or(|b| score < *b) {
                best = Some(score);
            }
        }
        if let Some((_, _, site)) = best {
            return Search::Found(site);
        }
        class.hopeless_until = now.mono + HOPELESS;
        Search::Hopeless
    }

    /// Nothing is held any more; those that were held back are tried again.
    pub(super) fn clear_reservation(&mut self) {
        if let Some(reservation) = self.reservation.take() {
            self.seen.bump(&reservation.site);
        }
    }
}

/// How the search for a worker to reserve ended.
enum Search {
    Found(Arc<str>),
    Hopeless,
    OutOfBudget,
}

/// Members that lack room on the worker now; none when it could not take the job even if all of ours there ended.
fn lacking(asks: &Asks, site: &mut Site, meter: &mut Meter) -> Option<i64> {
    let before = site.ledger.work();
    let lacking = asks.pod_sets.iter().map(|set| {
        let Fit::Known { members } = site.ledger.fit(&set.shape) else {
            return None;
        };
        let could = site.ledger.fit_without_ours(&set.shape)? >= set.count;
        could.then_some((set.count - members).max(0))
    });
    let lacking = lacking.sum();
    meter.add(site.ledger.work() - before);
    lacking
}
