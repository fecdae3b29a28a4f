//! Requests on their way: they arrive, are answered, are lost on either leg, and arrive although nobody waits for them any more.

use std::sync::Arc;

use multikueue::dispatcher::{Effect, Event, Outcome, RefusalKind, Request, Target};
use multikueue::lifecycle::view::JobKey;

use crate::operator::SLOTS;
use crate::refusal::refuse;
use crate::trace::{describe_effect, describe_outcome};
use crate::worker::Road;
use crate::world::{Ms, Occurrence, SECOND, World};

/// How a request fares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// It arrives and its answer comes back.
    Through,
    /// It never arrives.
    LostBefore,
    /// It arrives some time before its deadline; its answer is lost, perhaps before it even arrives.
    LostAfter,
    /// Something answers in its place.
    Refused(RefusalKind),
    /// The executor does not send it.
    NotSent,
}

pub struct Flight {
    pub generation: u32,
    pub effect: Effect,
    pub deadline: Ms,
    /// It does not arrive before.
    pub hold: Ms,
    answer_lost: bool,
    arrived: bool,
    /// The operator knows how it ended, as far as it ever will.
    settled: bool,
    result: Option<Outcome>,
}

/// The object that a request is about: at most one such request is under way per side.
pub fn subject(request: &Request) -> Option<&JobKey> {
    match request {
        Request::GetJob { key }
        | Request::SetJobFinalizers { key, .. }
        | Request::WriteJobStatus { key, .. }
        | Request::CreateMirror { key, .. }
        | Request::GetMirror { key, .. }
        | Request::JsonPatchMirror { key, .. }
        | Request::MergePatchMirror { key, .. }
        | Request::DeleteMirror { key, .. } => Some(key),
        _ => None,
    }
}

/// The job that a write on the manager is for: another one of its name is another object.
fn uid_of(request: &Request) -> Option<Arc<str>> {
    match request {
        Request::SetJobFinalizers { uid, .. } | Request::WriteJobStatus { uid, .. } => Some(Arc::clone(uid)),
        _ => None,
    }
}

/// Changes nothing on any server.
pub fn is_read(request: &Request) -> bool {
    matches!(
        request,
        Request::GetJob { .. }
            | Request::GetMirror { .. }
            | Request::GetWorkerCluster { .. }
            | Request::ListPods { .. }
            | Request::CreateMirror { dry_run: true, .. }
    )
}

impl World {
    /// An executor takes a request.
    pub fn launch(&mut self, effect: Effect) {
        let Some(operator) = &self.operator else { return };
        let generation = operator.generation;
        let id = id_of(generation, effect.id.0);
        let deadline = operator.world_time(effect.deadline);
        let lease = matches!(effect.request, Request::RenewLease { .. });
        self.trace.note(self.now, || {
            format!("#{} {}", self.sent + u64::from(!lease), describe_effect(&effect))
        });
        self.check_rules(&effect);
        self.count(&effect);

        let number = self.sent;
        let way = if self.is_connected(&effect) {
            let wish = self
                .oracle
                .as_mut()
                .filter(|_| !lease)
                .and_then(|oracle| oracle(number, &effect));
            wish.unwrap_or_else(|| self.draw_way())
        } else {
            Way::NotSent
        };
        self.take_off(id, generation, effect, deadline, way);
        if !lease
            && self.after_sent.as_ref().is_some_and(|(at, _)| *at == number)
            && let Some((_, blow)) = self.after_sent.take()
        {
            blow(self);
        }
    }

    /// What is promised of every request: its deadline, the claim, the slots, and one at a time per object.
    fn check_rules(&mut self, effect: &Effect) {
        let Some(operator) = &mut self.operator else { return };
        let target = effect.target.clone();
        let mono = operator.mono(self.now);
        assert!(mono < operator.claim.expires, "sent without a claim: {effect:?}");
        assert!(
            effect.deadline <= operator.claim.expires,
            "may be in flight after the claim: {effect:?}"
        );
        assert!(effect.deadline > mono, "its deadline is past: {effect:?}");
        assert!(
            effect.deadline <= mono + self.config.request_timeout,
            "its deadline is too far: {effect:?}"
        );
        let used = operator.in_flight.entry(target.clone()).or_insert(0);
        *used += 1;
        assert!(*used <= SLOTS, "more than {SLOTS} requests at once to {target:?}");
        if let Some(key) = subject(&effect.request) {
            let side = (target.clone(), key.clone(), uid_of(&effect.request));
            let before = operator.busy.insert(side.clone(), effect.id);
            // Mirrors of one name on two workers may each ask for their job.
            let reads = matches!(effect.request, Request::GetJob { .. });
            assert!(
                before.is_none() || reads,
                "two requests at once for {key} at {target:?}: {before:?} and {effect:?}"
            );
            let read = is_read(&effect.request);
            let doubt = operator.doubtful.contains(&side);
            assert!(
                !doubt || read,
                "a write was lost, and the next request for {key} at {target:?} is no GET: {effect:?}"
            );
            if matches!(effect.request, Request::GetJob { .. } | Request::GetMirror { .. }) {
                operator.doubtful.retain(|(at, of, _)| *at != target || of != key);
            }
        }
    }

    fn is_connected(&self, effect: &Effect) -> bool {
        match &effect.target {
            Target::Manager => true,
            Target::Worker(name) => {
                let worker = self.worker_of(name);
                let link = self.operator.as_ref().map(|operator| &operator.links[worker]);
                link.is_some_and(|link| link.up && link.epoch == effect.epoch)
            }
        }
    }

    fn count(&mut self, effect: &Effect) {
        if matches!(effect.request, Request::RenewLease { .. }) {
            return;
        }
        self.sent += 1;
        assert!(
            self.sent < 20_000,
            "a hot loop: 20,000 requests in a world of a few jobs"
        );
        if !is_read(&effect.request) {
            self.last_write = self.now;
            if let Some(key) = subject(&effect.request) {
                let (manager, worker) = self.writes.entry(key.clone()).or_default();
                *if effect.target == Target::Manager {
                    manager
                } else {
                    worker
                } += 1;
            }
        }
    }

    fn take_off(&mut self, id: u64, generation: u32, effect: Effect, deadline: Ms, way: Way) {
        let mut flight = Flight {
            generation,
            effect,
            deadline,
            hold: 0,
            answer_lost: false,
            arrived: false,
            settled: false,
            result: None,
        };
        let leg = self.leg();
        match way {
            Way::Through => self.after(leg, Occurrence::Arrive(id)),
            Way::LostBefore => {}
            Way::LostAfter => {
                flight.answer_lost = true;
                let when = self.rng.between(self.now + 1, deadline.max(self.now + 1));
                self.at(when, Occurrence::Arrive(id));
            }
            Way::Refused(kind) => {
                flight.arrived = true;
                flight.result = Some(Outcome::Refused(refuse(kind, "not now")));
                self.after(leg, Occurrence::Answer(id));
            }
            Way::NotSent => {
                flight.arrived = true;
                flight.result = Some(Outcome::NotSent);
                self.after(leg, Occurrence::Answer(id));
            }
        }
        if matches!(way, Way::LostBefore | Way::LostAfter) && self.rng.chance(self.weather.early) {
            let when = self.rng.between(self.now + 1, deadline.max(self.now + 1));
            self.at(when, Occurrence::Break(id));
        }
        self.at(deadline, Occurrence::Expire(id));
        self.flights.insert(id, flight);
    }

    fn draw_way(&mut self) -> Way {
        let weather = self.weather;
        if self.rng.chance(weather.lost_before) {
            Way::LostBefore
        } else if self.rng.chance(weather.lost_after) {
            Way::LostAfter
        } else if self.rng.chance(weather.refused) {
            Way::Refused(
                self.rng
                    .pick(&[RefusalKind::Busy, RefusalKind::Server, RefusalKind::OtherNotFound]),
            )
        } else if self.rng.chance(weather.not_sent) {
            Way::NotSent
        } else {
            Way::Through
        }
    }

    fn leg(&mut self) -> Ms {
        if self.rng.chance(self.weather.slow) {
            self.rng.between(50, 6 * SECOND)
        } else {
            self.rng.between(1, 8)
        }
    }

    fn road(&self, target: &Target) -> Road {
        match target {
            Target::Manager if self.manager_away => Road::BlackHole,
            Target::Manager => Road::Open,
            Target::Worker(name) => self
                .workers
                .iter()
                .find(|worker| worker.name == *name)
                .map_or(Road::BlackHole, |worker| worker.road),
        }
    }

    pub fn arrive(&mut self, id: u64) {
        let leg = self.leg();
        let Some(flight) = self.flights.get_mut(&id) else {
            return;
        };
        if flight.arrived {
            return;
        }
        if flight.hold > self.now {
            let hold = flight.hold;
            self.at(hold, Occurrence::Arrive(id));
            return;
        }
        flight.arrived = true;
        let (generation, effect, lost) = (flight.generation, flight.effect.clone(), flight.answer_lost);
        match self.road(&effect.target) {
            Road::Open => {}
            Road::Cut => {
                self.after(leg, Occurrence::Break(id));
                return;
            }
            Road::BlackHole => return,
        }
        let outcome = self.commit(generation, &effect);
        self.trace.note(self.now, || {
            format!(
                "    commit {}#{} {}",
                effect.request.kind(),
                effect.id.0,
                describe_outcome(&outcome)
            )
        });
        if let Some(flight) = self.flights.get_mut(&id)
            && !lost
        {
            flight.result = Some(outcome);
            self.after(leg, Occurrence::Answer(id));
        }
    }

    pub fn answer(&mut self, id: u64) {
        let Some(flight) = self.flights.get_mut(&id) else {
            return;
        };
        let Some(outcome) = flight.result.take() else { return };
        let target = flight.effect.target.clone();
        match self.road(&target) {
            Road::Open => self.land(id, outcome),
            _ if matches!(outcome, Outcome::NotSent) => self.land(id, outcome),
            Road::Cut => self.break_off(id),
            Road::BlackHole => {}
        }
    }

    pub fn break_off(&mut self, id: u64) {
        self.land(
            id,
            Outcome::Unknown {
                message: "connection reset".into(),
            },
        );
    }

    /// The deadline: nobody waits any more, and nothing arrives any more.
    pub fn expire(&mut self, id: u64) {
        self.land(
            id,
            Outcome::Unknown {
                message: "deadline exceeded".into(),
            },
        );
        self.flights.remove(&id);
    }

    /// The connections to a worker are gone, and what was under way on them with its answers; some of it still arrives.
    pub fn break_all(&mut self, target: &Target) {
        let all: Vec<u64> = self
            .flights
            .iter()
            .filter(|(_, flight)| !flight.settled && flight.effect.target == *target)
            .map(|(id, _)| *id)
            .collect();
        for id in all {
            let delay = self.leg();
            self.after(delay, Occurrence::Break(id));
        }
    }

    fn land(&mut self, id: u64, outcome: Outcome) {
        let Some(flight) = self.flights.get_mut(&id) else {
            return;
        };
        if std::mem::replace(&mut flight.settled, true) {
            return;
        }
        let Some(operator) = &mut self.operator else { return };
        if operator.generation != flight.generation {
            return;
        }
        let effect = &flight.effect;
        if let Some(used) = operator.in_flight.get_mut(&effect.target) {
            *used -= 1;
        }
        if let Some(key) = subject(&effect.request) {
            let side = (effect.target.clone(), key.clone(), uid_of(&effect.request));
            operator.busy.remove(&side);
            if matches!(outcome, Outcome::Unknown { .. }) && !is_read(&effect.request) {
                operator.doubtful.insert(side);
            }
        }
        let id = effect.id;
        self.tell(Event::Outcome { id, outcome });
    }

    pub fn worker_of(&self, name: &Arc<str>) -> usize {
        self.workers
            .iter()
            .position(|worker| worker.name == *name)
            .expect("a worker of that name")
    }
}

/// Effects are numbered anew by every process.
fn id_of(generation: u32, id: u64) -> u64 {
    (u64::from(generation) << 40) | id
}
