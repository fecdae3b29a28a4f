//! A process of the operator: the real core, and a model of the rim around it: claim, watches, connections, executors.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use multikueue::dispatcher::event::{Access, Claim};
use multikueue::dispatcher::{Dispatcher, EffectId, Event, LinkEvent, Target, WorkerEvent};
use multikueue::lifecycle::view::JobKey;

use crate::trace::describe_event;
use crate::watches::{Channel, Source};
use crate::worker::Road;
use crate::world::{Ms, Occurrence, SECOND, World};

/// Requests that an executor has under way at once.
pub const SLOTS: usize = 4;

/// What requests are about: a side, a key, and the uid where the request names one.
pub type Object = (Target, JobKey, Option<Arc<str>>);

/// The connection to a worker.
#[derive(Debug, Clone, Default)]
pub struct Link {
    pub epoch: u64,
    pub up: bool,
    pub known: bool,
}

pub struct Operator {
    pub generation: u32,
    core: Dispatcher,
    started: Ms,
    pub claim: Claim,
    pub channels: Vec<Channel>,
    pub next_channel: u64,
    pub links: Vec<Link>,
    pub in_flight: BTreeMap<Target, usize>,
    /// The request under way, by side and job.
    pub busy: BTreeMap<Object, EffectId>,
    /// Sides and jobs whose last write ended as unknown.
    pub doubtful: BTreeSet<Object>,
    touched: bool,
    token: u64,
    idle_wakes: u32,
}

impl Operator {
    /// Its monotonic clock, which has nothing to do with that of another process.
    pub fn mono(&self, now: Ms) -> Duration {
        Duration::from_millis(now - self.started) + Duration::from_secs(1000 * u64::from(self.generation))
    }

    pub fn world_time(&self, mono: Duration) -> Ms {
        let since = mono.saturating_sub(Duration::from_secs(1000 * u64::from(self.generation)));
        self.started + since.as_nanos().div_ceil(1_000_000) as Ms
    }
}

impl World {
    // --- life of the process ---

    pub fn start_operator(&mut self) {
        if self.operator.is_some() {
            return;
        }
        self.generation += 1;
        let generation = self.generation;
        self.trace.note(self.now, || format!("operator {generation} starts"));
        self.operator = Some(Operator {
            generation,
            core: Dispatcher::new(self.config.clone()),
            started: self.now,
            claim: Claim {
                id: format!("claim{generation}").into(),
                transitions: generation as i32,
                renewed: Duration::ZERO,
                expires: Duration::ZERO,
            },
            channels: Vec::new(),
            next_channel: 0,
            links: vec![Link::default(); self.workers.len()],
            in_flight: BTreeMap::new(),
            busy: BTreeMap::new(),
            doubtful: BTreeSet::new(),
            touched: false,
            token: 0,
            idle_wakes: 0,
        });
        self.renew_claim();
        self.grant(Target::Manager);
        self.tell(Event::PriorityClasses {
            values: BTreeMap::new(),
            default: 0,
        });
        self.open(Source::Clusters, 0);
        self.open(Source::Jobs, 0);
    }

    /// The process dies. What it sent is on its way, some of it for long.
    pub fn crash(&mut self, back_after: Ms) {
        if self.operator.take().is_none() {
            return;
        }
        self.trace.note(self.now, || "operator crashes".to_owned());
        let ids: Vec<u64> = self.flights.keys().copied().collect();
        for id in ids {
            let late = self.rng.chance(500) && self.weather.slow > 0;
            let until = self.flights[&id].deadline;
            if late {
                let hold = self.rng.between(self.now, until.max(self.now));
                if let Some(flight) = self.flights.get_mut(&id) {
                    flight.hold = hold;
                }
            }
        }
        self.after(back_after, Occurrence::Start);
    }

    pub fn renew_claim(&mut self) {
        let length = self.claim_length;
        let Some(operator) = &mut self.operator else { return };
        let generation = operator.generation;
        if self.manager_away {
            self.after(length / 10, Occurrence::RenewClaim { generation });
            return;
        }
        // The renewal's way there and back takes no time here: it is sent when it is told.
        operator.claim.renewed = operator.mono(self.now);
        operator.claim.expires = operator.claim.renewed + Duration::from_millis(length);
        let claim = operator.claim.clone();
        self.tell(Event::Claim(claim));
        self.after(length / 3, Occurrence::RenewClaim { generation });
    }

    pub fn tell(&mut self, event: Event) {
        let now = self.clock();
        self.trace.note(self.now, || describe_event(&event));
        if let Some(operator) = &mut self.operator {
            operator.core.handle(event, now);
            operator.touched = true;
        }
    }

    pub fn wake(&mut self, token: u64) {
        if let Some(operator) = &mut self.operator
            && operator.token == token
        {
            operator.touched = true;
            operator.idle_wakes += 1;
            assert!(
                operator.idle_wakes < 500,
                "the core asks to be woken again and again, and sends nothing"
            );
        }
    }

    /// Takes the effects that are due, and sets the alarm.
    pub fn pump(&mut self) {
        let now = self.clock();
        let Some(operator) = &mut self.operator else { return };
        if !std::mem::take(&mut operator.touched) {
            return;
        }
        let generation = operator.generation;
        let effects = operator.core.poll(now);
        if !effects.is_empty() {
            operator.idle_wakes = 0;
        }
        for effect in effects {
            if self
                .operator
                .as_ref()
                .is_none_or(|operator| operator.generation != generation)
            {
                return;
            }
            self.launch(effect);
        }
        let Some(operator) = &mut self.operator else { return };
        operator.token += 1;
        if let Some(at) = operator.core.next_wakeup() {
            let when = operator.world_time(at).max(self.now + 1);
            let token = operator.token;
            self.at(when, Occurrence::Wake { generation, token });
        }
    }

    /// Tells the core how many requests an executor can have in flight.
    fn grant(&mut self, target: Target) {
        self.tell(Event::Slots { target, limit: SLOTS });
    }

    // --- connections ---

    /// The rim looks at the connection to a worker.
    pub fn link(&mut self, worker: usize) {
        let open = self.workers[worker].road == Road::Open;
        let retry = self.rng.between(SECOND, 15 * SECOND);
        let Some(operator) = &mut self.operator else { return };
        let generation = operator.generation;
        let link = &mut operator.links[worker];
        if !link.known {
            return;
        }
        let target = Target::Worker(Arc::clone(&self.workers[worker].name));
        match (link.up, open) {
            (true, true) => {}
            (false, true) => {
                link.epoch += 1;
                link.up = true;
                let epoch = link.epoch;
                let cluster_uid = Arc::clone(&self.workers[worker].cluster_uid);
                let version = "v1.37.2".to_owned();
                self.tell_worker(worker, epoch, WorkerEvent::Link(LinkEvent::Up { cluster_uid, version }));
                let access = Access {
                    kinds: ["batch/v1/Job".to_owned()].into(),
                    ..Access::default()
                };
                self.tell_worker(worker, epoch, WorkerEvent::Access(access));
                self.tell_worker(worker, epoch, WorkerEvent::RuntimeClasses(BTreeMap::new()));
                self.grant(target);
                self.open(Source::Nodes(worker), epoch);
                self.open(Source::Pods(worker), epoch);
                self.open(Source::Mirrors(worker), epoch);
            }
            (was_up, false) => {
                if was_up || link.epoch == 0 {
                    link.epoch = link.epoch.max(1);
                    link.up = false;
                    let epoch = link.epoch;
                    self.close(worker);
                    let down = LinkEvent::Down {
                        reason: "Unreachable".into(),
                        message: "connection timed out".into(),
                    };
                    self.tell_worker(worker, epoch, WorkerEvent::Link(down));
                    self.break_all(&target);
                }
                self.after(retry, Occurrence::Link { generation, worker });
            }
        }
    }

    pub fn tell_worker(&mut self, worker: usize, epoch: u64, event: WorkerEvent) {
        let name = Arc::clone(&self.workers[worker].name);
        self.tell(Event::Worker { name, epoch, event });
    }

    /// Ends the watches of a worker; now and then something of them is still on its way.
    pub fn close(&mut self, worker: usize) {
        let Some(operator) = &mut self.operator else { return };
        let generation = operator.generation;
        let mut closed = Vec::new();
        operator.channels.retain_mut(|channel| {
            let keep = channel.source.worker() != Some(worker);
            if !keep {
                closed.push((channel.source, channel.epoch, channel.list.pop_front(), channel.cursor));
            }
            keep
        });
        for (source, epoch, listed, cursor) in closed {
            let event = listed.or_else(|| (cursor < self.length(source)).then(|| self.change(source, cursor, epoch)));
            if let Some(event) = event
                && self.weather.slow > 0
                && self.rng.chance(300)
            {
                let delay = self.rng.between(1, 30 * SECOND);
                self.after(
                    delay,
                    Occurrence::Stray {
                        generation,
                        event: Box::new(event),
                    },
                );
            }
        }
    }
}
