//! What users of workers do there by hand: to our mirrors, and with names that we use.

use std::sync::Arc;

use multikueue::api::names;
use multikueue::lifecycle::view::JobKey;
use serde_json::json;

use crate::world::{Occurrence, World};

impl World {
    /// A user of a worker does something to a mirror.
    pub fn meddle_with_mirror(&mut self) {
        let worker = self.rng.index(self.workers.len());
        let keys: Vec<JobKey> = self.workers[worker]
            .jobs
            .iter()
            .filter(|(_, object)| self.truth.mirrors.contains_key(&object.uid))
            .map(|(key, _)| key.clone())
            .collect();
        if keys.is_empty() {
            return;
        }
        let key = self.rng.pick(&keys);
        match self.rng.below(10) {
            0..4 => {
                let foreground = self.rng.chance(400);
                self.delete_by_hand(worker, &key, foreground);
            }
            4..7 => self.sleep_by_hand(worker, &key, true),
            7..9 => self.sleep_by_hand(worker, &key, false),
            // Anybody's annotation makes the versions that the operator knows old.
            _ => {
                if let Some(object) = self.workers[worker].jobs.get_mut(&key) {
                    let version = object.version.to_string();
                    object.document["metadata"]["annotations"]["example.com/note"] = json!(version);
                }
                self.workers[worker].changed_job(&key);
            }
        }
    }

    pub fn delete_by_hand(&mut self, worker: usize, key: &JobKey, foreground: bool) {
        let Some(object) = self.workers[worker].jobs.get_mut(key) else {
            return;
        };
        let owner = Arc::clone(&object.uid);
        self.trace.note(self.now, || {
            format!("user of w{worker} deletes {key} {owner}, foreground {foreground}")
        });
        if foreground {
            object.document["metadata"]["finalizers"] = json!(["foregroundDeletion"]);
        }
        self.workers[worker].delete(key);
        if let Some(facts) = self.truth.mirrors.get_mut(&owner) {
            facts.deleted_by_hand = true;
        }
        self.truth.stirred = true;
        let delay = self.lag(self.weather.sync_lag);
        self.after(
            delay,
            Occurrence::Collect {
                worker,
                key: key.clone(),
                owner,
            },
        );
        self.job_changed(worker, key);
    }

    pub fn sleep_by_hand(&mut self, worker: usize, key: &JobKey, asleep: bool) {
        let Some(object) = self.workers[worker].jobs.get_mut(key) else {
            return;
        };
        if object.asleep() == asleep || object.status.terminal.is_some() {
            return;
        }
        let uid = Arc::clone(&object.uid);
        object.set_asleep(asleep);
        self.trace.note(self.now, || {
            format!("user of w{worker} sets suspend of {key} {uid} to {asleep}")
        });
        // What others wake while we do not want it to run is their doing.
        if !asleep && let Some(facts) = self.truth.mirrors.get_mut(&uid) {
            facts.woken |= !facts.released || facts.stopped;
        }
        self.workers[worker].changed_job(key);
        self.truth.stirred = true;
        self.job_changed(worker, key);
    }

    /// Somebody else's object takes the name of a job on a worker, in one case with a copy of our label on it.
    pub fn squat(&mut self) {
        let Some(key) = self.some_job() else { return };
        let worker = self.rng.index(self.workers.len());
        let label = self.rng.chance(300);
        self.squat_on(worker, &key, label);
    }

    pub fn squat_on(&mut self, worker: usize, key: &JobKey, label: bool) {
        if self.workers[worker].jobs.contains_key(key) {
            return;
        }
        let mut document = json!({
            "apiVersion": "batch/v1", "kind": "Job",
            "metadata": {"name": &*key.name, "namespace": &*key.namespace},
            "spec": {"parallelism": 0, "completions": 0, "suspend": self.rng.chance(500)},
        });
        if label {
            document["metadata"]["labels"] = json!({names::ORIGIN: self.config.origin_hash, names::JOB_UID: "0000"});
        }
        let uid = self.workers[worker].create(key, document.clone());
        self.trace.note(self.now, || {
            format!("somebody creates {key} {uid} on w{worker}, with our label {label}")
        });
        self.truth.foreign.push((worker, key.clone(), uid, document));
    }
}
