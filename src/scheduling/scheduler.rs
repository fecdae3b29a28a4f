//! The queue of all jobs and the cycle over it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::class::{Asks, Class, ClassKey};
use super::cycle::Seen;
use super::job::QueuedJob;
use super::reasons::Telling;
use super::reserve::Reservation;
use crate::api::JobKey;

/// What the scheduler is told once.
#[derive(Debug, Clone)]
pub struct SchedulerConfig {
    /// Namespace of the operator; jobs may not use it unless a `WorkerCluster` names it.
    pub operator_namespace: String,
    /// How long a job may be passed over before it reserves a worker.
    pub reserve_after: Duration,
    /// Reasons told per second at most, over all jobs.
    pub reasons_per_second: u32,
}

/// A decision: the job belongs to this worker, and its room there is promised already.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placed {
    /// The job.
    pub key: JobKey,
    /// Its uid: the id of the promise.
    pub uid: Arc<str>,
    /// Name of the `WorkerCluster`.
    pub site: Arc<str>,
    /// Identity of the worker.
    pub cluster_uid: Arc<str>,
}

/// What one call of `cycle` did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cycle {
    /// Decisions, in the order of the queue. They have left the queue.
    pub placed: Vec<Placed>,
    /// False: the budget ran out; call again soon.
    pub finished: bool,
    /// Groups of equal jobs that found no room in this call.
    pub passed_over: usize,
}

/// A queued job with its class.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) job: QueuedJob,
    pub(super) class: u32,
    pub(super) told: Arc<BTreeSet<String>>,
}

/// The queue of all jobs that wait, and the cycle over it.
#[derive(Debug)]
pub struct Scheduler {
    pub(super) config: SchedulerConfig,
    pub(super) jobs: BTreeMap<JobKey, Entry>,
    /// Classes by number, in the order of nothing.
    pub(super) classes: BTreeMap<u32, Class>,
    by_key: BTreeMap<ClassKey, u32>,
    next_class: u32,
    pub(super) seen: Seen,
    pub(super) reservation: Option<Reservation>,
    pub(super) telling: Telling,
}

impl Scheduler {
    /// An empty queue.
    pub fn new(config: SchedulerConfig) -> Self {
        Self {
            config,
            jobs: BTreeMap::new(),
            classes: BTreeMap::new(),
            by_key: BTreeMap::new(),
            next_class: 0,
            seen: Seen::new(),
            reservation: None,
            telling: Telling::default(),
        }
    }

    /// Queues a job, or replaces what is known of it.
    pub fn upsert(&mut self, mut job: QueuedJob) {
        let told = std::mem::take(&mut job.told);
        if let Some(entry) = self.jobs.get_mut(&job.key) {
            if entry.job == job {
                return;
            }
            let told = entry.told.clone();
            self.remove(&job.key);
            self.insert(job, told);
        } else {
            self.insert(job, Arc::new(told));
        }
    }

    fn insert(&mut self, job: QueuedJob, mut told: Arc<BTreeSet<String>>) {
        let asks = Asks::of(&job);
        let key = asks.key();
        let ix = *self.by_key.entry(key.clone()).or_insert_with(|| {
            self.next_class += 1;
            self.next_class
        });
        let class = self.classes.entry(ix).or_insert_with(|| Class::new(asks, key));
        let rank = job.rank();
        if told == class.reasons {
            told = class.reasons.clone();
        } else if class.waiting.is_some() {
            class.untold.insert(rank.clone());
        }
        class.queue.insert(rank);
        self.jobs.insert(job.key.clone(), Entry { job, class: ix, told });
    }

    /// Takes a job out of the queue.
    pub fn remove(&mut self, key: &JobKey) -> Option<QueuedJob> {
        let entry = self.jobs.remove(key)?;
        if let Some(class) = self.classes.get_mut(&entry.class) {
            let rank = entry.job.rank();
            class.queue.remove(&rank);
            class.untold.remove(&rank);
            if class.queue.is_empty() {
                self.by_key.remove(&class.key);
                self.classes.remove(&entry.class);
            }
        }
        if self.reservation.as_ref().is_some_and(|r| r.rank.key == *key) {
            self.clear_reservation();
        }
        Some(entry.job)
    }

    /// A queued job.
    pub fn get(&self, key: &JobKey) -> Option<&QueuedJob> {
        self.jobs.get(key).map(|e| &e.job)
    }

    /// Number of queued jobs.
    pub fn len(&self) -> usize {
        self.jobs.len()
    }

    /// True without queued jobs.
    pub fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }

    /// Forgets what was tried on a worker: a `Site` takes the place of another of that name.
    pub fn forget_site(&mut self, name: &str) {
        self.seen.forget(name);
        for class in self.classes.values_mut() {
            class.plans.clear();
            class.lacking.clear();
        }
        self.telling.restart();
        if self.reservation.as_ref().is_some_and(|r| *r.site == *name) {
            self.clear_reservation();
        }
    }

    /// The job and the worker that is held for it.
    #[cfg(test)]
    fn reservation(&self) -> Option<(&JobKey, &Arc<str>)> {
        self.reservation.as_ref().map(|r| (&r.rank.key, &r.site))
    }
}

#[cfg(test)]
mod tests;
