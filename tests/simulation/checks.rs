//! The invariants of the protocol, checked against the truth of all servers at every change, not against what the operator believes.

use std::collections::BTreeMap;
use std::sync::Arc;

use multikueue::api::job::Phase;
use multikueue::api::{RawJson, names};
use multikueue::lifecycle::view::{JobKey, JobView, WorkerView};

use crate::plan::{Fate, Workload};
use crate::worker::Pod;
use crate::world::{MINUTE, Ms, SECOND, World};

/// What became of a mirror that the operator created.
#[derive(Debug, Clone)]
pub struct MirrorFacts {
    pub worker: usize,
    pub job_uid: Arc<str>,
    pub run: i64,
    pub number: i64,
    pub released: bool,
    /// The operator stopped it.
    pub stopped: bool,
    /// Its end as the Job controller wrote it: complete or failed.
    pub ended: Option<bool>,
    /// It failed after the operator had stopped it.
    pub ended_by_us: bool,
    /// Somebody else woke it.
    pub woken: bool,
    /// Somebody else deleted it.
    pub deleted_by_hand: bool,
}

/// What is known of a job for ever.
#[derive(Debug, Clone, Default)]
pub struct JobFacts {
    pub templates: Vec<RawJson>,
    /// Numbers of its attempts so far.
    pub number: i64,
}

#[derive(Default)]
pub struct Truth {
    pub mirrors: BTreeMap<Arc<str>, MirrorFacts>,
    pub jobs: BTreeMap<Arc<str>, JobFacts>,
    /// Objects of others on workers: uid and document.
    pub foreign: Vec<(usize, JobKey, Arc<str>, serde_json::Value)>,
    /// Pods or Jobs changed since the copies were last counted.
    pub stirred: bool,
    /// Room on workers changes by other hands than ours: it is not counted.
    pub room_untrue: bool,
}

impl Truth {
    pub fn job_created(&mut self, uid: &Arc<str>, job: &JobView) {
        let facts = self.jobs.entry(Arc::clone(uid)).or_default();
        facts.templates.push(job.spec.template.clone());
    }

    pub fn mirror_ended(&mut self, uid: &Arc<str>, succeeded: bool) {
        if let Some(facts) = self.mirrors.get_mut(uid) {
            facts.ended = Some(succeeded);
            facts.ended_by_us = facts.stopped && !succeeded;
        }
        self.stirred = true;
    }

    /// A mirror of that run has been complete, and it was not deleted by another hand before anyone could know.
    pub fn has_result(&self, job_uid: &str, run: i64) -> bool {
        self.mirrors.values().any(|facts| {
            *facts.job_uid == *job_uid && facts.run == run && facts.ended == Some(true) && !facts.deleted_by_hand
        })
    }
}

impl World {
    /// The mirrors of a job that run or may run.
    pub fn live_copies(&self, job_uid: &str) -> Vec<Arc<str>> {
        let all = self
            .truth
            .mirrors
            .iter()
            .filter(|(_, facts)| *facts.job_uid == *job_uid);
        all.filter(|(uid, facts)| self.is_live(uid, facts))
            .map(|(uid, _)| Arc::clone(uid))
            .collect()
    }

    fn is_live(&self, uid: &Arc<str>, facts: &MirrorFacts) -> bool {
        let worker = &self.workers[facts.worker];
        let awake = worker
            .jobs
            .values()
            .any(|object| object.uid == *uid && !object.asleep() && object.status.terminal.is_none());
        awake || worker.live_pods(uid) > 0
    }

    /// I1, after every step in which something stirred.
    pub fn check(&mut self) {
        if !std::mem::take(&mut self.truth.stirred) {
            return;
        }
        let mut copies: BTreeMap<Arc<str>, Arc<str>> = BTreeMap::new();
        for (uid, facts) in &self.truth.mirrors {
            if !facts.woken
                && self.is_live(uid, facts)
                && let Some(other) = copies.insert(Arc::clone(&facts.job_uid), Arc::clone(uid))
            {
                panic!("I1: two live copies of job {}: {other} and {uid}", facts.job_uid);
            }
        }
        // A copy of a run that has its result, or of a job that is long gone, needs no more looks.
        if self.truth.mirrors.len() > 64 {
            let workers = &self.workers;
            self.truth.mirrors.retain(|uid, facts| {
                let worker = &workers[facts.worker];
                facts.ended.is_some()
                    || worker.live_pods(uid) > 0
                    || worker.jobs.values().any(|object| object.uid == *uid)
            });
        }
    }

    /// I2, when an assignment is written: whoever belongs to the worker has room on it.
    pub fn check_room(&self, worker: usize, gpus: i64) {
        let home = &self.workers[worker];
        if self.truth.room_untrue || gpus == 0 {
            return;
        }
        let mut wanted = 0;
        for job in self.manager.jobs.values() {
            let here = job
                .status
                .assignment
                .as_ref()
                .is_some_and(|assignment| assignment.cluster_uid == *home.cluster_uid);
            if !here || job.status.phase.is_terminal() {
                continue;
            }
            let mirror = home
                .jobs
                .get(&job.key)
                .filter(|object| object.label(names::JOB_UID) == &*job.uid);
            let template = job.spec.template.to_value();
            let gang = Workload::read(&template);
            wanted += mirror.map_or(gang.parallelism.min(gang.completions), |object| {
                object.wanted().max(home.live_pods(&object.uid) as i64)
            });
        }
        let slots = home.slots(gpus);
        assert!(
            wanted <= slots,
            "I2: {wanted} members of {gpus} devices are promised on {}, which takes {slots}",
            home.name
        );
    }

    // --- at the end ---

    /// I8: whatever can be placed has been placed and has ended; others wait, and say so. Else what has not.
    pub fn unsettled(&self) -> Option<String> {
        let jobs = &self.manager.jobs;
        let orphan = self.workers.iter().find_map(|worker| {
            let ours = |uid: &Arc<str>| self.truth.mirrors.get(uid).map(|facts| &facts.job_uid);
            let orphan = |uid| ours(uid).is_some_and(|job_uid| !jobs.values().any(|job| job.uid == *job_uid));
            let found = worker.jobs.iter().find(|(_, object)| orphan(&object.uid));
            found.map(|(key, object)| format!("{key} {} is an orphan on {}", object.uid, worker.name))
        });
        orphan.or_else(|| jobs.values().find_map(|job| self.unsettled_job(job)))
    }

    fn unsettled_job(&self, job: &JobView) -> Option<String> {
        let (key, status) = (&job.key, &job.status);
        let said = |what: &str| Some(format!("{key} {what}: {status:?}"));
        if job.deleted.is_some() {
            return said("is deleted and does not go (I5)");
        }
        if status.phase.is_terminal() && status.run == job.spec.run {
            return None;
        }
        if job.spec.suspend {
            let rests = status.phase == Phase::Suspended && status.assignment.is_none();
            return if rests {
                None
            } else {
                said("is suspended and does not rest")
            };
        }
        // One whose pods never start was taken for started once others had killed some of them.
        let workload = Workload::read(&job.spec.template.to_value());
        if workload.fate == Fate::NeverStarts && status.phase == Phase::Running {
            return None;
        }
        if (0..self.workers.len()).any(|worker| self.could_run(job, worker)) {
            return said("could run and has not (I8)");
        }
        if status.phase == Phase::Queued {
            None
        } else {
            said("waits and does not say so")
        }
    }

    fn could_run(&self, job: &JobView, worker: usize) -> bool {
        let home = &self.workers[worker];
        let Some(cluster) = self.manager.clusters.get(&home.name) else {
            return false;
        };
        let selector = job.spec.placement.cluster_selector.as_ref();
        let labels = selector.and_then(|selector| selector.match_labels.as_ref());
        let matches =
            labels.is_none_or(|labels| labels.iter().all(|(key, value)| cluster.labels.get(key) == Some(value)));
        let workload = Workload::read(&job.spec.template.to_value());
        matches
            && home.namespaces.contains(&job.key.namespace)
            && !self
                .truth
                .foreign
                .iter()
                .any(|(at, key, ..)| *at == worker && *key == job.key)
            && !self
                .truth
                .mirrors
                .values()
                .any(|facts| facts.worker == worker && facts.job_uid == job.uid && facts.woken)
            && home.slots(workload.gpus) >= workload.parallelism.min(workload.completions)
    }

    /// I3: the objects of others are as they were.
    pub fn assert_foreign_untouched(&self) {
        for (worker, key, uid, document) in &self.truth.foreign {
            let object = self.workers[*worker].jobs.get(key);
            let same = object.is_some_and(|object| object.uid == *uid && object.document["spec"] == document["spec"]);
            assert!(
                same,
                "I3: {key} {uid} on w{worker} is not what its owner left: {object:?}"
            );
        }
    }

    /// I5: nothing of ours is left but the leases. Else what is.
    pub fn leftover(&self) -> Option<String> {
        if let Some(key) = self.manager.jobs.keys().next() {
            return Some(format!("job {key}"));
        }
        let debts = |cluster: &WorkerView| !cluster.status.debts.is_empty();
        if let Some(cluster) = self.manager.clusters.values().find(|cluster| debts(cluster)) {
            return Some(format!("debts of {}: {:?}", cluster.name, cluster.status.debts));
        }
        self.workers.iter().find_map(|worker| {
            let ours = |uid: &Arc<str>| self.truth.mirrors.contains_key(uid);
            let object = worker.jobs.iter().find(|(_, object)| ours(&object.uid));
            let owned = |pod: &&Pod| pod.owner.as_ref().is_some_and(|(_, uid)| ours(uid));
            let pod = worker.pods.values().find(owned);
            object
                .map(|(key, object)| format!("{key} {} on {}", object.uid, worker.name))
                .or_else(|| pod.map(|pod| format!("pod {} on {}", pod.name, worker.name)))
        })
    }

    pub fn assert_nothing_left(&self) {
        if let Some(left) = self.leftover() {
            panic!("I5: {left} is left");
        }
    }

    /// Runs until `open` finds nothing any more, which must be within `limit`.
    pub fn settle(&mut self, limit: Ms, open: impl Fn(&Self) -> Option<String>) {
        let until = self.now + limit;
        self.run_for(MINUTE);
        while let Some(what) = open(self) {
            assert!(self.now < until, "after {} s of peace: {what}", limit / SECOND);
            self.run_for(5 * MINUTE);
        }
    }

    /// I10: nothing is written for as long as that.
    pub fn assert_quiet(&mut self, span: Ms) {
        let since = self.now;
        self.run_for(span);
        assert!(
            self.last_write < since,
            "I10: nothing happens, and something is written {} ms later",
            self.last_write - since
        );
    }
}
