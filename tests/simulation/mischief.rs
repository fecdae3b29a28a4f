//! What users, other tenants and the world do to the operator at random, and how all of it is put right in the end.

use std::sync::Arc;

use multikueue::api::names;
use multikueue::api::worker_cluster::{ClusterTaint, TaintEffect};
use multikueue::lifecycle::view::JobKey;

use crate::plan::{Fate, Plan, selector};
use crate::worker::{Phase, Pod, Road};
use crate::world::{MINUTE, Ms, Occurrence, SECOND, Weather, World};

const NAMES: [&str; 8] = ["a", "b", "c", "d", "e", "f", "g", "h"];

impl World {
    /// One turn of users and faults, and the time of the next.
    pub fn mischief(&mut self) {
        if self.turns == 0 {
            return;
        }
        self.turns -= 1;
        match self.rng.below(100) {
            0..25 => self.submit(),
            25..33 => self.delete_some(),
            33..40 => self.edit_some(),
            40..46 => self.raise_run(),
            46..55 => self.meddle_with_mirror(),
            55..60 => self.squat(),
            60..65 => self.other_pod(),
            65..74 => self.crash_some(),
            74..86 => self.road_work(),
            86..92 => {
                let choice = self.rng.index(64);
                self.relist(choice);
            }
            92..96 => self.node_fault(),
            96..98 => self.cluster_edit(),
            _ => self.set_clock(),
        }
        let pause = match self.rng.below(4) {
            0 => self.rng.between(1, 100),
            1 | 2 => self.rng.between(1, 10 * SECOND),
            _ => self.rng.between(1, 60 * SECOND),
        };
        self.after(pause, Occurrence::Mischief);
    }

    pub fn some_job(&mut self) -> Option<JobKey> {
        let keys: Vec<JobKey> = self.manager.jobs.keys().cloned().collect();
        (!keys.is_empty()).then(|| self.rng.pick(&keys))
    }

    pub fn random_plan(&mut self, name: &'static str) -> Plan {
        let pods = *[1, 1, 2, 3, 4].get(self.rng.index(5)).unwrap_or(&1);
        let mut plan = Plan::new(name).pods(pods).millis(self.rng.between(0, 60 * SECOND));
        plan.gpus = if self.truth.room_untrue {
            self.rng.pick(&[1, 1, 2, 4])
        } else {
            1
        };
        plan.fate = match self.rng.below(10) {
            0 | 1 => Fate::Fails,
            2 => Fate::NeverStarts,
            _ => Fate::Succeeds,
        };
        if self.rng.chance(200) {
            plan.completions = pods + self.rng.below(3) as i64;
        }
        plan.backoff_limit = self.rng.below(3) as i64;
        if self.rng.chance(250) {
            plan.region = Some(self.rng.pick(&["r0", "r1"]));
        }
        plan.policy.start_timeout_seconds = self.rng.between(30, 200) as i64;
        plan.policy.max_attempts = self.rng.between(1, 3) as i64;
        plan.policy.retain_mirror_seconds = self.rng.pick(&[0, 10, 300]);
        plan.policy.deletion_timeout_seconds = self.rng.pick(&[30, 120, 600]);
        plan
    }

    fn submit(&mut self) {
        let name = self.rng.pick(&NAMES);
        let key = JobKey::new("team", name);
        if !self.manager.jobs.contains_key(&key) {
            let plan = self.random_plan(name);
            self.create(&plan);
            if self.rng.chance(100) {
                self.manager
                    .edit_job_finalizers(&key, |list| list.push("example.com/keep".into()));
            }
        }
    }

    fn delete_some(&mut self) {
        let Some(key) = self.some_job() else { return };
        if self.rng.chance(60) {
            self.trace.note(self.now, || format!("{key} is gone by force"));
            self.manager.vanish_job(&key);
        } else {
            self.delete(&key);
        }
        // Applied again at once, if it is gone already.
        if self.rng.chance(300) && !self.manager.jobs.contains_key(&key) {
            let name = NAMES.into_iter().find(|name| **name == *key.name).unwrap_or("a");
            let plan = self.random_plan(name);
            self.create(&plan);
        }
    }

    fn edit_some(&mut self) {
        let Some(key) = self.some_job() else { return };
        match self.rng.below(5) {
            0 | 1 => {
                let suspend = self.rng.chance(500);
                self.suspend(&key, suspend);
            }
            2 => {
                let region = self.rng.pick(&[None, Some("r0"), Some("r1")]);
                self.trace.note(self.now, || format!("user wants {key} in {region:?}"));
                self.manager
                    .edit_job(&key, |spec| spec.placement.cluster_selector = region.map(selector));
            }
            3 => self.edit_template(&key),
            _ => self
                .manager
                .edit_job_finalizers(&key, |list| list.retain(|name| name == names::FINALIZER)),
        }
    }

    /// The template may change while nothing is assigned, or after the end together with a higher run.
    fn edit_template(&mut self, key: &JobKey) {
        let status = &self.manager.jobs[key].status;
        let ended = status.phase.is_terminal();
        if !ended && status.assignment.is_some() {
            return;
        }
        let template = self.random_plan("a").spec().template;
        self.trace
            .note(self.now, || format!("user edits the template of {key}"));
        self.manager.edit_job(key, |spec| {
            spec.template = template;
            if ended {
                spec.run += 1;
            }
        });
        let uid = Arc::clone(&self.manager.jobs[key].uid);
        self.truth.job_created(&uid, &self.manager.jobs[key]);
    }

    fn raise_run(&mut self) {
        let Some(key) = self.some_job() else { return };
        self.trace.note(self.now, || format!("user raises run of {key}"));
        self.manager.edit_job(&key, |spec| spec.run += 1);
    }

    /// A pod of another tenant.
    fn other_pod(&mut self) {
        if !self.truth.room_untrue {
            return;
        }
        let worker = self.rng.index(self.workers.len());
        let uid = self.workers[worker].uid("other");
        let pod = Pod {
            namespace: "others".into(),
            name: Arc::clone(&uid),
            owner: None,
            job_uid: None,
            gpus: self.rng.between(1, 4) as i64,
            node: None,
            phase: Phase::Pending,
            deleting: false,
            counted: true,
            millis: self.rng.between(SECOND, 5 * MINUTE),
            fate: Fate::Succeeds,
        };
        self.trace.note(self.now, || format!("others run {uid} on w{worker}"));
        self.add_pod(worker, &uid, pod);
    }

    fn crash_some(&mut self) {
        if self.generation < 12 {
            let away = self.rng.pick(&[1, 100, 5 * SECOND, 90 * SECOND]);
            self.crash(away);
        }
    }

    fn road_work(&mut self) {
        if self.rng.chance(80) {
            self.manager_away = true;
            self.trace.note(self.now, || "the manager is away".to_owned());
            return;
        }
        self.manager_away = false;
        let worker = self.rng.index(self.workers.len());
        let road = self.rng.pick(&[Road::Open, Road::Open, Road::Cut, Road::BlackHole]);
        self.set_road(worker, road);
    }

    pub fn set_road(&mut self, worker: usize, road: Road) {
        self.workers[worker].road = road;
        self.trace
            .note(self.now, || format!("the road to w{worker} is {road:?}"));
        let generation = self.generation;
        let delay: Ms = match road {
            Road::Open => self.rng.between(1, 5 * SECOND),
            Road::Cut => self.rng.between(1, 500),
            Road::BlackHole => self.rng.between(5 * SECOND, 40 * SECOND),
        };
        self.after(delay, Occurrence::Link { generation, worker });
    }

    fn node_fault(&mut self) {
        if !self.truth.room_untrue {
            return;
        }
        let worker = self.rng.index(self.workers.len());
        let index = self.rng.index(self.workers[worker].nodes.len());
        let (ready, cordoned) = (self.rng.chance(600), self.rng.chance(300));
        let node = &mut self.workers[worker].nodes[index];
        (node.ready, node.cordoned) = (ready, cordoned);
        self.trace.note(self.now, || {
            format!("node {index} of w{worker}: ready {ready}, cordoned {cordoned}")
        });
        self.workers[worker].changed_node(index);
        self.room_made(worker);
    }

    fn cluster_edit(&mut self) {
        let worker = self.rng.index(self.workers.len());
        let name = Arc::clone(&self.workers[worker].name);
        match self.rng.below(4) {
            0 => self.manager.edit_cluster(&name, |spec| spec.cordoned = !spec.cordoned),
            1 => self.manager.edit_cluster(&name, |spec| {
                spec.taints = if spec.taints.is_empty() {
                    vec![ClusterTaint {
                        key: "dedicated".into(),
                        value: None,
                        effect: TaintEffect::NoSchedule,
                    }]
                } else {
                    Vec::new()
                };
            }),
            _ => {
                let denies = self.rng.chance(500);
                self.trace
                    .note(self.now, || format!("w{worker} denies new objects: {denies}"));
                self.workers[worker].denies = denies;
            }
        }
    }

    fn set_clock(&mut self) {
        self.wall_skew = self.rng.pick(&[0, 0, -3_600_000, -30_000, 30_000, 600_000]);
        let skew = self.wall_skew;
        self.trace
            .note(self.now, || format!("the clock of the operator is {skew} ms off"));
    }

    /// Faults stop, and what users broke they put right.
    pub fn make_peace(&mut self) {
        self.trace.note(self.now, || "--- peace ---".to_owned());
        self.turns = 0;
        self.weather = Weather::calm();
        self.manager_away = false;
        self.claim_length = 15 * MINUTE;
        self.wall_skew = 0;
        for worker in 0..self.workers.len() {
            self.workers[worker].denies = false;
            self.set_road(worker, Road::Open);
            for node in 0..self.workers[worker].nodes.len() {
                self.workers[worker].nodes[node].ready = true;
                self.workers[worker].nodes[node].cordoned = false;
                self.workers[worker].changed_node(node);
            }
            self.room_made(worker);
            let name = Arc::clone(&self.workers[worker].name);
            self.manager.edit_cluster(&name, |spec| {
                spec.cordoned = false;
                spec.taints.clear();
            });
            let asleep: Vec<JobKey> = self.workers[worker].jobs.keys().cloned().collect();
            for key in asleep {
                let uid = Arc::clone(&self.workers[worker].jobs[&key].uid);
                let slept = self
                    .truth
                    .mirrors
                    .get(&uid)
                    .is_some_and(|facts| facts.released && !facts.stopped);
                if slept {
                    self.sleep_by_hand(worker, &key, false);
                }
            }
        }
        let keys: Vec<JobKey> = self.manager.jobs.keys().cloned().collect();
        for key in keys {
            self.manager
                .edit_job_finalizers(&key, |list| list.retain(|name| name == names::FINALIZER));
        }
    }

    /// Everybody deletes everything.
    pub fn delete_all(&mut self) {
        let keys: Vec<JobKey> = self.manager.jobs.keys().cloned().collect();
        for key in keys {
            self.delete(&key);
        }
    }
}
