//! Why jobs wait: computed for a class, told to its jobs when the set of reasons changes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::class::Class;
use super::cycle::{Meter, Sites};
use super::job::Rank;
use super::scheduler::{Scheduler, SchedulerConfig};
use super::site::{self, Site};
use crate::api::JobKey;
use crate::api::Now;
use crate::api::job::{Nearest, Waiting};
use crate::capacity::Reason;

use super::reserve::Reservation;

/// A class is not looked at again within this time: reasons are for people.
const REFRESH: Duration = Duration::from_secs(5);
/// Work of one call, in nodes looked at; explaining one takes about 100 ns.
const WORK: usize = 20_000;
/// Workers named with a sentence.
const NEAREST: usize = 8;

/// How far telling is.
#[derive(Debug, Default)]
pub(super) struct Telling {
    /// The class that is being looked at, and what its workers said so far, in order.
    under_way: Option<(u32, Vec<Verdict>)>,
    /// Jobs that may be told now, in thousandths, and when that was computed.
    tokens: u64,
    refilled: Option<Duration>,
}

impl Telling {
    /// The workers are others: start over.
    pub(super) fn restart(&mut self) {
        self.under_way = None;
    }

    /// Jobs that may be told now: a second's worth at most is saved up.
    fn refill(&mut self, per_second: u32, now: Now) -> usize {
        let most = u64::from(per_second) * 1000;
        let passed = self.refilled.map(|since| now.mono.saturating_sub(since).as_millis());
        let earned = passed.map_or(most, |ms| {
            u64::try_from(ms).unwrap_or(most).saturating_mul(per_second.into())
        });
        self.tokens = self.tokens.saturating_add(earned).min(most);
        self.refilled = Some(now.mono);
        usize::try_from(self.tokens / 1000).unwrap_or(usize::MAX)
    }
}

/// What one worker says; ordered by how near it is to taking the job.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Verdict {
    distance: Distance,
    /// Members without room, and what the next of them lacks.
    lacking: (i64, i64),
    cluster: Arc<str>,
    reason: &'static str,
    message: String,
}

/// How near a worker is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Distance {
    /// It has room.
    Fits,
    /// It has the nodes, and they are full.
    Full,
    /// Nothing is known of its room.
    Unknown,
    /// Its nodes are not for the job.
    Unsuitable,
    /// The job may not go there.
    Barred,
}

impl Scheduler {
    /// Why a job waits, worker by worker, as it is now; none when it is not queued. Costs a look at every node of every worker.
    #[cfg(test)]
    pub(super) fn waiting(&mut self, key: &JobKey, sites: &mut Sites) -> Option<Waiting> {
        let entry = self.jobs.get(key)?;
        let class = self.classes.get(&entry.class)?;
        let verdicts = sites
            .iter_mut()
            .map(|(name, site)| {
                judge(
                    class,
                    &entry.job.rank(),
                    name,
                    site,
                    self.reservation.as_ref(),
                    &self.config,
                )
            })
            .collect();
        Some(summary(verdicts))
    }

    /// At most `limit` jobs whose reasons are others than those told last, the head of the queue first, with the reasons. What is returned counts as told.
    /// Rate-limited, and bounded in work: call it after every cycle.
    pub fn changed_reasons(&mut self, sites: &mut Sites, now: Now, limit: usize) -> Vec<(JobKey, Waiting)> {
        self.evaluate(sites, now);
        let limit = limit.min(self.telling.refill(self.config.reasons_per_second, now));
        let mut heads: BTreeSet<(Rank, u32)> = (self.classes.iter())
            .filter_map(|(ix, c)| Some((c.untold.first()?.clone(), *ix)))
            .collect();
        let mut told = Vec::new();
        while told.len() < limit
            && let Some((rank, ix)) = heads.pop_first()
        {
            let Some(class) = self.classes.get_mut(&ix) else {
                continue;
            };
            class.untold.remove(&rank);
            heads.extend(class.untold.first().map(|next| (next.clone(), ix)));
            if let (Some(entry), Some(waiting)) = (self.jobs.get_mut(&rank.key), &class.waiting)
                && entry.told != class.reasons
            {
                entry.told = class.reasons.clone();
                told.push((rank.key, waiting.clone()));
            }
        }
        self.telling.tokens -= told.len() as u64 * 1000;
        told
    }

    /// Looks at classes that found no room, a bounded number of nodes a call: those never looked at first, in the order of the queue, then the one looked
    /// at longest ago. By the queue alone the head would be due again before the tail had its turn.
    fn evaluate(&mut self, sites: &mut Sites, now: Now) {
        self.observe(sites);
        let mut meter = Meter::new(WORK);
        while !meter.exhausted() {
            let (ix, mut verdicts) = match self.telling.under_way.take() {
                Some(under_way) => under_way,
                None => match self.next_to_evaluate(now) {
                    Some(ix) => (ix, Vec::new()),
                    None => return,
                },
            };
            let Some(class) = self.classes.get_mut(&ix) else {
                continue;
            };
            let Some(rank) = class.queue.first().cloned() else {
                continue;
            };
            for (name, site) in sites.iter_mut().skip(verdicts.len()) {
                if meter.exhausted() {
                    self.telling.under_way = Some((ix, verdicts));
                    return;
                }
                let before = site.ledger.work();
                verdicts.push(judge(class, &rank, name, site, self.reservation.as_ref(), &self.config));
                meter.add(site.ledger.work() - before);
            }
            class.evaluated = Some(now.mono);
            let waiting = summary(verdicts);
            let reasons: BTreeSet<String> = waiting.reasons.keys().cloned().collect();
            class.waiting = Some(waiting);
            class.reasons = Arc::new(reasons);
            let jobs = &self.jobs;
            let differs = |rank: &&Rank| jobs.get(&rank.key).is_some_and(|e| e.told != class.reasons);
            class.untold = class.queue.iter().filter(differs).cloned().collect();
        }
    }

    fn next_to_evaluate(&self, now: Now) -> Option<u32> {
        let stale = |at: Duration| now.mono.saturating_sub(at) >= REFRESH;
        let classes = self.classes.iter();
        classes
            .filter(|(_, c)| c.failing_since.is_some() && c.evaluated.is_none_or(stale))
            .filter_map(|(ix, c)| Some((c.evaluated, c.queue.first()?, *ix)))
            .min()
            .map(|(.., ix)| ix)
    }
}

/// What one worker says to a job.
fn judge(
    class: &Class,
    rank: &Rank,
    name: &Arc<str>,
    site: &mut Site,
    reservation: Option<&Reservation>,
    config: &SchedulerConfig,
) -> Verdict {
    let verdict = |distance, lacking, reason, message| Verdict {
        distance,
        lacking,
        cluster: name.clone(),
        reason,
        message,
    };
    if let Err((reason, message)) = site::admits(site.meta(), &class.asks, &config.operator_namespace) {
        return verdict(Distance::Barred, (0, 0), reason, message);
    }
    if let Some(shortfall) = site.ledger.explain(&class.asks.pod_sets) {
        let distance = match shortfall.reason {
            Reason::CapacityUnknown | Reason::RuleNotCounted => Distance::Unknown,
            _ if shortfall.full => Distance::Full,
            _ => Distance::Unsuitable,
        };
        return verdict(
            distance,
            (shortfall.lacking, shortfall.missing),
            shortfall.reason.as_str(),
            shortfall.message,
        );
    }
    match reservation {
        Some(r) if r.holds_back(class, rank, name, site, &mut Meter::new(usize::MAX)) => verdict(
            Distance::Fits,
            (0, 0),
            "Reserved",
            format!("held for {}, which was passed over for long", r.rank.key),
        ),
        _ => verdict(
            Distance::Fits,
            (0, 0),
            "Fits",
            "has room; the next cycle places the job".into(),
        ),
    }
}

fn summary(mut verdicts: Vec<Verdict>) -> Waiting {
    let mut reasons: BTreeMap<String, i32> = BTreeMap::new();
    if verdicts.is_empty() {
        reasons.insert("NoWorkers".into(), 0);
    }
    for verdict in &verdicts {
        *reasons.entry(verdict.reason.into()).or_default() += 1;
    }
    verdicts.sort_unstable();
    let nearest = verdicts.into_iter().take(NEAREST).map(|v| Nearest {
        cluster: v.cluster.to_string(),
        reason: v.reason.into(),
        message: v.message,
    });
    Waiting {
        reasons,
        nearest: nearest.collect(),
    }
}
