//! Events applied to the world.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::api::Now;
use crate::api::conditions::WorkerReason;
use crate::lifecycle::view::{JobKey, JobView, WorkerView};

use super::Dispatcher;
use super::agenda::Item;
use super::event::{Claim, Event, LinkEvent, WorkerEvent};
use super::world::{Link, Worker, WorkerLease};

impl Dispatcher {
    /// Applies `event`.
    pub fn handle(&mut self, event: Event, now: Now) {
        match event {
            Event::Claim(claim) => self.claimed(claim, now),
            Event::ClaimLost => self.claim = None,
            Event::Slots { target, limit } => self.traffic.limit(target, limit),
            Event::Job(view) => {
                self.unreadable.remove(&view.key);
                self.job_seen(*view, now);
            }
            Event::JobDeleted { key, uid } => {
                self.unreadable.remove(&key);
                if self.jobs.get(&key).is_some_and(|job| job.view.uid == uid) {
                    self.forget_job(&key, now);
                }
            }
            Event::JobsListed(keys) => self.jobs_listed(&keys, now),
            Event::JobUnreadable { key, message } => {
                self.unreadable.insert(key, message);
            }
            Event::WorkerCluster(view) => self.worker_seen(*view, now),
            Event::WorkerClusterDeleted(name) => self.forget_worker(&name, now),
            Event::WorkerClustersListed(names) => {
                let gone: Vec<_> = self
                    .workers
                    .keys()
                    .filter(|name| !names.contains(*name))
                    .cloned()
                    .collect();
                for name in gone {
                    self.forget_worker(&name, now);
                }
                self.workers_listed = true;
                self.want_cycle(now.mono);
            }
            Event::PriorityClasses { values, default } => {
                self.priorities = values;
                self.default_priority = default;
                self.priorities_listed = true;
                let keys: Vec<_> = self.jobs.keys().cloned().collect();
                for key in keys {
                    self.enqueue(&key, now);
                    if self
                        .jobs
                        .get(&key)
                        .is_some_and(|job| job.view.spec.priority_class_name.is_some())
                    {
                        self.agenda.touch(Item::Job(key));
                    }
                }
            }
            Event::Worker { name, epoch, event } => self.worker_event(&name, epoch, event, now),
            Event::Outcome { id, outcome } => self.landed(id, outcome, now),
        }
    }

    fn claimed(&mut self, claim: Claim, now: Now) {
        let renewed = self.claim.as_ref().is_some_and(|held| held.id == claim.id);
        self.claim_renewed = claim.renewed;
        self.claim = Some(claim);
        if renewed {
            return;
        }
        // Leases on workers carry the id of the claim: each is read and taken over anew before anything is written there.
        for (name, worker) in &mut self.workers {
            let side = std::mem::take(&mut worker.lease.side);
            worker.lease = WorkerLease {
                side,
                ..WorkerLease::default()
            };
            worker.sweep_at = now.mono;
            self.agenda.touch(Item::Worker(name.clone()));
        }
        for key in self.jobs.keys() {
            self.agenda.touch(Item::Job(key.clone()));
        }
        self.want_cycle(now.mono);
    }

    // === jobs ===

    pub(super) fn job_seen(&mut self, view: JobView, now: Now) {
        let key = view.key.clone();
        if let Some(job) = self.jobs.get_mut(&key) {
            if job.view.uid == view.uid {
                if view.resource_version < job.view.resource_version {
                    return;
                }
                let respecified = view.spec != job.view.spec;
                let old = job.replace_view(view);
                if respecified {
                    // What was decided was decided for another spec.
                    self.drop_plan(&key);
                }
                if self.claim.is_some()
                    && let Some(new) = self.jobs.get(&key).map(|job| job.view.clone())
                {
                    self.notice_change(&old, &new);
                }
                self.job_changed(&key, now);
                return;
            }
            if view.resource_version < job.view.resource_version {
                return;
            }
            // Another job has the name: the old one is gone for good.
            self.forget_job(&key, now);
        }
        self.keys.insert(view.uid.clone(), key.clone());
        self.jobs.insert(key.clone(), super::world::Job::new(view));
        let with_object: Vec<_> = self
            .workers
            .iter()
            .filter(|(_, w)| w.mirrors.contains_key(&key))
            .map(|(n, _)| n.clone())
            .collect();
        for name in with_object {
            self.touch_mirror(&name, &key);
        }
        self.job_changed(&key, now);
    }

    /// Everything that follows from a job's view: its place in the queue, its promise, its next step.
    pub(super) fn job_changed(&mut self, key: &JobKey, now: Now) {
        self.drop_stale_plan(key);
        self.rebind(key);
        self.enqueue(key, now);
        self.sync_promise(key, now);
        self.agenda.touch(Item::Job(key.clone()));
    }

    pub(super) fn forget_job(&mut self, key: &JobKey, now: Now) {
        self.scheduler.remove(key);
        self.release_promise(key, now);
        let Some(job) = self.jobs.remove(key) else { return };
        self.keys.remove(&job.view.uid);
        for (name, worker) in &mut self.workers {
            worker.bound.remove(key);
            self.agenda.touch(Item::Worker(name.clone()));
        }
        self.touch_strays(key);
    }

    /// What has the name of a job that is gone is judged anew, on every worker.
    pub(super) fn touch_strays(&mut self, key: &JobKey) {
        for (name, worker) in &self.workers {
            if worker.mirrors.contains_key(key) {
                self.agenda.touch(Item::Stray(name.clone(), key.clone()));
            }
        }
    }

    fn jobs_listed(&mut self, keys: &BTreeSet<JobKey>, now: Now) {
        self.jobs_listed = true;
        self.unreadable.retain(|key, _| keys.contains(key));
        for (key, job) in &mut self.jobs {
            if !keys.contains(key) {
                // A list may be older than what we know: absence is never read off it.
                job.side.verify = true;
                self.agenda.touch(Item::Job(key.clone()));
            }
        }
        for (name, worker) in &self.workers {
            for key in worker.mirrors.keys().filter(|key| !self.jobs.contains_key(*key)) {
                self.agenda.touch(Item::Stray(name.clone(), key.clone()));
            }
        }
        self.want_cycle(now.mono);
    }

    // === workers ===

    pub(super) fn worker_seen(&mut self, view: WorkerView, now: Now) {
        let name = view.name.clone();
        match self.workers.get_mut(&name) {
            Some(worker) if worker.view.uid == view.uid => {
                if view.resource_version < worker.view.resource_version {
                    return;
                }
                let leaves = worker.view.deleted.is_none() && view.deleted.is_some();
                worker.take_debts(&view.status.debts, self.claim.is_some());
                worker.view = view;
                if leaves {
                    self.drop_plans_on(&name);
                    self.touch_bound(&name);
                }
            }
            Some(_) | None => {
                self.forget_worker(&name, now);
                self.workers.insert(name.clone(), Worker::new(view));
            }
        }
        self.workers_changed(now);
        self.agenda.touch(Item::Worker(name));
    }

    fn forget_worker(&mut self, name: &Arc<str>, now: Now) {
        let Some(worker) = self.workers.remove(name) else {
            return;
        };
        self.sites.remove(name);
        self.scheduler.forget_site(name);
        for key in &worker.bound {
            self.agenda.touch(Item::Job(key.clone()));
        }
        self.drop_plans_on(name);
        self.workers_changed(now);
    }

    /// Which `WorkerCluster` is in use for each cluster, and all that follows from it.
    pub(super) fn workers_changed(&mut self, now: Now) {
        let mut order: Vec<_> = self
            .workers
            .values()
            .filter_map(|w| {
                // One that leaves comes last: another with its cluster inherits what it has.
                let age = (w.view.deleted.is_some(), w.view.created);
                Some((age, w.view.name.clone(), Arc::<str>::from(w.pinned_uid()?)))
            })
            .collect();
        order.sort();
        let before = std::mem::take(&mut self.in_use);
        for (_, name, uid) in order {
            let first = self.in_use.entry(uid).or_insert_with(|| name.clone()).clone();
            if let Some(worker) = self.workers.get_mut(&name) {
                worker.duplicate_of = (first != name).then_some(first);
            }
        }
        self.bequeath_debts();
        let names: Vec<_> = self.workers.keys().cloned().collect();
        for name in names {
            self.refresh_site(&name, now);
        }
        if before != self.in_use {
            // Jobs are bound to a clusterUID: they follow it to the WorkerCluster that now stands for it.
            let keys: Vec<_> = self
                .jobs
                .iter()
                .filter(|(_, job)| job.view.status.assignment.is_some())
                .map(|(key, _)| key.clone())
                .collect();
            for key in keys {
                self.rebind(&key);
                self.sync_promise(&key, now);
                self.agenda.touch(Item::Job(key));
            }
        }
    }

    fn worker_event(&mut self, name: &Arc<str>, epoch: u64, event: WorkerEvent, now: Now) {
        let Some(worker) = self.workers.get_mut(name) else {
            return;
        };
        if epoch < worker.epoch {
            return;
        }
        worker.epoch = epoch;
        if !worker.is_heard() && !matches!(event, WorkerEvent::Link(_)) {
            // Another cluster answers there: what it holds is nobody's business.
            return;
        }
        match event {
            WorkerEvent::Link(LinkEvent::Up { cluster_uid, version }) => self.link_up(name, cluster_uid, version, now),
            WorkerEvent::Link(LinkEvent::Down { reason, message }) => self.link_down(name, reason, message, now),
            WorkerEvent::Access(access) => {
                worker.access = Some(access);
                self.refresh_site(name, now);
                self.agenda.touch(Item::Worker(name.clone()));
            }
            WorkerEvent::Mirror(view) => self.mirror_seen(name, *view, now.mono, now),
            WorkerEvent::MirrorDeleted { key, uid } => self.mirror_vanished(name, &key, Some(&uid), now),
            WorkerEvent::MirrorsListed(keys) => self.mirrors_listed(name, &keys, now),
            WorkerEvent::MirrorsLost { message } => self.mirrors_lost(name, &message, now),
            counted => self.capacity_event(name, counted, now),
        }
    }

    fn link_up(&mut self, name: &Arc<str>, cluster_uid: Arc<str>, version: String, now: Now) {
        let Some(worker) = self.workers.get_mut(name) else {
            return;
        };
        // Another cluster behind the same address is no contact: the jobs bound here are as unknown as before.
        let itself = worker.pinned_uid().is_none_or(|pinned| *pinned == *cluster_uid);
        worker.link = Link::Up { cluster_uid, version };
        worker.disconnect();
        if itself {
            worker.lost_since = None;
        } else {
            worker.lost_since.get_or_insert(now.wall);
        }
        worker.sleepless.clear();
        worker.sweep_at = now.mono;
        if let Some(site) = self.sites.get_mut(name) {
            // What was counted on an earlier connection is no room.
            site.ledger.set_unknown("nodes and pods are being listed");
        }
        if itself {
            self.notice_link(name, false, "Connected", "it answers");
        }
        self.workers_changed(now);
        self.touch_bound(name);
    }

    fn link_down(&mut self, name: &Arc<str>, reason: String, message: String, now: Now) {
        let Some(worker) = self.workers.get_mut(name) else {
            return;
        };
        worker.disconnect();
        worker.lost_since.get_or_insert(now.wall);
        if matches!(worker.link, Link::Up { .. }) {
            self.notice_link(name, true, "Disconnected", &format!("{reason}: {message}"));
        }
        let Some(worker) = self.workers.get_mut(name) else {
            return;
        };
        worker.link = Link::Down { reason, message };
        if let Some(site) = self.sites.get_mut(name) {
            site.ledger.set_unknown("the worker does not answer");
        }
        self.refresh_site(name, now);
        self.drop_plans_on(name);
        self.touch_bound(name);
    }

    /// Nothing of what is shown of its jobs is of now: the same as no answer, although its requests are answered.
    fn mirrors_lost(&mut self, name: &Arc<str>, message: &str, now: Now) {
        let Some(worker) = self.workers.get_mut(name) else {
            return;
        };
        worker.mirrors_listed = false;
        worker.lost_since.get_or_insert(now.wall);
        self.notice_link(name, true, WorkerReason::WatchFailed.as_str(), message);
        self.refresh_site(name, now);
        self.touch_bound(name);
    }

    /// Jobs that a worker refused may ask it again.
    pub(super) fn touch_shunning(&mut self, name: &Arc<str>) {
        let Some(uid) = self.workers.get(name).and_then(Worker::pinned_uid) else {
            return;
        };
        for (key, job) in &self.jobs {
            if job.shunned.contains_key(uid) {
                self.agenda.touch(Item::Job(key.clone()));
            }
        }
    }

    pub(super) fn touch_bound(&mut self, name: &Arc<str>) {
        self.agenda.touch(Item::Worker(name.clone()));
        let Some(worker) = self.workers.get(name) else { return };
        for key in &worker.bound {
            self.agenda.touch(Item::Job(key.clone()));
        }
    }
}
