//! A worker's own next effects: its status, its finalizer, its sweep.

use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use crate::api::Now;
use crate::api::names::FINALIZER;
use crate::lifecycle::view::JobKey;

use super::Dispatcher;
use super::agenda::Item;
use super::effect::{Notice, Regarding, Request, Target};
use super::event::{Answer, Outcome, Refusal, RefusalKind};
use super::outcomes::settle;
use super::traffic::{Flight, Note};
use super::world::Job;

/// Numbers alone are written to a status at most this often.
const REPORT_INTERVAL: Duration = Duration::from_secs(5);

impl Dispatcher {
    /// Sends what a worker needs next.
    pub(super) fn step_worker(&mut self, name: &Arc<str>, now: Now) {
        if !self.workers.contains_key(name) {
            return;
        }
        self.sweep(name, now);
        self.step_worker_lease(name, now);
        self.step_worker_object(name, now);
        self.look_for_debts(name, now);
    }

    // === the object on the manager ===

    fn step_worker_object(&mut self, name: &Arc<str>, now: Now) {
        let item = Item::Worker(name.clone());
        let Some(worker) = self.workers.get(name) else { return };
        if !worker.side.ready(now.mono) {
            if worker.side.inflight.is_none() {
                self.agenda.wake(worker.side.not_before, item);
            }
            return;
        }
        let (uid, resource_version, verify) = (
            worker.view.uid.clone(),
            worker.view.resource_version,
            worker.side.verify,
        );
        let request = if verify {
            Request::GetWorkerCluster { name: name.clone() }
        } else if let Some(finalizers) = self.finalizers_to_release(name) {
            Request::SetWorkerFinalizers {
                name: name.clone(),
                uid,
                resource_version,
                finalizers,
            }
        } else if let Some(finalizers) = self.finalizers_to_hold(name) {
            Request::SetWorkerFinalizers {
                name: name.clone(),
                uid,
                resource_version,
                finalizers,
            }
        } else if let Some(status) = self.worker_status(name, now) {
            Request::WriteWorkerStatus {
                name: name.clone(),
                uid,
                resource_version,
                status: Box::new(status),
            }
        } else {
            return;
        };
        let note = if verify { Note::Read } else { Note::None };
        let sent = self.send(&Target::Manager, &item, note, request, None, now);
        if let Some(worker) = self.workers.get_mut(name) {
            worker.side.inflight = sent;
        }
    }

    /// Our finalizer is put on a `WorkerCluster` before the first job is assigned to it; it stays until the object is deleted.
    ///
    /// Taking it off whenever nothing is bound would cost two writes for each job on a quiet worker.
    fn finalizers_to_hold(&self, name: &Arc<str>) -> Option<Vec<String>> {
        let worker = self.workers.get(name)?;
        if worker.is_held() || worker.view.deleted.is_some() {
            return None;
        }
        let planned = |job: &Job| job.plan.as_ref().is_some_and(|plan| *plan.cluster == **name);
        self.jobs.values().any(planned).then(|| {
            let finalizers = worker.view.finalizers.iter().cloned();
            finalizers.chain([FINALIZER.to_owned()]).collect()
        })
    }

    fn finalizers_to_release(&mut self, name: &Arc<str>) -> Option<Vec<String>> {
        let worker = self.workers.get(name)?;
        worker.view.deleted?;
        if !worker.view.finalizers.iter().any(|f| f == FINALIZER) {
            return None;
        }
        let live = |key: &&JobKey| {
            self.jobs
                .get(*key)
                .is_some_and(|job| !job.view.status.phase.is_terminal())
        };
        // Another WorkerCluster with the same cluster inherits jobs and debts.
        let heir = worker.duplicate_of.is_some();
        let bound = worker.bound.iter().filter(live).count();
        let ours = Self::ours(&self.config, Some(worker));
        let objects = worker.mirrors.values().filter_map(|m| m.view.as_ref());
        // What cannot be seen cannot be waited for: a dark worker is left with what was finished on it.
        let left = objects
            .filter(|_| worker.readable())
            .filter(|view| ours.made(view))
            .count();
        let owed = worker.debts.len();
        if heir && self.not_inherited(worker) > 0 && !worker.view.spec.force_detach {
            return None;
        }
        if !heir && !worker.view.spec.force_detach && bound + owed + left > 0 {
            return None;
        }
        let others = worker.view.finalizers.iter().filter(|f| *f != FINALIZER);
        let finalizers = others.cloned().collect();
        if !heir && bound + owed + left > 0 {
            let note = format!(
                "detached by force; {bound} jobs, {left} objects and {owed} owed removals may be left on the cluster"
            );
            let regarding = Regarding::WorkerCluster(name.clone(), worker.view.uid.clone());
            self.notice(Notice {
                regarding,
                warning: true,
                reason: "ForceDetached",
                action: "Detach",
                note,
            });
        }
        Some(finalizers)
    }

    pub(super) fn worker_landed(&mut self, name: &Arc<str>, flight: &Flight, outcome: Outcome, now: Now) {
        let Some(worker) = self.workers.get_mut(name) else {
            return;
        };
        match outcome {
            Outcome::Done(Answer::WorkerCluster(view)) => {
                worker.side.succeeded();
                if flight.kind == "write_worker_status" {
                    worker.report_at = now.mono + REPORT_INTERVAL;
                }
                self.worker_seen(*view, now);
                self.touch_bound(name);
                self.touch_planned(name);
            }
            Outcome::Refused(refusal) if refusal.kind == RefusalKind::ObjectNotFound => worker.side.outdated(now.mono),
            other => {
                settle(&mut worker.side, flight, &other, now);
                let retried = |r: &Refusal| matches!(r.kind, RefusalKind::Conflict | RefusalKind::Busy);
                if matches!(&other, Outcome::Refused(refusal) if !retried(refusal))
                    && flight.kind == "write_worker_status"
                {
                    self.excuse_debts(name);
                }
            }
        }
        self.agenda.touch(flight.item.clone());
    }

    /// Jobs that wait for the worker's finalizer go on.
    fn touch_planned(&mut self, name: &Arc<str>) {
        for (key, job) in &self.jobs {
            if job.plan.as_ref().is_some_and(|plan| *plan.cluster == **name) {
                self.agenda.touch(Item::Job(key.clone()));
            }
        }
    }

    // === sweep ===

    /// Looks at every mirror and every bound job, although nothing changed.
    fn sweep(&mut self, name: &Arc<str>, now: Now) {
        let interval = self.config.sweep_interval;
        let Some(worker) = self.workers.get_mut(name) else {
            return;
        };
        if !worker.readable() || worker.sweep_at > now.mono {
            if worker.readable() {
                self.agenda.wake(worker.sweep_at, Item::Worker(name.clone()));
            }
            return;
        }
        // Jitter by name, so that the sweeps of many workers do not fall together: up to a tenth of the interval.
        let mut hasher = std::hash::DefaultHasher::new();
        name.hash(&mut hasher);
        let jitter = interval.mul_f64((hasher.finish() % 1000) as f64 / 10_000.0);
        worker.sweep_at = now.mono + interval + jitter;
        for mirror in worker.mirrors.values_mut() {
            if mirror.view.as_ref().is_some_and(|v| v.deleting) {
                mirror.side.verify = true;
            }
        }
        let keys: Vec<_> = worker.mirrors.keys().cloned().collect();
        for key in keys {
            self.touch_mirror(name, &key);
        }
        self.touch_bound(name);
    }
}
