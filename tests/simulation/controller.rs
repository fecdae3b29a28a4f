//! The Job controller, the scheduler, the kubelets and the garbage collector of a worker, with their delays.

use std::sync::Arc;

use multikueue::api::names;
use multikueue::lifecycle::view::{JobKey, ResourceVersion};

use crate::object::Object;
use crate::plan::Fate;
use crate::worker::{Phase, Pod};
use crate::world::{Occurrence, SECOND, World};

/// What the Job controller read of an object before it acts on it.
#[derive(Debug, Clone)]
pub struct Snapshot {
    uid: Arc<str>,
    version: ResourceVersion,
    asleep: bool,
    deleting: bool,
    object: Box<Object>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PodStep {
    Bind,
    Run,
    Finish,
    Vanish,
}

impl World {
    /// Something changed about a Job or its pods.
    pub fn job_changed(&mut self, worker: usize, key: &JobKey) {
        let Some(object) = self.workers[worker].jobs.get_mut(key) else {
            return;
        };
        if object.syncing {
            object.dirty = true;
        } else {
            object.syncing = true;
            let uid = Arc::clone(&object.uid);
            let delay = self.lag(self.weather.sync_lag);
            self.after(
                delay,
                Occurrence::Sync {
                    worker,
                    key: key.clone(),
                    uid,
                },
            );
        }
    }

    /// It reads the object; what it does follows later, and the object may change in between.
    pub fn sync(&mut self, worker: usize, key: JobKey, uid: &Arc<str>) {
        let Some(object) = self.workers[worker]
            .jobs
            .get_mut(&key)
            .filter(|object| object.uid == *uid)
        else {
            return;
        };
        object.dirty = false;
        let saw = Snapshot {
            uid: Arc::clone(&object.uid),
            version: object.version,
            asleep: object.asleep(),
            deleting: object.deleting(),
            object: Box::new(object.clone()),
        };
        let delay = self.lag(self.weather.sync_lag);
        self.after(delay, Occurrence::Act { worker, key, saw });
    }

    pub fn act(&mut self, worker: usize, key: &JobKey, saw: &Snapshot) {
        let now = self.wall();
        let before = &saw.object.status;
        let mut status = before.clone();
        let owned: Vec<Arc<str>> = self.workers[worker].owned(&saw.uid);
        let count = |world: &Self, test: &dyn Fn(&Pod) -> bool| {
            owned
                .iter()
                .filter_map(|uid| world.workers[worker].pods.get(uid))
                .filter(|pod| test(pod))
                .count() as i64
        };
        let died = self.workers[worker]
            .jobs
            .get(key)
            .filter(|object| object.uid == saw.uid)
            .map_or(0, |object| object.uncounted_failures);
        status.succeeded += count(self, &|pod| pod.phase == Phase::Succeeded && !pod.counted);
        status.failed += count(self, &|pod| pod.phase == Phase::Failed && !pod.counted) + died;

        let workload = saw.object.workload.clone();
        let failing = status.failed > workload.backoff_limit;
        let complete = status.succeeded >= workload.completions;
        if before.terminal.is_none() {
            if failing || complete || saw.asleep {
                for uid in &owned {
                    self.stop_pod(worker, uid);
                }
            }
            let left = count(self, &Pod::live);
            if (failing || complete) && (left == 0 || (failing && self.workers[worker].fails_early)) {
                status.terminal = Some((!failing, now));
            }
            if saw.asleep {
                if !failing && !complete {
                    status.suspended = Some(true);
                    status.start_time = None;
                }
            } else if !saw.deleting {
                if status.start_time.is_none() {
                    status.start_time = Some(now);
                    status.suspended = status.suspended.map(|_| false);
                }
                if !failing && !complete {
                    let patient = saw.object.document["spec"]["podReplacementPolicy"] == "Failed";
                    let active = count(self, &|pod| pod.live() && (patient || !pod.deleting));
                    let wanted = workload.parallelism.min(workload.completions - status.succeeded);
                    for _ in active..wanted {
                        self.create_pod(worker, key, saw);
                    }
                }
            }
        }
        let owned = self.workers[worker].owned(&saw.uid);
        let pods = &self.workers[worker].pods;
        let count = |test: &dyn Fn(&Pod) -> bool| owned.iter().filter(|uid| test(&pods[*uid])).count() as i64;
        status.active = count(&|pod| pod.live() && !pod.deleting);
        status.ready = count(&|pod| pod.phase == Phase::Running && !pod.deleting);
        status.terminating = count(&|pod| pod.live() && pod.deleting);

        let Some(object) = self.workers[worker]
            .jobs
            .get_mut(key)
            .filter(|object| object.uid == saw.uid)
        else {
            self.act_too_late(worker, key, saw);
            return;
        };
        object.syncing = false;
        let again = object.dirty || object.version != saw.version;
        if object.version == saw.version && *before != status {
            let ended = before.terminal.is_none().then_some(status.terminal).flatten();
            object.status = status;
            object.uncounted_failures -= died;
            for uid in &owned {
                if let Some(pod) = self.workers[worker].pods.get_mut(uid)
                    && !pod.live()
                {
                    pod.counted = true;
                }
            }
            self.workers[worker].changed_job(key);
            self.trace.note(self.now, || {
                format!(
                    "    w{worker} {key} {} status {:?}",
                    saw.uid, self.workers[worker].jobs[key].status
                )
            });
            if let Some((succeeded, _)) = ended {
                self.truth.mirror_ended(&saw.uid, succeeded);
            }
        }
        if again {
            self.job_changed(worker, key);
        }
    }

    /// The object is gone, and pods may have been made for it all the same.
    fn act_too_late(&mut self, worker: usize, key: &JobKey, saw: &Snapshot) {
        // Where another hand deleted it, nobody could wait for that.
        if let Some(facts) = self.truth.mirrors.get_mut(&saw.uid) {
            facts.woken |= facts.deleted_by_hand;
        }
        let owner = Arc::clone(&saw.uid);
        self.after(
            SECOND,
            Occurrence::Collect {
                worker,
                key: key.clone(),
                owner,
            },
        );
    }

    fn create_pod(&mut self, worker: usize, key: &JobKey, saw: &Snapshot) {
        let uid = self.workers[worker].uid("pod");
        let label = format!("/spec/template/metadata/labels/{}", names::JOB_UID.replace('/', "~1"));
        let job_uid = saw.object.document.pointer(&label).and_then(|value| value.as_str());
        let workload = &saw.object.workload;
        let pod = Pod {
            namespace: Arc::clone(&key.namespace),
            name: format!("{}-{uid}", key.name).into(),
            owner: Some((key.clone(), Arc::clone(&saw.uid))),
            job_uid: job_uid.map(Into::into),
            gpus: workload.gpus,
            node: None,
            phase: Phase::Pending,
            deleting: false,
            counted: false,
            millis: workload.millis,
            fate: workload.fate,
        };
        self.trace.note(self.now, || {
            format!("    w{worker} pod {uid} of {key} {} is created", saw.uid)
        });
        self.add_pod(worker, &uid, pod);
    }

    pub fn add_pod(&mut self, worker: usize, uid: &Arc<str>, pod: Pod) {
        self.workers[worker].pods.insert(Arc::clone(uid), pod);
        self.truth.stirred = true;
        self.pod_after(worker, uid, PodStep::Bind, self.weather.sync_lag);
    }

    fn pod_after(&mut self, worker: usize, uid: &Arc<str>, step: PodStep, longest: u64) {
        let delay = self.lag(longest);
        let uid = Arc::clone(uid);
        self.after(delay, Occurrence::Pod { worker, uid, step });
    }

    pub fn pod_step(&mut self, worker: usize, uid: &Arc<str>, step: PodStep) {
        let Some(pod) = self.workers[worker].pods.get(uid) else {
            return;
        };
        let (live, deleting, gpus, millis, fate) = (pod.live(), pod.deleting, pod.gpus, pod.millis, pod.fate);
        let (bound, running) = (pod.node.is_some(), pod.phase == Phase::Running);
        let owner = pod.owner.clone();
        match step {
            PodStep::Bind if live && !bound && !deleting => {
                let home = &self.workers[worker];
                let fitting: Vec<usize> = (0..home.nodes.len())
                    .filter(|node| home.nodes[*node].ready && !home.nodes[*node].cordoned && home.free(*node) >= gpus)
                    .collect();
                // Without room it waits for the next change that makes some.
                if !fitting.is_empty() {
                    let node = self.rng.pick(&fitting);
                    self.update_pod(worker, uid, |pod| pod.node = Some(node));
                    if fate != Fate::NeverStarts {
                        self.pod_after(worker, uid, PodStep::Run, self.weather.sync_lag);
                    }
                }
            }
            PodStep::Run if live && bound && !deleting && !running => {
                self.update_pod(worker, uid, |pod| pod.phase = Phase::Running);
                let uid = Arc::clone(uid);
                self.after(
                    millis,
                    Occurrence::Pod {
                        worker,
                        uid,
                        step: PodStep::Finish,
                    },
                );
            }
            // A pod that is told to stop may still end by itself.
            PodStep::Finish if live && running => {
                let phase = if fate == Fate::Fails {
                    Phase::Failed
                } else {
                    Phase::Succeeded
                };
                self.update_pod(worker, uid, |pod| pod.phase = phase);
                self.room_made(worker);
            }
            PodStep::Vanish => {
                // One that ended by itself meanwhile is kept until it is counted.
                if !live {
                    return;
                }
                if self.workers[worker].dying_counts
                    && let Some((key, owner)) = &owner
                    && let Some(object) = self.workers[worker]
                        .jobs
                        .get_mut(key)
                        .filter(|object| object.uid == *owner)
                {
                    object.uncounted_failures += 1;
                }
                self.workers[worker].remove_pod(uid);
                self.truth.stirred = true;
                self.room_made(worker);
            }
            _ => return,
        }
        if let Some((key, _)) = owner {
            self.job_changed(worker, &key);
        }
    }

    fn update_pod(&mut self, worker: usize, uid: &Arc<str>, change: impl FnOnce(&mut Pod)) {
        if let Some(pod) = self.workers[worker].pods.get_mut(uid) {
            change(pod);
            self.truth.stirred = true;
            self.workers[worker].changed_pod(uid);
        }
    }

    /// DELETE of a pod: one that is bound takes its time.
    pub fn stop_pod(&mut self, worker: usize, uid: &Arc<str>) {
        let Some(pod) = self.workers[worker].pods.get(uid) else {
            return;
        };
        if !pod.live() || pod.deleting {
            return;
        }
        let owner = pod.owner.clone();
        if pod.node.is_some() {
            self.update_pod(worker, uid, |pod| pod.deleting = true);
            self.pod_after(worker, uid, PodStep::Vanish, self.weather.grace);
        } else {
            self.workers[worker].remove_pod(uid);
            self.truth.stirred = true;
        }
        if let Some((key, _)) = owner {
            self.job_changed(worker, &key);
        }
    }

    /// Pods that wait for room are looked at again.
    pub fn room_made(&mut self, worker: usize) {
        let waiting: Vec<Arc<str>> = self.workers[worker]
            .pods
            .iter()
            .filter(|(_, pod)| pod.live() && pod.node.is_none())
            .map(|(uid, _)| Arc::clone(uid))
            .collect();
        for uid in waiting {
            self.pod_after(worker, &uid, PodStep::Bind, self.weather.sync_lag);
        }
    }

    /// The garbage collector: pods of an owner that is gone are deleted, and an owner that waits for its pods follows them.
    pub fn collect(&mut self, worker: usize, key: JobKey, owner: Arc<str>) {
        let present = self.workers[worker].jobs.get(&key).filter(|object| object.uid == owner);
        let foreground = present.map(Object::deleting);
        if foreground == Some(false) {
            return;
        }
        let owned = self.workers[worker].owned(&owner);
        for uid in &owned {
            if self.workers[worker].pods[uid].live() {
                self.stop_pod(worker, uid);
            } else {
                self.workers[worker].remove_pod(uid);
            }
        }
        if self.workers[worker].live_pods(&owner) > 0 {
            self.after(SECOND, Occurrence::Collect { worker, key, owner });
        } else if foreground == Some(true) {
            self.workers[worker].remove_job(&key);
            self.truth.stirred = true;
        }
    }
}
