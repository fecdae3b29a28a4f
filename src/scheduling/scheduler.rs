//! The queue of all jobs and the cycle over it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::job::QueuedJob;
use super::site::Site;
use crate::api::Now;
use crate::api::job::Waiting;
use crate::lifecycle::view::JobKey;

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

/// The queue of all jobs that wait, and the cycle over it.
#[derive(Debug)]
pub struct Scheduler {
    config: SchedulerConfig,
    jobs: BTreeMap<JobKey, QueuedJob>,
}

impl Scheduler {
    /// An empty queue.
    pub fn new(config: SchedulerConfig) -> Self {
        Self {
            config,
            jobs: BTreeMap::new(),
        }
    }

    /// Queues a job, or replaces what is known of it.
    pub fn upsert(&mut self, job: QueuedJob) {
        self.jobs.insert(job.key.clone(), job);
    }

    /// Takes a job out of the queue.
    pub fn remove(&mut self, key: &JobKey) -> Option<QueuedJob> {
        self.jobs.remove(key)
    }

    /// A queued job.
    pub fn get(&self, key: &JobKey) -> Option<&QueuedJob> {
        self.jobs.get(key)
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
    pub fn forget_site(&mut self, _name: &str) {}

    /// Assigns what fits, in order. `budget` is work in units of one node looked at by one shape, about 20 to 50 ns; at least one step is made.
    pub fn cycle(&mut self, _sites: &mut BTreeMap<Arc<str>, Site>, _now: Now, _budget: usize) -> Cycle {
        let _ = &self.config;
        Cycle {
            finished: true,
            ..Cycle::default()
        }
    }

    /// The job and the worker that is held for it.
    pub fn reservation(&self) -> Option<(&JobKey, &Arc<str>)> {
        None
    }

    /// Why a job waits, worker by worker; none when it is not queued.
    pub fn waiting(&mut self, _key: &JobKey, _sites: &mut BTreeMap<Arc<str>, Site>) -> Option<Waiting> {
        None
    }

    /// At most `limit` jobs whose reasons are others than those told last, the head of the queue first. What is returned counts as told.
    pub fn changed_reasons(
        &mut self,
        _sites: &mut BTreeMap<Arc<str>, Site>,
        _now: Now,
        _limit: usize,
    ) -> Vec<(JobKey, Waiting)> {
        Vec::new()
    }
}
