//! Between the world and the scheduler: who waits, what is promised, what was placed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::api::Now;
use crate::api::conditions::WorkerReason;
use crate::api::job::{Attempt, RevokeReason};
use crate::lifecycle::news;
use crate::lifecycle::view::JobKey;
use crate::lifecycle::view::Plan;
use crate::scheduling::{Blocked, Exclusion, QueuedJob, Site, SiteMeta};

use super::Dispatcher;
use super::agenda::Item;
use super::world::{Job, Link, Worker};

/// Steps of the scheduling cycle before events are looked at again.
const CYCLE_BUDGET: usize = 2_000;
/// Reasons for waiting taken over at once.
const REASONS_AT_ONCE: usize = 100;
/// First and longest time that a job is not sent again to a worker where it did not start.
const SLOW_START: (Duration, Duration) = (Duration::from_mins(1), Duration::from_hours(1));
/// While jobs wait, time alone may change what is decided (reservations, rates): the cycle runs this often.
const CYCLE_INTERVAL: Duration = Duration::from_secs(10);

impl Dispatcher {
    /// Puts a job into the queue, or takes it out.
    pub(super) fn enqueue(&mut self, key: &JobKey, now: Now) {
        let Some(job) = self.jobs.get(key) else { return };
        let queued = job.is_queued() && job.plan.is_none();
        let (excluded, again) = if queued {
            self.excluded(job, now)
        } else {
            (BTreeMap::new(), None)
        };
        let entry = match &job.template {
            Ok(template) if queued => self.priority(job).map(|priority| QueuedJob {
                key: key.clone(),
                uid: job.view.uid.clone(),
                priority,
                queued_at: news::queued_at(&job.view),
                kind: template.kind,
                pod_sets: template.pod_sets.clone(),
                placement: job.placement.clone(),
                excluded,
                told: job
                    .view
                    .status
                    .waiting
                    .iter()
                    .flat_map(|w| w.reasons.keys().cloned())
                    .collect(),
            }),
            _ => None,
        };
        if let Some(at) = again {
            self.agenda.wake(at, Item::Job(key.clone()));
        }
        match entry {
            Some(entry) => {
                if self.scheduler.get(key) != Some(&entry) {
                    self.scheduler.upsert(entry);
                    self.want_cycle(now.mono);
                }
            }
            None => {
                self.scheduler.remove(key);
            }
        }
    }

    /// The value of the job's priority class; none when it names one that the manager lacks.
    pub(super) fn priority(&self, job: &Job) -> Option<i32> {
        match &job.view.spec.priority_class_name {
            None => Some(self.default_priority),
            Some(name) => self.priorities.get(name).copied(),
        }
    }

    /// Workers that are not tried for this job now: those that refused it, and those where it did not start lately.
    fn excluded(&self, job: &Job, now: Now) -> (BTreeMap<Arc<str>, Exclusion>, Option<Duration>) {
        let refused = job.shunned.iter().filter(|(_, s)| !s.forgiven);
        let mut excluded: BTreeMap<_, _> = refused
            .map(|(uid, s)| {
                (
                    uid.clone(),
                    Exclusion {
                        reason: s.reason,
                        message: s.message.clone(),
                    },
                )
            })
            .collect();
        let mut again = None;
        let run = job.view.spec.run;
        let slow = |a: &&Attempt| a.run == run && a.reason == RevokeReason::StartTimeout.as_str();
        let mut times: BTreeMap<&str, u32> = BTreeMap::new();
        for attempt in job.view.status.attempts.iter().filter(slow) {
            let count = times.entry(&attempt.cluster).or_default();
            *count += 1;
            let pause = SLOW_START.0.saturating_mul(1 << (*count - 1).min(10)).min(SLOW_START.1);
            let passed = u64::try_from(now.seconds_since(attempt.to.0)).unwrap_or(0);
            let Some(left) = pause.as_secs().checked_sub(passed).filter(|left| *left > 0) else {
                continue;
            };
            let Some(uid) = self.workers.get(&*attempt.cluster).and_then(Worker::pinned_uid) else {
                continue;
            };
            let message = format!(
                "did not start there (attempt {}); tried again {} s after that",
                attempt.number,
                pause.as_secs()
            );
            excluded.entry(uid.into()).or_insert(Exclusion {
                reason: RevokeReason::StartTimeout.as_str(),
                message,
            });
            let at = now.mono + Duration::from_secs(left);
            again = Some(again.map_or(at, |earlier: Duration| earlier.min(at)));
        }
        (excluded, again)
    }

    /// One scheduling cycle, if one is due.
    pub(super) fn run_cycle(&mut self, now: Now) {
        if self.cycle_at.is_none_or(|at| at > now.mono) || !self.is_synced() {
            return;
        }
        self.cycle_at = None;
        let cycle = self.scheduler.cycle(&mut self.sites, now, CYCLE_BUDGET);
        for placed in cycle.placed {
            let Some(job) = self.jobs.get_mut(&placed.key) else {
                continue;
            };
            job.plan = Some(Plan {
                cluster: placed.site.to_string(),
                cluster_uid: placed.cluster_uid.to_string(),
            });
            job.promised_on = Some(placed.site);
            job.waiting = None;
            self.scheduler.remove(&placed.key);
            self.agenda.touch(Item::Job(placed.key));
        }
        if !cycle.finished {
            self.cycle_at = Some(now.mono);
            return;
        }
        let reasons = self.scheduler.changed_reasons(&mut self.sites, now, REASONS_AT_ONCE);
        let told = reasons.len();
        for (key, waiting) in reasons {
            if let Some(job) = self.jobs.get_mut(&key) {
                job.waiting = Some(waiting);
                self.agenda.touch(Item::Job(key));
            }
        }
        if told > 0 {
            self.want_cycle(now.mono + Duration::from_secs(1));
        } else if !self.scheduler.is_empty() {
            self.want_cycle(now.mono + CYCLE_INTERVAL);
        }
    }

    /// A decision that was not written yet is dropped when what it was decided on is not so any more.
    pub(super) fn drop_stale_plan(&mut self, key: &JobKey) {
        let Some(job) = self.jobs.get_mut(key) else { return };
        let Some(plan) = &job.plan else { return };
        if job
            .view
            .status
            .assignment
            .as_ref()
            .is_some_and(|a| a.cluster_uid == plan.cluster_uid)
        {
            // It was written: the promise goes on as the assignment's.
            job.plan = None;
            return;
        }
        let possible = job.is_queued() && job.template.is_ok() && self.in_use.contains_key(&*plan.cluster_uid);
        if !possible {
            self.drop_plan(key);
        }
    }

    pub(super) fn drop_plan(&mut self, key: &JobKey) {
        if let Some(job) = self.jobs.get_mut(key)
            && job.plan.take().is_some()
            && let Some(site) = job.promised_on.take()
            && let Some(site) = self.sites.get_mut(&site)
        {
            site.ledger.release(&job.view.uid);
        }
    }

    pub(super) fn drop_plans_on(&mut self, worker: &Arc<str>) {
        let planned = |job: &Job| job.plan.as_ref().is_some_and(|plan| *plan.cluster == **worker);
        let keys: Vec<_> = self
            .jobs
            .iter()
            .filter(|(_, job)| planned(job))
            .map(|(key, _)| key.clone())
            .collect();
        for key in keys {
            self.drop_plan(&key);
            self.agenda.touch(Item::Job(key));
        }
    }

    /// Binds a job to the `WorkerCluster` that stands for its assignment's clusterUID.
    pub(super) fn rebind(&mut self, key: &JobKey) {
        let Some(job) = self.jobs.get_mut(key) else { return };
        let uid = job.view.status.assignment.as_ref().map(|a| &*a.cluster_uid);
        let to = uid.and_then(|uid| self.in_use.get(uid)).cloned();
        if job.bound_to == to {
            return;
        }
        if let Some(worker) = job.bound_to.take().and_then(|name| self.workers.get_mut(&name)) {
            worker.bound.remove(key);
            if worker.mirrors.contains_key(key) {
                self.agenda.touch(Item::Stray(worker.view.name.clone(), key.clone()));
            }
            self.agenda.touch(Item::Worker(worker.view.name.clone()));
        }
        if let Some(worker) = to.as_ref().and_then(|name| self.workers.get_mut(name)) {
            worker.bound.insert(key.clone());
            self.agenda.touch(Item::Worker(worker.view.name.clone()));
        }
        job.bound_to = to;
    }

    /// Holds room for the job on the worker of its plan or assignment until its mirror is terminal or the assignment is gone.
    pub(super) fn sync_promise(&mut self, key: &JobKey, now: Now) {
        let Some(job) = self.jobs.get(key) else { return };
        if job.plan.is_some() {
            return;
        }
        let ended = job.view.status.phase.is_terminal();
        let on = if ended { None } else { job.bound_to.clone() };
        if job.promised_on != on {
            self.release_promise(key, now);
        }
        let (Some(name), Some(job)) = (on, self.jobs.get_mut(key)) else {
            return;
        };
        let Some(site) = self.sites.get_mut(&name) else { return };
        let Ok(template) = &job.template else { return };
        if !site.ledger.is_promised(&job.view.uid) {
            site.ledger.promise(&job.view.uid, &template.pod_sets);
        }
        job.promised_on = Some(name.clone());
        let mirror = self
            .workers
            .get(&name)
            .and_then(|w| w.mirrors.get(key))
            .and_then(|m| m.view.as_ref());
        let own = mirror.filter(|m| m.identity.as_ref().is_some_and(|id| *id.job_uid == *job.view.uid));
        if let Some(mirror) = own {
            site.ledger.set_wanted(&job.view.uid, mirror.state.wanted);
        }
        self.want_cycle(now.mono + Duration::from_millis(50));
    }

    pub(super) fn release_promise(&mut self, key: &JobKey, now: Now) {
        if let Some(job) = self.jobs.get_mut(key)
            && let Some(site) = job.promised_on.take()
            && let Some(site) = self.sites.get_mut(&site)
        {
            site.ledger.release(&job.view.uid);
            self.want_cycle(now.mono);
        }
    }

    /// What the scheduler knows of a worker besides its ledger.
    pub(super) fn refresh_site(&mut self, name: &Arc<str>, now: Now) {
        let Some(worker) = self.workers.get(name) else { return };
        let sleepless: Vec<_> = worker.sleepless.iter().map(|kind| kind.as_str()).collect();
        let kinds = worker
            .access
            .iter()
            .flat_map(|a| a.kinds.iter().cloned())
            .filter(|kind| !sleepless.contains(&&**kind))
            .collect();
        let meta = SiteMeta {
            cluster_uid: worker.pinned_uid().unwrap_or_default().into(),
            labels: worker.view.labels.clone(),
            taints: worker.view.spec.taints.clone(),
            cordoned: worker.view.spec.cordoned,
            namespaces: worker.view.spec.namespaces.clone(),
            kinds,
            blocked: blocked(worker, now, self.config.worker_lease),
        };
        let changed = if let Some(site) = self.sites.get_mut(name) {
            site.set_meta(meta)
        } else {
            self.sites.insert(name.clone(), Site::new(meta));
            true
        };
        if changed {
            self.want_cycle(now.mono);
        }
    }
}

/// Why no job is sent to a worker, whatever its room.
fn blocked(worker: &Worker, now: Now, lease: Duration) -> Option<Blocked> {
    let because = |reason, message: &str| {
        Some(Blocked {
            reason,
            message: message.into(),
        })
    };
    if worker.view.deleted.is_some() {
        return because("Deleted", "the WorkerCluster is being deleted");
    }
    match &worker.link {
        Link::Connecting => return because("NotConnected", "not connected yet"),
        Link::Down { message, .. } => return because("NotConnected", message),
        Link::Up { cluster_uid, .. } => match worker.pinned_uid() {
            None => return because("NotConnected", "its identity is not recorded yet"),
            Some(pinned) if *pinned != **cluster_uid => {
                return because(
                    "IdentityChanged",
                    &format!("another cluster answers there: {cluster_uid} instead of {pinned}"),
                );
            }
            Some(_) => {}
        },
    }
    if let Some(first) = &worker.duplicate_of {
        return because(
            "DuplicateCluster",
            &format!("WorkerCluster {first} has the same cluster and is older"),
        );
    }
    match &worker.access {
        None => return because("NotAuthorized", "rights are not reviewed yet"),
        Some(access) if !access.missing.is_empty() => {
            return because(
                "NotAuthorized",
                &format!("missing rights: {}", access.missing.join(", ")),
            );
        }
        Some(_) => {}
    }
    if let Some((reason, message)) = &worker.lease.obstacle {
        return because(reason, message);
    }
    if !worker.mirrors_listed {
        return because("NotConnected", "its objects are being listed");
    }
    if worker.lease.expires(lease).is_none_or(|end| end <= now.mono) {
        return because(
            WorkerReason::LeaseNotHeld.as_str(),
            "the lease on the worker is not held",
        );
    }
    None
}
