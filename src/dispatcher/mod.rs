//! The world, events in, effects out: a plain value with one owner.
//!
//! [`Dispatcher::handle`] applies an event, [`Dispatcher::poll`] hands out the effects that are due, [`Dispatcher::next_wakeup`] says when to poll next although no
//! event came. It has no client, no clock, no randomness and no iteration over unordered maps: the same events give the same effects.
//!
//! Effects are pulled. What is handed out was decided in that moment; nothing ages in a queue here.

mod agenda;
pub mod config;
mod debts;
pub mod effect;
pub mod event;
mod events;
mod jobs;
mod leases;
mod notices;
mod outcomes;
mod queue;
mod report;
mod sightings;
mod strays;
pub mod summary;
mod traffic;
mod workers;
mod world;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

pub use config::Config;
pub use effect::{Effect, EffectId, Request, Target};
pub use event::{Answer, Event, LinkEvent, Outcome, Refusal, RefusalKind, WorkerEvent};
pub use summary::Summary;

use crate::api::Now;
use crate::lifecycle::Nonces;
use crate::lifecycle::judge::Ours;
use crate::lifecycle::view::JobKey;
use crate::scheduling::{Scheduler, SchedulerConfig, Site};

use agenda::{Agenda, Item};
use effect::Notice;
use event::Claim;
use traffic::{Flight, Note, Traffic};
use world::{Job, Worker};

/// The least time a request is given; with less left of the claim nothing is sent.
const LEAST_TIME: Duration = Duration::from_millis(250);

/// Writes of reasons for waiting, over all jobs: 100,000 waiting jobs are no write storm.
const REASONS_PER_SECOND: u32 = 20;

/// The world and what is under way in it.
#[derive(Debug)]
pub struct Dispatcher {
    config: Config,
    claim: Option<Claim>,
    /// When the claim was last acquired or renewed, monotonic.
    claim_renewed: Duration,
    jobs: BTreeMap<JobKey, Job>,
    keys: BTreeMap<Arc<str>, JobKey>,
    jobs_listed: bool,
    /// Objects of our kind that could not be decoded, and why.
    unreadable: BTreeMap<JobKey, String>,
    workers: BTreeMap<Arc<str>, Worker>,
    workers_listed: bool,
    /// The `WorkerCluster` in use for each cluster, by clusterUID.
    in_use: BTreeMap<Arc<str>, Arc<str>>,
    sites: BTreeMap<Arc<str>, Site>,
    scheduler: Scheduler,
    cycle_at: Option<Duration>,
    priorities: BTreeMap<String, i32>,
    default_priority: i32,
    priorities_listed: bool,
    traffic: Traffic,
    agenda: Agenda,
    nonces: Nonces,
    notices: VecDeque<Notice>,
    notice_at: Duration,
    ready: Vec<Effect>,
    /// Nothing could be sent at the last poll: the claim had run out, or the first lists were not complete.
    idle: bool,
    latencies: Vec<Duration>,
}

impl Dispatcher {
    /// A core that knows nothing yet.
    pub fn new(config: Config) -> Self {
        let scheduler = Scheduler::new(SchedulerConfig {
            operator_namespace: config.operator_namespace.clone(),
            reserve_after: config.backfill_reserve_after,
            reasons_per_second: REASONS_PER_SECOND,
        });
        Self {
            config,
            claim: None,
            claim_renewed: Duration::ZERO,
            jobs: BTreeMap::new(),
            keys: BTreeMap::new(),
            jobs_listed: false,
            unreadable: BTreeMap::new(),
            workers: BTreeMap::new(),
            workers_listed: false,
            in_use: BTreeMap::new(),
            sites: BTreeMap::new(),
            scheduler,
            cycle_at: None,
            priorities: BTreeMap::new(),
            default_priority: 0,
            priorities_listed: false,
            traffic: Traffic::default(),
            agenda: Agenda::default(),
            nonces: Nonces::default(),
            notices: VecDeque::new(),
            notice_at: Duration::ZERO,
            ready: Vec::new(),
            idle: true,
            latencies: Vec::new(),
        }
    }

    /// The effects that are due at `now`: at most as many as the executors have room for, decided now.
    pub fn poll(&mut self, now: Now) -> Vec<Effect> {
        // Half a world is no ground for a decision: a job may be listed before the worker that it is bound to.
        self.idle = !self.leads(now) || !self.is_synced();
        if self.idle {
            return Vec::new();
        }
        self.agenda.tick(now.mono);
        self.run_cycle(now);
        loop {
            while let Some(item) = self.agenda.next() {
                match &item {
                    Item::Job(key) => self.step_job(key, now),
                    Item::Stray(worker, key) => self.step_stray(worker, key, now),
                    Item::Worker(name) => self.step_worker(name, now),
                }
            }
            // What was parked may need the executor no more: then there is room for the next.
            let room = self.traffic.with_room();
            if !room.iter().any(|(target, free)| self.agenda.unpark(target, *free)) {
                break;
            }
        }
        self.publish(now);
        std::mem::take(&mut self.ready)
    }

    /// The monotonic time at which to poll next although no event came.
    pub fn next_wakeup(&self) -> Option<Duration> {
        // An event ends that, no passing of time.
        if self.idle {
            return None;
        }
        [self.agenda.next_due(), self.cycle_at].into_iter().flatten().min()
    }

    /// True once the first lists of the manager are complete.
    pub fn is_synced(&self) -> bool {
        self.jobs_listed && self.workers_listed && self.priorities_listed
    }

    fn leads(&self, now: Now) -> bool {
        self.claim
            .as_ref()
            .is_some_and(|claim| claim.expires > now.mono + LEAST_TIME)
    }

    /// Hands `request` to `target`'s executor, if it has room and there is time; `limit` is a further end of its deadline.
    ///
    /// Without room the item is parked, without time it waits for the next claim or lease, which touch it.
    fn send(
        &mut self,
        target: &Target,
        item: &Item,
        note: Note,
        request: Request,
        limit: Option<Duration>,
        now: Now,
    ) -> Option<EffectId> {
        let claim = self.claim.as_ref()?;
        if self.traffic.free(target) == 0 {
            self.agenda.park(target, item.clone());
            return None;
        }
        let end = limit.map_or(claim.expires, |limit| limit.min(claim.expires));
        let deadline = (now.mono + self.config.request_timeout).min(end);
        if deadline < now.mono + LEAST_TIME {
            self.agenda.wake(now.mono + LEAST_TIME, item.clone());
            return None;
        }
        let epoch = match target {
            Target::Manager => 0,
            Target::Worker(name) => self.workers.get(name).map_or(0, |w| w.epoch),
        };
        let flight = Flight {
            target: target.clone(),
            item: item.clone(),
            kind: request.kind(),
            sent: now.mono,
            deadline,
            note,
        };
        let id = self.traffic.depart(flight);
        self.ready.push(Effect {
            id,
            target: target.clone(),
            epoch,
            deadline,
            request,
        });
        Some(id)
    }

    /// Who we are on `worker`.
    fn ours<'a>(config: &'a Config, worker: Option<&'a Worker>) -> Ours<'a> {
        Ours {
            origin: &config.origin_hash,
            manager_uid: &config.manager_uid,
            cluster_uid: worker.and_then(Worker::pinned_uid).unwrap_or_default(),
        }
    }

    fn want_cycle(&mut self, at: Duration) {
        self.cycle_at = Some(self.cycle_at.map_or(at, |earlier| earlier.min(at)));
    }
}
