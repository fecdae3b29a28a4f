//! Backfill with a bound: a job that was passed over for long holds one worker.

use std::cmp::Reverse;
use std::sync::Arc;
use std::time::Duration;

use super::class::{Asks, Class};
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
    /// that worker while it could still take it: to move on would start the wait anew.
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
            if meter.exhausted() {
                return;
            }
            let Some(asks) = self.classes.get(&ix).map(|c| c.asks.clone()) else {
                continue;
            };
            let kept = self.reservation.as_ref().filter(|r| r.rank == rank && r.class == ix);
            let kept = kept.map(|r| r.site.clone());
            let mut best: Option<(i64, Reverse<i64>, Arc<str>)> = None;
            for (name, site) in sites.iter_mut() {
                if site::admits(site.meta(), &asks, &self.config.operator_namespace).is_err() {
                    continue;
                }
                let before = site.ledger.work();
                let lacking = lacking(&asks, site);
                meter.add(site.ledger.work() - before);
                let Some(lacking) = lacking else { continue };
                if kept.as_ref() == Some(name) {
                    return;
                }
                let preference = site::preference(&asks.placement, &site.meta().labels);
                let score = (lacking, Reverse(preference), name.clone());
                if best.as_ref().is_none_or(|b| score < *b) {
                    best = Some(score);
                }
            }
            let Some((_, _, site)) = best else {
                if let Some(class) = self.classes.get_mut(&ix) {
                    class.hopeless_until = now.mono + HOPELESS;
                }
                continue;
            };
            self.clear_reservation();
            self.reservation = Some(Reservation {
                rank,
                class: ix,
                asks,
                site,
            });
            return;
        }
        self.clear_reservation();
    }

    /// Nothing is held any more; those that were held back are tried again.
    pub(super) fn clear_reservation(&mut self) {
        if let Some(reservation) = self.reservation.take() {
            self.seen.bump(&reservation.site);
        }
    }
}

/// Members that lack room on the worker now; none when it could not take the job even if all of ours there ended.
fn lacking(asks: &Asks, site: &mut Site) -> Option<i64> {
    let mut lacking = 0;
    for set in asks.pod_sets.iter() {
        let Fit::Known { members } = site.ledger.fit(&set.shape) else {
            return None;
        };
        if site.ledger.fit_without_ours(&set.shape)? < set.count {
            return None;
        }
        lacking += (set.count - members).max(0);
    }
    Some(lacking)
}
