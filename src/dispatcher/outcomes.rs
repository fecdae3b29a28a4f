//! How requests ended, applied to the world.

use std::sync::Arc;
use std::time::Duration;

use crate::api::Now;
use crate::api::job::Phase;
use crate::api::names::FINALIZER;
use crate::lifecycle::judge::{Owner, Verdict, judge};
use crate::lifecycle::view::JobKey;

use super::Dispatcher;
use super::agenda::Item;
use super::effect::{EffectId, Target};
use super::event::{Answer, Outcome, Refusal, RefusalKind};
use super::traffic::{Flight, Note, Side};
use super::world::{OwnerProof, Shunned};

/// A request that was never sent is decided anew after this time.
const NOT_SENT_DELAY: Duration = Duration::from_millis(100);
/// Pods that were still there are listed again after this time.
const PODS_AGAIN: Duration = Duration::from_secs(2);
/// First and longest time before a worker that refused a job is asked again.
const SHUN: (Duration, Duration) = (Duration::from_secs(2), Duration::from_mins(5));

impl Dispatcher {
    /// The request `id` has ended.
    pub(super) fn landed(&mut self, id: EffectId, outcome: Outcome, now: Now) {
        let Some(flight) = self.traffic.land(id) else { return };
        self.agenda.unpark(&flight.target, 1);
        if flight.note != Note::Event && !self.is_awaited(id, &flight) {
            // What it was for is gone, and another may have its name by now.
            if let Item::Job(key) | Item::Stray(_, key) = &flight.item {
                self.touch_strays(key);
            }
            return;
        }
        match (&flight.item, &flight.target) {
            (Item::Job(key), Target::Manager) => self.job_landed(&key.clone(), &flight, outcome, now),
            (Item::Stray(name, key), Target::Manager) => {
                self.owner_landed(&name.clone(), &key.clone(), &flight, outcome, now);
            }
            (Item::Job(key) | Item::Stray(_, key), Target::Worker(name)) => {
                self.mirror_landed(&name.clone(), &key.clone(), &flight, outcome, now);
            }
            (Item::Worker(name), Target::Manager) if flight.note != Note::Event => {
                self.worker_landed(&name.clone(), &flight, outcome, now);
            }
            (Item::Worker(_), Target::Manager) => {}
            (Item::Worker(name), Target::Worker(_)) => self.lease_landed(&name.clone(), &flight, outcome, now),
        }
    }

    /// True when the side that sent the request still waits for it.
    fn is_awaited(&self, id: EffectId, flight: &Flight) -> bool {
        let side = match (&flight.item, &flight.target) {
            (Item::Job(key), Target::Manager) => self.jobs.get(key).map(|job| &job.side),
            (Item::Stray(name, key), Target::Manager)
            | (Item::Job(key) | Item::Stray(_, key), Target::Worker(name)) => {
                let worker = self.workers.get(name);
                worker.and_then(|w| w.mirrors.get(key)).map(|mirror| &mirror.side)
            }
            (Item::Worker(name), Target::Manager) => self.workers.get(name).map(|worker| &worker.side),
            (Item::Worker(name), Target::Worker(_)) => self.workers.get(name).map(|worker| &worker.lease.side),
        };
        side.is_some_and(|side| side.inflight == Some(id))
    }

    // === jobs ===

    fn job_landed(&mut self, key: &JobKey, flight: &Flight, outcome: Outcome, now: Now) {
        let Some(job) = self.jobs.get_mut(key) else { return };
        let follows = flight.kind == "write_job_status";
        match outcome {
            Outcome::Done(Answer::Job(view)) => {
                job.side.succeeded();
                // A watch may be faster than an answer: a reason that was found meanwhile is not what this write told.
                if view.status.phase != Phase::Queued || view.status.waiting == job.waiting {
                    job.waiting = None;
                }
                self.job_seen(*view, now);
                if follows {
                    self.followed(key, now);
                }
            }
            // The last finalizer of a deleted job: it is gone.
            Outcome::Done(_) if job.view.deleted.is_some() && job.view.finalizers.iter().all(|f| f == FINALIZER) => {
                self.forget_job(key, now);
            }
            Outcome::Done(_) => job.side.outdated(now.mono),
            Outcome::Refused(refusal) if refusal.kind == RefusalKind::ObjectNotFound => self.forget_job(key, now),
            other => settle(&mut job.side, flight, &other, now),
        }
        self.agenda.touch(flight.item.clone());
    }

    /// The GET of the job that a stray mirror names.
    fn owner_landed(&mut self, name: &Arc<str>, key: &JobKey, flight: &Flight, outcome: Outcome, now: Now) {
        let Some(mirror) = self.workers.get_mut(name).and_then(|w| w.mirrors.get_mut(key)) else {
            return;
        };
        mirror.side.inflight = None;
        match outcome {
            Outcome::Done(Answer::Job(view)) => {
                mirror.side.succeeded();
                self.job_seen(*view, now);
            }
            Outcome::Refused(refusal) if refusal.kind == RefusalKind::ObjectNotFound => {
                mirror.side.succeeded();
                mirror.owner = OwnerProof::NotFound(flight.sent);
            }
            other => settle(&mut mirror.side, flight, &other, now),
        }
        self.agenda.touch(flight.item.clone());
    }

    // === mirrors ===

    fn mirror_landed(&mut self, name: &Arc<str>, key: &JobKey, flight: &Flight, outcome: Outcome, now: Now) {
        let Some(mirror) = self.workers.get_mut(name).and_then(|w| w.mirrors.get_mut(key)) else {
            return;
        };
        match outcome {
            Outcome::Done(answer) => {
                mirror.side.succeeded();
                self.mirror_answered(name, key, flight, answer, now);
            }
            Outcome::Refused(refusal) => self.mirror_refused(name, key, flight, &refusal, now),
            other => settle(&mut mirror.side, flight, &other, now),
        }
        self.touch_mirror(name, key);
        if matches!(flight.note, Note::Probe(_)) {
            self.agenda.touch(Item::Job(key.clone()));
        }
    }

    fn mirror_answered(&mut self, name: &Arc<str>, key: &JobKey, flight: &Flight, answer: Answer, now: Now) {
        if let Note::Probe(uid) = &flight.note {
            self.forgive(name, key, uid, now);
            return;
        }
        let Some(mirror) = self.workers.get_mut(name).and_then(|w| w.mirrors.get_mut(key)) else {
            return;
        };
        match answer {
            Answer::Mirror(view) => {
                let asleep = view.state.asleep;
                self.mirror_seen(name, *view, flight.sent, now);
                match flight.note {
                    Note::Attempt(_) if !asleep => self.cannot_sleep(name, key, now),
                    Note::Read => self.mirror_read(name, key, flight.sent, now),
                    _ => {}
                }
                if flight.kind == "release_mirror" {
                    self.released(key, now);
                }
            }
            Answer::Pods(live) => mirror.absence.pods(live, now.mono + PODS_AGAIN),
            _ if flight.kind == "create_namespace" => mirror.needs_namespace = false,
            // The delete was accepted: no second one while the watch has not shown it.
            _ => {
                if let Some(view) = &mut mirror.view {
                    view.deleting = true;
                }
            }
        }
    }

    /// A GET showed what has the job's name: perhaps not what was recorded, perhaps nobody we know.
    fn mirror_read(&mut self, name: &Arc<str>, key: &JobKey, asked: Duration, now: Now) {
        self.pay_debt(name, key, now);
        let Some(job) = self.jobs.get(key).filter(|job| job.bound_to.as_ref() == Some(name)) else {
            return;
        };
        let Some(worker) = self.workers.get_mut(name) else {
            return;
        };
        let Some(mirror) = worker.mirrors.get_mut(key) else {
            return;
        };
        let (Some(view), Some(assignment)) = (&mirror.view, &job.view.status.assignment) else {
            return;
        };
        let ours = view.identity.as_ref().is_some_and(|id| *id.job_uid == *job.view.uid);
        if assignment
            .mirror_uid
            .as_deref()
            .map_or(!ours, |recorded| *recorded != *view.uid)
        {
            mirror.absence.not_found(asked);
        }
        self.shun_taken(key, now);
    }

    /// The name of an attempt that is not recorded is held by an object that is not its mirror: the worker is not used for this job for a while.
    ///
    /// Such an object may be known before anything was sent there: one with a copy of our label is in the watch.
    pub(super) fn shun_taken(&mut self, key: &JobKey, now: Now) {
        let Some(job) = self.jobs.get(key) else { return };
        let unrecorded = |a: &&crate::api::job::Assignment| a.mirror_uid.is_none() && a.revoking.is_none();
        let (Some(name), Some(assignment)) = (&job.bound_to, job.view.status.assignment.as_ref().filter(unrecorded))
        else {
            return;
        };
        let uid = assignment.cluster_uid.clone();
        if job
            .shunned
            .get(&*uid)
            .is_some_and(|s| !s.forgiven && s.probe_at > now.mono)
        {
            return;
        }
        let worker = self.workers.get(name);
        let Some(view) = worker.and_then(|w| w.mirrors.get(key)).and_then(|m| m.view.as_ref()) else {
            return;
        };
        let message = match judge(Self::ours(&self.config, worker), Owner::Exists(&job.view), view) {
            Verdict::Stranger => format!("{key} is taken by an object that is not ours (uid {})", view.uid),
            Verdict::Dying => format!("{key} is held by an object that is being deleted (uid {})", view.uid),
            Verdict::Orphan => format!("{key} is held by an object of an earlier job (uid {})", view.uid),
            _ => return,
        };
        self.shun(key, &uid, "NameTaken", message, now);
    }

    fn mirror_refused(&mut self, name: &Arc<str>, key: &JobKey, flight: &Flight, refusal: &Refusal, now: Now) {
        use RefusalKind::{
            AlreadyExists, Busy, Conflict, Forbidden, Invalid, NamespaceNotFound, ObjectNotFound, OtherNotFound, Server,
        };
        let Some(worker) = self.workers.get_mut(name) else {
            return;
        };
        let pinned = worker.pinned_uid().unwrap_or_default().to_owned();
        let may_create = worker.view.spec.namespaces.create;
        let Some(mirror) = worker.mirrors.get_mut(key) else {
            return;
        };
        if let Note::Probe(uid) = &flight.note {
            mirror.side.succeeded();
            if refusal.kind == Busy {
                mirror.side.failed(now.mono, refusal.retry_after);
            } else if refusal.kind == NamespaceNotFound && may_create {
                self.forgive(name, key, &uid.clone(), now);
            } else {
                let (reason, message) = refused_because(refusal, key);
                self.shun(key, &uid.clone(), reason, message, now);
            }
            return;
        }
        let creating = matches!(flight.note, Note::Attempt(_)) || flight.kind == "create_namespace";
        match refusal.kind {
            ObjectNotFound if flight.note == Note::Read => {
                mirror.side.succeeded();
                mirror.vanish(flight.sent);
                mirror.absence.not_found(flight.sent);
                self.pay_debt(name, key, now);
            }
            ObjectNotFound | Conflict => mirror.side.outdated(now.mono),
            AlreadyExists if creating => mirror.side.outdated(now.mono),
            NamespaceNotFound if creating && may_create && !mirror.needs_namespace => {
                mirror.side.succeeded();
                mirror.needs_namespace = true;
            }
            Invalid | Forbidden | NamespaceNotFound | OtherNotFound | Server if creating => {
                mirror.side.succeeded();
                let (reason, message) = refused_because(refusal, key);
                let present = self.jobs.get(key).and_then(|j| j.view.status.assignment.as_ref());
                let number = match flight.note {
                    Note::Attempt(number) => number,
                    _ => present.map_or(0, |a| a.number),
                };
                mirror.refused = Some((number, message.clone()));
                self.shun(key, &pinned, reason, message, now);
            }
            Invalid => {
                mirror.side.outdated(now.mono);
                mirror.side.failed(now.mono, None);
            }
            _ => mirror.side.failed(now.mono, refusal.retry_after),
        }
    }

    /// The worker woke the mirror itself: it takes no jobs of that kind while this connection lasts.
    fn cannot_sleep(&mut self, name: &Arc<str>, key: &JobKey, now: Now) {
        let Some(kind) = self
            .jobs
            .get(key)
            .and_then(|job| job.template.as_ref().ok())
            .map(|t| t.kind)
        else {
            return;
        };
        let Some(worker) = self.workers.get_mut(name) else {
            return;
        };
        worker.sleepless.insert(kind);
        let pinned = worker.pinned_uid().unwrap_or_default().to_owned();
        self.refresh_site(name, now);
        self.shun(
            key,
            &pinned,
            "CannotSleep",
            format!("the worker woke the {kind} that was created asleep"),
            now,
        );
    }

    /// The worker at `uid` is not used for this job until a dry run says that it would take it.
    fn shun(&mut self, key: &JobKey, uid: &str, reason: &'static str, message: String, now: Now) {
        let Some(job) = self.jobs.get_mut(key) else { return };
        let failures = job.shunned.get(uid).map_or(0, |s| s.failures + 1);
        let delay = SHUN.0.saturating_mul(1 << failures.min(10)).min(SHUN.1);
        job.shunned.insert(
            uid.into(),
            Shunned {
                reason,
                message,
                probe_at: now.mono + delay,
                failures,
                forgiven: false,
            },
        );
        self.agenda.wake(now.mono + delay, Item::Job(key.clone()));
        self.enqueue(key, now);
    }

    /// A dry run said that the worker would take the job.
    fn forgive(&mut self, name: &Arc<str>, key: &JobKey, uid: &str, now: Now) {
        if let Some(shunned) = self.jobs.get_mut(key).and_then(|job| job.shunned.get_mut(uid)) {
            shunned.forgiven = true;
        }
        // What had the name there is not watched: it was read once, and it is gone.
        if let Some(mirror) = self.workers.get_mut(name).and_then(|w| w.mirrors.get_mut(key))
            && mirror.view.as_ref().is_some_and(|v| v.identity.is_none())
        {
            mirror.view = None;
        }
        self.enqueue(key, now);
    }

    fn released(&mut self, key: &JobKey, now: Now) {
        if let Some(job) = self.jobs.get(key) {
            let queued = crate::lifecycle::news::queued_at(&job.view);
            let waited = now.wall.duration_since(queued);
            self.latencies.push(Duration::try_from(waited).unwrap_or_default());
        }
        self.notice_released(key);
    }
}

/// What every failed request does to its side.
pub(super) fn settle(side: &mut Side, flight: &Flight, outcome: &Outcome, now: Now) {
    match outcome {
        Outcome::Done(_) => side.succeeded(),
        Outcome::NotSent => {
            side.inflight = None;
            side.not_before = now.mono + NOT_SENT_DELAY;
        }
        Outcome::Unknown { .. } if flight.note.changes_nothing() => side.failed(now.mono, None),
        Outcome::Unknown { .. } => side.unknown(now.mono, flight.deadline),
        Outcome::Refused(refusal) => match refusal.kind {
            RefusalKind::Conflict | RefusalKind::ObjectNotFound => side.outdated(now.mono),
            RefusalKind::Invalid => {
                side.outdated(now.mono);
                side.failed(now.mono, None);
            }
            _ => side.failed(now.mono, refusal.retry_after),
        },
    }
}

/// The reason's class and the sentence for a mirror that was refused.
fn refused_because(refusal: &Refusal, key: &JobKey) -> (&'static str, String) {
    let reason = match refusal.kind {
        RefusalKind::NamespaceNotFound => "NamespaceMissing",
        RefusalKind::AlreadyExists => "NameTaken",
        RefusalKind::OtherNotFound => "KindNotServed",
        _ => "Refused",
    };
    let message = match refusal.kind {
        RefusalKind::NamespaceNotFound => format!(
            "namespace {} does not exist there, and namespaces.create is false",
            key.namespace
        ),
        _ => format!("the worker refused it ({}): {}", refusal.code, refusal.message),
    };
    (reason, message)
}
