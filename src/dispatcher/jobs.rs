//! One job's next effects: what `lifecycle` decides, sent.

use std::sync::Arc;
use std::time::Duration;

use crate::api::conditions::JobReason;
use crate::api::job::Phase;
use crate::api::{MirrorIdentity, Now, RawJson};
use crate::lifecycle::news;
use crate::lifecycle::nonce::Wrote;
use crate::lifecycle::step::{ManagerStep, Situation, Step, WorkerSide, WorkerStep, step};
use crate::lifecycle::view::JobKey;
use crate::workload::{MirrorInput, TemplateKind};

use super::Dispatcher;
use super::agenda::Item;
use super::effect::{Request, Target};
use super::traffic::Note;
use super::world::Worker;

/// A change of the raw status alone is written at most this often.
const FOLLOW_INTERVAL: Duration = Duration::from_secs(10);

impl Dispatcher {
    /// Sends what the job needs next, on the manager or on its worker.
    ///
    /// One side at a time: while a write on the manager is under way, or what we know of the job is in doubt, nothing is sent to its worker.
    pub(super) fn step_job(&mut self, key: &JobKey, now: Now) {
        let item = Item::Job(key.clone());
        let Some(job) = self.jobs.get(key) else { return };
        if !job.side.ready(now.mono) {
            if job.side.inflight.is_none() {
                self.agenda.wake(job.side.not_before, item);
            }
            return;
        }
        if job.side.verify {
            let request = Request::GetJob { key: key.clone() };
            let sent = self.send(&Target::Manager, &item, Note::Read, request, None, now);
            if let Some(job) = self.jobs.get_mut(key) {
                job.side.inflight = sent;
            }
            return;
        }
        self.shun_taken(key, now);
        let Some(next) = self.decide(key, now) else { return };
        if let Some(after) = next.wake {
            self.agenda.wake(now.mono + after, item.clone());
        }
        match (next.manager, next.worker) {
            (Some(ManagerStep::Owe), _) => self.owe(key, now),
            (Some(step), _) => self.send_manager_step(key, step, now),
            (None, Some(step)) => self.send_worker_step(key, step, now),
            (None, None) => {
                self.forget_finished_mirror(key);
                // Time alone may let a worker back in.
                self.enqueue(key, now);
                self.probe_shunned(key, now);
            }
        }
    }

    fn decide(&self, key: &JobKey, now: Now) -> Option<Step> {
        let job = self.jobs.get(key)?;
        let worker = job.bound_to.as_ref().and_then(|name| self.workers.get(name));
        let mirror = worker.and_then(|w| w.mirrors.get(key));
        let number = job.view.status.assignment.as_ref().map_or(0, |a| a.number);
        let missing_class = match (&job.view.spec.priority_class_name, self.priority(job)) {
            (Some(name), None) if job.is_queued() && self.priorities_listed => Some(format!(
                "spec.priorityClassName: the manager has no PriorityClass {name:?}; create it or name another"
            )),
            _ => None,
        };
        let situation = Situation {
            job: &job.view,
            template: match (&job.template, &missing_class) {
                (Err(message), _) => Err((JobReason::InvalidTemplate, message)),
                (Ok(_), Some(message)) => Err((JobReason::PriorityClassNotFound, message)),
                (Ok(_), None) => Ok(()),
            },
            plan: job.plan.as_ref(),
            waiting: job.waiting.as_ref(),
            follow_due: job.follow_at <= now.mono,
            claim: self.claim.as_ref().map_or("", |c| &c.id),
            ours: Self::ours(&self.config, worker),
            worker: worker.map_or_else(
                || WorkerSide {
                    owed: job.owed,
                    ..WorkerSide::default()
                },
                |worker| WorkerSide {
                    in_use: worker.duplicate_of.is_none(),
                    leaving: worker.view.deleted.is_some(),
                    lost_since: worker.lost_since,
                    readable: worker.readable(),
                    writable: worker.readable()
                        && worker
                            .lease
                            .expires(self.config.worker_lease)
                            .is_some_and(|end| end > now.mono + super::LEAST_TIME),
                    mirror: mirror.and_then(|m| m.view.as_ref()),
                    absence: mirror.map(|m| m.absence).unwrap_or_default(),
                    verify: mirror.is_some_and(|m| m.side.verify),
                    refused: mirror
                        .and_then(|m| m.refused.as_ref())
                        .filter(|(n, _)| *n == number)
                        .map(|(_, why)| &**why),
                    pods_started: mirror.is_some_and(super::world::Mirror::pods_started),
                    owed: job.owed,
                },
            ),
            now,
        };
        let next = step(&situation);
        if job.follow_at > now.mono
            && next.manager.is_none()
            && mirror
                .and_then(|m| m.view.as_ref())
                .is_some_and(|v| news::raw_differs(job.view.status.mirror_status.as_ref(), v.raw_status.as_ref()))
            && job.view.status.phase == Phase::Running
        {
            let wake = job.follow_at.saturating_sub(now.mono);
            return Some(Step {
                wake: Some(next.wake.map_or(wake, |w| w.min(wake))),
                ..next
            });
        }
        Some(next)
    }

    fn send_manager_step(&mut self, key: &JobKey, step: ManagerStep, now: Now) {
        let item = Item::Job(key.clone());
        let Some(job) = self.jobs.get(key) else { return };
        if let Some(plan) = &job.plan {
            let name: Arc<str> = plan.cluster.as_str().into();
            if !self.workers.get(&name).is_some_and(Worker::is_held) {
                // The next view of the worker brings the job back.
                self.agenda.touch(Item::Worker(name));
                return;
            }
        }
        let Some(job) = self.jobs.get(key) else { return };
        let (uid, resource_version) = (job.view.uid.clone(), job.view.resource_version);
        let key = key.clone();
        let request = match step {
            ManagerStep::Finalizers(finalizers) => Request::SetJobFinalizers {
                key: key.clone(),
                uid,
                resource_version,
                finalizers,
            },
            ManagerStep::Status(status) => Request::WriteJobStatus {
                key: key.clone(),
                uid,
                resource_version,
                status,
            },
            ManagerStep::Owe => return,
        };
        let sent = self.send(&Target::Manager, &item, Note::None, request, None, now);
        if let Some(job) = self.jobs.get_mut(&key) {
            job.side.inflight = sent;
        }
    }

    fn send_worker_step(&mut self, key: &JobKey, step: WorkerStep, now: Now) {
        let item = Item::Job(key.clone());
        let Some(job) = self.jobs.get(key) else { return };
        let (Some(name), Ok(template)) = (job.bound_to.clone(), &job.template) else {
            return;
        };
        let kind = template.kind;
        if step == WorkerStep::Renew {
            if let Some(worker) = self.workers.get_mut(&name) {
                worker.lease.wanted = true;
                self.agenda.touch(Item::Worker(name));
            }
            return;
        }
        let Some((request, note)) = self.worker_request(&name, key, kind, step) else {
            return;
        };
        self.send_to_mirror(&name, key, &item, note, request, now);
    }

    /// Sends a request that concerns the object of a job's name on a worker; at most one is in flight.
    pub(super) fn send_to_mirror(
        &mut self,
        name: &Arc<str>,
        key: &JobKey,
        item: &Item,
        note: Note,
        request: Request,
        now: Now,
    ) {
        let Some(worker) = self.workers.get_mut(name) else {
            return;
        };
        let lease_end = worker.lease.expires(self.config.worker_lease);
        let mirror = worker.mirrors.entry(key.clone()).or_default();
        if !mirror.side.ready(now.mono) {
            if mirror.side.inflight.is_none() {
                self.agenda.wake(mirror.side.not_before, item.clone());
            }
            return;
        }
        let writes = !matches!(request, Request::GetMirror { .. } | Request::ListPods { .. });
        let limit = if writes {
            Some(lease_end.unwrap_or_default())
        } else {
            None
        };
        let sent = self.send(&Target::Worker(name.clone()), item, note, request, limit, now);
        if let Some(mirror) = self.workers.get_mut(name).and_then(|w| w.mirrors.get_mut(key)) {
            mirror.side.inflight = sent;
        }
    }

    pub(super) fn worker_request(
        &mut self,
        name: &Arc<str>,
        key: &JobKey,
        kind: TemplateKind,
        step: WorkerStep,
    ) -> Option<(Request, Note)> {
        let claim = self.claim.as_ref()?.id.clone();
        let worker = self.workers.get(name)?;
        let mirror = worker.mirrors.get(key);
        let view = mirror.and_then(|m| m.view.as_ref());
        let key = key.clone();
        let look = (Request::GetMirror { kind, key: key.clone() }, Note::Read);
        Some(match step {
            WorkerStep::Look => look,
            WorkerStep::Create if mirror.is_some_and(|m| m.needs_namespace) => {
                (Request::CreateNamespace { name: key.namespace }, Note::None)
            }
            WorkerStep::Create => {
                let number = self.jobs.get(&key)?.view.status.assignment.as_ref()?.number;
                let object = self.mirror_object(name, &key, number)?;
                (
                    Request::CreateMirror {
                        kind,
                        key,
                        object,
                        dry_run: false,
                    },
                    Note::Attempt(number),
                )
            }
            // The nonce must have been read under our lease: what was read before it may be older than a stop of the fence.
            WorkerStep::Release
                if mirror.is_none_or(|m| worker.lease.held_since.is_none_or(|since| m.read_at < since)) =>
            {
                look
            }
            WorkerStep::Release => {
                let nonce = self.nonces.next(&claim, Wrote::Release);
                let patch = kind.workload().release_patch(&view?.uid, &view?.nonce, &nonce);
                (Request::JsonPatchMirror { kind, key, patch }, Note::None)
            }
            WorkerStep::Suspend => {
                let nonce = self.nonces.next(&claim, Wrote::Stop);
                let patch = kind
                    .workload()
                    .suspend_patch(&view?.uid, view?.resource_version, &nonce);
                (Request::MergePatchMirror { kind, key, patch }, Note::None)
            }
            WorkerStep::Delete => {
                let (uid, resource_version) = (view?.uid.clone(), view?.resource_version);
                (
                    Request::DeleteMirror {
                        kind,
                        key,
                        uid,
                        resource_version,
                    },
                    Note::None,
                )
            }
            WorkerStep::ListPods => {
                let job_uid = self.jobs.get(&key)?.view.uid.clone();
                (
                    Request::ListPods {
                        namespace: key.namespace,
                        job_uid,
                    },
                    Note::Read,
                )
            }
            WorkerStep::Renew => return None,
        })
    }

    /// The mirror of a job's attempt `number` on a worker, asleep.
    pub(super) fn mirror_object(&mut self, name: &Arc<str>, key: &JobKey, number: i64) -> Option<RawJson> {
        let claim = self.claim.as_ref()?.id.clone();
        let nonce = self.nonces.next(&claim, Wrote::Creation);
        let job = self.jobs.get(key)?;
        let kind = job.template.as_ref().ok()?.kind;
        let identity = MirrorIdentity {
            origin: self.config.origin_hash.clone(),
            manager_uid: self.config.manager_uid.clone(),
            cluster_uid: self.workers.get(name)?.pinned_uid()?.to_owned(),
            job: key.to_string(),
            job_uid: job.view.uid.to_string(),
            run: job.view.status.assignment.as_ref().map_or(job.view.spec.run, |a| a.run),
            number,
        };
        let input = MirrorInput {
            template: &job.view.spec.template,
            key,
            identity: &identity,
            origin_name: &self.config.origin,
            nonce: &nonce,
        };
        // A template whose pod sets were understood makes a mirror: both read the same fields.
        kind.workload().mirror(&input).ok()
    }

    /// Asks workers that refused this queued job, by a dry run, whether they would take it now.
    fn probe_shunned(&mut self, key: &JobKey, now: Now) {
        let Some(job) = self.jobs.get(key) else { return };
        if !job.is_queued() || job.plan.is_some() || job.shunned.is_empty() {
            return;
        }
        let item = Item::Job(key.clone());
        let number = job.view.status.last_attempt + 1;
        let Ok(kind) = job.template.as_ref().map(|t| t.kind) else {
            return;
        };
        let refusing = job.shunned.iter().filter(|(_, s)| !s.forgiven);
        let shunned: Vec<_> = refusing.map(|(uid, s)| (uid.clone(), s.probe_at)).collect();
        for (uid, probe_at) in shunned {
            if probe_at > now.mono {
                self.agenda.wake(probe_at, item.clone());
                continue;
            }
            let Some(name) = self.in_use.get(&uid).cloned() else {
                if let Some(job) = self.jobs.get_mut(key) {
                    job.shunned.remove(&uid);
                }
                continue;
            };
            let usable = self
                .workers
                .get(&name)
                .is_some_and(|w| w.readable() && w.lease.held_since.is_some());
            if usable && let Some(object) = self.mirror_object(&name, key, number) {
                let request = Request::CreateMirror {
                    kind,
                    key: key.clone(),
                    object,
                    dry_run: true,
                };
                self.send_to_mirror(&name, key, &item, Note::Probe(uid.to_string()), request, now);
            }
        }
    }

    /// A finished job whose mirror is gone needs no record of it.
    fn forget_finished_mirror(&mut self, key: &JobKey) {
        let Some(job) = self.jobs.get(key).filter(|job| job.view.status.phase.is_terminal()) else {
            return;
        };
        if job.view.spec.run <= job.view.status.run
            && let Some(worker) = job.bound_to.as_ref().and_then(|name| self.workers.get_mut(name))
            && worker.mirrors.get(key).is_some_and(super::world::Mirror::is_idle)
        {
            worker.mirrors.remove(key);
        }
    }

    /// How often a change of the raw status alone is written.
    pub(super) fn followed(&mut self, key: &JobKey, now: Now) {
        if let Some(job) = self.jobs.get_mut(key) {
            job.follow_at = now.mono + FOLLOW_INTERVAL;
        }
    }
}
