//! The lease that we hold on each worker (design 5.5): the probe that writes.

use std::sync::Arc;
use std::time::Duration;

use crate::api::Now;
use crate::api::conditions::WorkerReason;
use crate::api::names::{WORKER_LEASE_NAMESPACE, WORKER_LEASE_PREFIX};
use crate::lifecycle::absence::Absence;
use crate::lifecycle::view::LeaseView;

use super::agenda::Item;
use super::effect::{Request, Target};
use super::event::{Answer, Outcome, RefusalKind};
use super::traffic::{Flight, Note};
use super::{Dispatcher, LEAST_TIME};

impl Dispatcher {
    pub(super) fn step_worker_lease(&mut self, name: &Arc<str>, now: Now) {
        let item = Item::Worker(name.clone());
        let (duration, interval) = (self.config.worker_lease, self.config.worker_lease_renew);
        let Some(claim) = self.claim.clone() else { return };
        let Some(worker) = self.workers.get_mut(name) else {
            return;
        };
        if !worker.is_itself() {
            return;
        }
        let lease = &mut worker.lease;
        if let Some(end) = lease.expires(duration)
            && end <= now.mono
            && lease.held_since.take().is_some()
        {
            self.refresh_site(name, now);
            return self.step_worker_lease(name, now);
        }
        let due = match lease.renewed {
            Some(sent) if lease.held_since.is_some() && !lease.wanted => sent + interval,
            _ => now.mono,
        };
        let at = due.max(lease.side.not_before);
        if lease.side.inflight.is_some() {
            return;
        }
        if at > now.mono {
            self.agenda.wake(at, item);
            return;
        }
        let request = if lease.needs_namespace {
            Request::CreateNamespace {
                name: WORKER_LEASE_NAMESPACE.into(),
            }
        } else {
            Request::RenewLease {
                name: format!("{WORKER_LEASE_PREFIX}{}", self.config.origin_hash),
                holder: Holder {
                    claim: &claim.id,
                    manager_uid: &self.config.manager_uid,
                    transitions: claim.transitions,
                }
                .to_string(),
                seconds: i32::try_from(duration.as_secs()).unwrap_or(i32::MAX),
                transitions: claim.transitions,
                resource_version: lease.version,
            }
        };
        let sent = self.send(&Target::Worker(name.clone()), &item, Note::None, request, None, now);
        if let Some(worker) = self.workers.get_mut(name) {
            worker.lease.side.inflight = sent;
        }
    }

    pub(super) fn lease_landed(&mut self, name: &Arc<str>, flight: &Flight, outcome: Outcome, now: Now) {
        let retry = self.config.worker_lease_renew;
        let Some(worker) = self.workers.get_mut(name) else {
            return;
        };
        let may_create = worker.view.spec.namespaces.create;
        let lease = &mut worker.lease;
        lease.side.inflight = None;
        match outcome {
            Outcome::Done(Answer::Lease(view)) => {
                lease.side.succeeded();
                self.lease_read(name, &view, flight.sent, now);
            }
            Outcome::Done(_) => {
                lease.side.succeeded();
                lease.needs_namespace = false;
            }
            Outcome::Refused(refusal) => {
                let kind = refusal.kind;
                lease.version = None;
                lease.needs_namespace = kind == RefusalKind::NamespaceNotFound && may_create;
                if matches!(
                    kind,
                    RefusalKind::Conflict | RefusalKind::AlreadyExists | RefusalKind::ObjectNotFound
                ) || lease.needs_namespace
                {
                    lease.side.failed(now.mono, None);
                } else {
                    lease.side.failed(now.mono, Some(refusal.retry_after.unwrap_or(retry)));
                    let message = match kind {
                        RefusalKind::NamespaceNotFound => format!(
                            "namespace {WORKER_LEASE_NAMESPACE} does not exist on the worker: apply deploy/worker-role.yaml there, or set namespaces.create"
                        ),
                        _ => format!(
                            "the lease on the worker was refused ({}): {}",
                            refusal.code, refusal.message
                        ),
                    };
                    lease.obstacle = Some((WorkerReason::LeaseNotHeld.as_str(), message));
                    self.refresh_site(name, now);
                }
            }
            Outcome::Unknown { .. } => {
                // It may have been written: its version is read again.
                lease.version = None;
                lease.side.failed(now.mono, None);
            }
            Outcome::NotSent => lease.side.failed(now.mono, None),
        }
        self.agenda.touch(Item::Worker(name.clone()));
    }

    fn lease_read(&mut self, name: &Arc<str>, view: &LeaseView, sent: Duration, now: Now) {
        let Some(claim) = &self.claim else { return };
        // As long as it takes to be sure that nobody renews it: a leader lease that was deleted by hand counts its terms from 0 again.
        let patience = self.config.worker_lease.saturating_mul(3);
        let mine = Holder {
            claim: &claim.id,
            manager_uid: &self.config.manager_uid,
            transitions: claim.transitions,
        };
        let Some(worker) = self.workers.get_mut(name) else {
            return;
        };
        let lease = &mut worker.lease;
        lease.version = Some(view.resource_version);
        if view.holder == mine.to_string() {
            // Whoever was looked at since the lease ran out, or was about to, is asleep.
            let first = lease
                .expires(self.config.worker_lease)
                .is_none_or(|end| end <= now.mono + LEAST_TIME);
            lease.held_since.get_or_insert(sent);
            lease.renewed = Some(sent);
            lease.wanted = false;
            let cleared = lease.obstacle.take().is_some();
            let mut touched = Vec::new();
            for (key, mirror) in &mut worker.mirrors {
                let before = mirror.absence;
                mirror.absence.renewed(sent);
                // A proof may have been asked for after this renewal was sent: it needs another.
                lease.wanted |= matches!(mirror.absence, Absence::NotFound { .. });
                if first || before != mirror.absence {
                    touched.push(key.clone());
                }
            }
            for key in touched {
                self.touch_mirror(name, &key);
            }
            if first || cleared {
                self.refresh_site(name, now);
                self.touch_bound(name);
                self.touch_shunning(name);
            }
            return;
        }
        match Holder::parse(&view.holder) {
            Some(held) if held.manager_uid != mine.manager_uid => {
                let message = format!(
                    "another manager ({}) uses the same origin on this worker",
                    held.manager_uid
                );
                self.lease_obstructed(name, WorkerReason::OriginClash.as_str(), message, now);
            }
            Some(held)
                if held.transitions > mine.transitions
                    && !lease.stands_still(view.resource_version, now.mono, patience) =>
            {
                let message = "a later leader of this manager holds the lease on the worker".to_owned();
                self.lease_obstructed(name, WorkerReason::LeaseNotHeld.as_str(), message, now);
            }
            // An earlier leader of ours, or nobody: the next request takes it over, by the version that was just read.
            _ => {}
        }
    }

    fn lease_obstructed(&mut self, name: &Arc<str>, reason: &'static str, message: String, now: Now) {
        let retry = self.config.worker_lease;
        let Some(worker) = self.workers.get_mut(name) else {
            return;
        };
        worker.lease.version = None;
        worker.lease.side.failed(now.mono, Some(retry));
        worker.lease.obstacle = Some((reason, message));
        self.refresh_site(name, now);
    }
}

/// Who holds a worker lease: the claim, the manager, and the term of its leader lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Holder<'a> {
    claim: &'a str,
    manager_uid: &'a str,
    transitions: i32,
}

impl std::fmt::Display for Holder<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}_{}_{}", self.manager_uid, self.transitions, self.claim)
    }
}

impl<'a> Holder<'a> {
    /// None for a text that is not ours, and for the empty one of a lease that was given back.
    fn parse(text: &'a str) -> Option<Self> {
        let (manager_uid, rest) = text.split_once('_')?;
        let (transitions, claim) = rest.split_once('_')?;
        Some(Self {
            claim,
            manager_uid,
            transitions: transitions.parse().ok()?,
        })
    }
}
