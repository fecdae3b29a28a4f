//! Requests at their server: what the operator did is judged at the moment it takes effect.

use std::sync::Arc;

use multikueue::api::job::{Assignment, Phase};
use multikueue::api::{MultiKueueJobStatus, names};
use multikueue::dispatcher::{Effect, Outcome, Request, Target};
use multikueue::lifecycle::view::{JobKey, JobView};
use serde_json::Value;

use crate::checks::MirrorFacts;
use crate::object::Object;
use crate::plan::Workload;
use crate::world::{Occurrence, World};

impl World {
    /// A request takes effect.
    pub fn commit(&mut self, generation: u32, effect: &Effect) -> Outcome {
        let result = match &effect.target {
            Target::Manager => self.commit_manager(generation, &effect.request),
            Target::Worker(name) => {
                let worker = self.worker_of(name);
                self.commit_worker(worker, &effect.request)
            }
        };
        match result {
            Ok(answer) => Outcome::Done(answer),
            Err(refusal) => Outcome::Refused(refusal),
        }
    }

    // --- manager ---

    fn commit_manager(
        &mut self,
        generation: u32,
        request: &Request,
    ) -> Result<multikueue::dispatcher::Answer, multikueue::dispatcher::Refusal> {
        let job = match request {
            Request::WriteJobStatus { key, .. } | Request::SetJobFinalizers { key, .. } => {
                self.manager.jobs.get(key).cloned()
            }
            _ => None,
        };
        let cluster = match request {
            Request::WriteWorkerStatus { name, .. } | Request::SetWorkerFinalizers { name, .. } => {
                self.manager.clusters.get(name).cloned()
            }
            _ => None,
        };
        let result = self.manager.execute(request);
        let answer = result?;
        match (request, job, cluster) {
            (Request::WriteJobStatus { status, .. }, Some(job), _) => self.check_status(generation, &job, status),
            (Request::SetJobFinalizers { finalizers, .. }, Some(job), _) => self.check_finalizers(&job, finalizers),
            (Request::WriteWorkerStatus { status, .. }, _, Some(cluster)) => {
                if let Some(uid) = &cluster.status.cluster_uid {
                    assert_eq!(
                        status.cluster_uid.as_ref(),
                        Some(uid),
                        "the pinned clusterUID of {} changes",
                        cluster.name
                    );
                }
                for debt in status.debts.iter().filter(|debt| !cluster.status.debts.contains(debt)) {
                    let alive = self
                        .manager
                        .jobs
                        .values()
                        .any(|job| *job.uid == *debt.job_uid && job.deleted.is_none());
                    assert!(!alive, "a debt is written for a job that nobody deleted: {debt:?}");
                }
            }
            (Request::SetWorkerFinalizers { finalizers, .. }, _, Some(cluster)) => {
                only_ours(&cluster.finalizers, finalizers);
            }
            _ => {}
        }
        Ok(answer)
    }

    fn check_finalizers(&self, job: &JobView, after: &[String]) {
        only_ours(&job.finalizers, after);
        let ours = |list: &[String]| list.iter().any(|name| name == names::FINALIZER);
        if ours(&job.finalizers) && !ours(after) {
            // A finished mirror holds nothing: its last pods may still die.
            let copies = self.live_copies(&job.uid);
            let copies: Vec<_> = copies
                .iter()
                .filter(|uid| self.truth.mirrors[*uid].ended.is_none())
                .collect();
            // Time is up by a clock that may be wrong; what may run is owed then.
            let owed = self.manager.clusters.values().any(|cluster| {
                let debts = &cluster.status.debts;
                debts.iter().any(|debt| *debt.job_uid == *job.uid)
            });
            assert!(
                copies.is_empty() || owed,
                "I5: {} loses its finalizer while {copies:?} may run, and nobody owes their removal",
                job.key
            );
        }
    }

    fn check_status(&mut self, generation: u32, job: &JobView, after: &MultiKueueJobStatus) {
        let (key, before) = (&job.key, &job.status);
        assert!(
            after.observed_generation <= job.generation,
            "{key}: a generation is observed that does not exist"
        );
        check_conditions(key, before, after);

        // I4: a result is for ever, counters only grow.
        assert!(
            after.last_attempt >= before.last_attempt,
            "I4: the attempts of {key} are counted back: {after:?}"
        );
        assert!(
            after.run >= before.run && after.run <= job.spec.run,
            "I4: the run of {key} goes back or ahead: {after:?}"
        );
        if before.run == after.run {
            if before.phase.is_terminal() {
                assert_eq!(before.phase, after.phase, "I4: the result of {key} changes");
                assert_eq!(
                    before.completion_time, after.completion_time,
                    "I4: the end of {key} changes"
                );
            }
            assert!(
                after.failed_attempts >= before.failed_attempts,
                "I4: failed attempts of {key} are forgotten"
            );
        } else {
            let ended = before.phase.is_terminal() || before.assignment.is_none();
            assert!(
                ended,
                "I4: a new run of {key} begins before the old one ended: {before:?}"
            );
        }
        let numbers: Vec<i64> = after.attempts.iter().map(|attempt| attempt.number).collect();
        assert!(
            numbers.is_sorted_by(|a, b| a < b),
            "I4: an attempt of {key} is counted twice: {numbers:?}"
        );
        if !before.phase.is_terminal() || before.run != after.run {
            self.check_result(job, after);
        }

        match (&before.assignment, &after.assignment) {
            (Some(old), Some(new)) if old.number == new.number => check_same_attempt(key, old, new),
            (old, new) => {
                if let Some(old) = old {
                    self.check_left(job, old);
                }
                if let Some(new) = new {
                    self.check_assigned(generation, job, after, new);
                }
            }
        }
        if let Some(assignment) = &after.assignment
            && let Some(uid) = &assignment.mirror_uid
            && before.assignment.as_ref().is_none_or(|old| old.mirror_uid.is_none())
        {
            let facts = self.truth.mirrors.get(uid.as_str());
            let fits = facts.is_some_and(|facts| facts.job_uid == job.uid && facts.number == assignment.number);
            assert!(
                fits,
                "{key}: {uid} is recorded, which is not the mirror of attempt {}: {facts:?}",
                assignment.number
            );
        }
    }

    fn check_result(&self, job: &JobView, after: &MultiKueueJobStatus) {
        let mut mirrors = self
            .truth
            .mirrors
            .values()
            .filter(|facts| facts.job_uid == job.uid && facts.run == after.run);
        match after.phase {
            Phase::Succeeded => {
                assert!(
                    mirrors.any(|facts| facts.ended == Some(true)),
                    "I4: {} Succeeded, and no mirror of it did",
                    job.key
                );
            }
            Phase::Failed => {
                let tried = after.failed_attempts >= job.spec.policy.max_attempts;
                let cause =
                    mirrors.any(|facts| facts.deleted_by_hand || (facts.ended == Some(false) && !facts.ended_by_us));
                assert!(tried || cause, "I4: {} Failed without a cause: {after:#?}", job.key);
                assert!(
                    tried || !self.truth.has_result(&job.uid, after.run),
                    "I4: {} Failed although a mirror of it is complete",
                    job.key
                );
            }
            _ => {}
        }
    }

    /// An attempt is over: nothing of it can run any more.
    fn check_left(&self, job: &JobView, old: &Assignment) {
        let Some(uid) = &old.mirror_uid else { return };
        let Some(facts) = self.truth.mirrors.get(uid.as_str()) else {
            return;
        };
        let worker = &self.workers[facts.worker];
        let left = worker.jobs.values().find(|object| *object.uid == **uid);
        let ended = left.is_none_or(|object| object.status.terminal.is_some());
        assert!(
            ended,
            "{} leaves attempt {} while {uid} is there: {left:?}",
            job.key, old.number
        );
        assert_eq!(
            worker.live_pods(uid),
            0,
            "{} leaves attempt {} while pods of {uid} may run",
            job.key,
            old.number
        );
    }

    fn check_assigned(&mut self, generation: u32, job: &JobView, after: &MultiKueueJobStatus, new: &Assignment) {
        let key = &job.key;
        assert_eq!(
            new.number,
            job.status.last_attempt + 1,
            "I4: attempts of {key} are numbered one by one"
        );
        assert_eq!(
            new.number, after.last_attempt,
            "I4: the number of the attempt of {key} is the last"
        );
        let facts = self.truth.jobs.get_mut(&job.uid).expect("a job of a user");
        assert!(
            new.number > facts.number,
            "I4: attempt {} of {key} is numbered twice",
            new.number
        );
        facts.number = new.number;
        assert!(
            job.finalizers.iter().any(|name| name == names::FINALIZER),
            "{key} is assigned without our finalizer"
        );
        let same_run = job.status.run == after.run;
        assert!(
            !(same_run && job.status.phase.is_terminal()),
            "I4: {key} has ended and is assigned again: {after:?}"
        );
        assert!(
            new.mirror_uid.is_none() && new.revoking.is_none(),
            "{key}: a new assignment is bare: {new:?}"
        );
        let worker = self
            .workers
            .iter()
            .position(|worker| *worker.cluster_uid == *new.cluster_uid);
        let worker = worker.unwrap_or_else(|| panic!("{key} is assigned to nowhere: {new:?}"));
        // Writes of a former leader are promises that this one cannot know of.
        if generation == 1 {
            self.check_room(worker, Workload::read(&job.spec.template.to_value()).gpus);
        }
    }

    // --- workers ---

    fn commit_worker(
        &mut self,
        worker: usize,
        request: &Request,
    ) -> Result<multikueue::dispatcher::Answer, multikueue::dispatcher::Refusal> {
        let key = match request {
            Request::CreateMirror {
                key, dry_run: false, ..
            }
            | Request::JsonPatchMirror { key, .. }
            | Request::MergePatchMirror { key, .. }
            | Request::DeleteMirror { key, .. } => Some(key.clone()),
            _ => None,
        };
        let before = key.as_ref().and_then(|key| self.workers[worker].jobs.get(key).cloned());
        let result = self.workers[worker].execute(request);
        let (Ok(_), Some(key)) = (&result, key) else {
            return result;
        };
        self.truth.stirred = true;
        match (request, before) {
            (Request::CreateMirror { .. }, _) => self.check_created(worker, &key),
            (Request::DeleteMirror { .. }, Some(before)) => self.check_deleted(worker, &key, &before),
            (Request::JsonPatchMirror { patch, .. }, Some(before)) => {
                for path in ["/metadata/uid", "/metadata/deletionTimestamp"] {
                    assert!(tests(patch, path), "a release tests {path}: {patch}");
                }
                let nonce = format!("/metadata/annotations/{}", names::NONCE.replace('/', "~1"));
                assert!(tests(patch, &nonce), "a release tests the nonce: {patch}");
                self.check_patched(worker, &key, &before);
            }
            (Request::MergePatchMirror { patch, .. }, Some(before)) => {
                for name in ["uid", "resourceVersion"] {
                    assert!(patch["metadata"][name].is_string(), "a stop names the {name}: {patch}");
                }
                self.check_patched(worker, &key, &before);
            }
            _ => {}
        }
        result
    }

    fn check_created(&mut self, worker: usize, key: &JobKey) {
        let home = &self.workers[worker];
        let object = &home.jobs[key];
        assert!(
            object.asleep() || home.wakes,
            "a mirror is created awake: {}",
            object.document
        );
        let identity = object
            .identity()
            .unwrap_or_else(|| panic!("a mirror without marks: {}", object.document));
        assert_eq!(identity.origin, self.config.origin_hash);
        assert_eq!(identity.manager_uid, self.config.manager_uid);
        assert_eq!(*identity.cluster_uid, *home.cluster_uid);
        assert_eq!(object.annotation(names::ORIGIN_NAME), self.config.origin);
        assert!(
            !object.annotation(names::NONCE).is_empty(),
            "a mirror without a nonce: {}",
            object.document
        );
        let metadata = &object.document["metadata"];
        assert_eq!(
            (metadata["namespace"].as_str(), metadata["name"].as_str()),
            (Some(&*key.namespace), Some(&*key.name))
        );
        let job_uid: Arc<str> = identity.job_uid.as_str().into();
        let facts = self
            .truth
            .jobs
            .get(&job_uid)
            .unwrap_or_else(|| panic!("a mirror of no job: {}", object.document));
        let templates: Vec<Value> = facts
            .templates
            .iter()
            .map(|template| stripped(&template.to_value(), &job_uid))
            .collect();
        let spec = {
            let mut spec = object.document["spec"].clone();
            spec["suspend"] = Value::Null;
            spec
        };
        assert!(
            templates.contains(&spec),
            "I6: the mirror is not the template: {spec} {templates:?}"
        );
        let uid = Arc::clone(&object.uid);
        let facts = MirrorFacts {
            worker,
            job_uid,
            run: identity.run,
            number: identity.number,
            released: false,
            stopped: false,
            ended: None,
            ended_by_us: false,
            woken: home.wakes,
            deleted_by_hand: false,
        };
        self.truth.mirrors.insert(uid, facts);
        self.job_changed(worker, key);
    }

    fn check_patched(&mut self, worker: usize, key: &JobKey, before: &Object) {
        let after = &self.workers[worker].jobs[key];
        let fixed = |object: &Object| {
            let mut document = object.document.clone();
            document["spec"]["suspend"] = Value::Null;
            document["metadata"]["resourceVersion"] = Value::Null;
            document["metadata"]["annotations"][names::NONCE] = Value::Null;
            document
        };
        assert_eq!(
            fixed(before),
            fixed(after),
            "I3: more of {key} is changed than whether it sleeps"
        );
        let (was_asleep, asleep) = (before.asleep(), after.asleep());
        if was_asleep != asleep {
            assert_ne!(
                before.annotation(names::NONCE),
                after.annotation(names::NONCE),
                "{key}: a write without a new nonce"
            );
        }
        let job = self.manager.jobs.get(key);
        let facts = self.truth.mirrors.get_mut(&before.uid);
        let facts = facts.unwrap_or_else(|| panic!("I3: {key} {} on w{worker} is not ours and is changed", before.uid));
        let job = job.filter(|job| job.uid == facts.job_uid);
        let assignment = job.and_then(|job| job.status.assignment.as_ref());
        let recorded = assignment.filter(|assignment| assignment.mirror_uid.as_deref() == Some(&before.uid));
        let (run, job_uid) = (facts.run, Arc::clone(&facts.job_uid));
        if was_asleep && !asleep {
            assert!(!facts.released, "{key} {}: released a second time", before.uid);
            facts.released = true;
            assert!(
                job.is_none() || recorded.is_some(),
                "{key} {}: released and not recorded: {assignment:?}",
                before.uid
            );
            let ended = job.is_some_and(|job| job.status.run == run && job.status.phase.is_terminal());
            assert!(!ended, "I4: {key} has its result and is released again");
            assert!(
                !self.truth.has_result(&job_uid, run),
                "I4: {key} was complete once and is released again"
            );
        } else if !was_asleep && asleep {
            if before.status.terminal.is_none() {
                facts.stopped = true;
            }
            let owed = recorded.is_none_or(|assignment| assignment.revoking.is_some());
            assert!(
                owed || !facts.released,
                "{key} {}: stopped, and nobody revoked it: {assignment:?}",
                before.uid
            );
        }
        self.job_changed(worker, key);
    }

    fn check_deleted(&mut self, worker: usize, key: &JobKey, before: &Object) {
        let job = self.manager.jobs.get(key);
        let facts = self.truth.mirrors.get_mut(&before.uid);
        let facts = facts.unwrap_or_else(|| panic!("I3: {key} {} on w{worker} is not ours and is deleted", before.uid));
        facts.stopped = true;
        let (run, woken) = (facts.run, facts.woken);
        if let Some(job) = job.filter(|job| job.uid == facts.job_uid)
            && let Some(assignment) = &job.status.assignment
            && assignment.mirror_uid.as_deref() == Some(&before.uid)
        {
            let result = job.status.run >= run && job.status.phase.is_terminal();
            let revoked = assignment.revoking.is_some();
            assert!(
                result || revoked,
                "{key} {}: deleted, and nobody revoked it: {:?}",
                before.uid,
                job.status
            );
            let complete = before.status.terminal.is_some_and(|(succeeded, _)| succeeded);
            assert!(
                !complete || result || job.deleted.is_some(),
                "I4: the result of {key} goes with its mirror"
            );
        }
        let left = self.workers[worker].live_pods(&before.uid);
        assert!(
            left == 0 || woken,
            "{key} {}: deleted with {left} pods that may run",
            before.uid
        );
        let delay = self.lag(self.weather.sync_lag);
        let owner = Arc::clone(&before.uid);
        self.after(
            delay,
            Occurrence::Collect {
                worker,
                key: key.clone(),
                owner,
            },
        );
    }
}

/// I6: the finalizers of others stay, in order.
fn only_ours(before: &[String], after: &[String]) {
    let others = |list: &[String]| {
        list.iter()
            .filter(|name| *name != names::FINALIZER)
            .cloned()
            .collect::<Vec<_>>()
    };
    assert_eq!(others(before), others(after), "I6: the finalizers of others are theirs");
    assert!(
        after.iter().filter(|name| *name == names::FINALIZER).count() <= 1,
        "our finalizer once: {after:?}"
    );
}

fn tests(patch: &Value, path: &str) -> bool {
    let operations = patch.as_array().map_or(&[][..], Vec::as_slice);
    operations
        .iter()
        .any(|operation| operation["op"] == "test" && operation["path"] == path)
}

/// The spec of a mirror of a template, but for `suspend`.
fn stripped(template: &Value, job_uid: &str) -> Value {
    let mut spec = template["spec"].clone();
    if let Some(fields) = spec.as_object_mut() {
        fields.remove("ttlSecondsAfterFinished");
        // Dying pods are shown, and replaced only when they are gone: else a job could hold more than its gang.
        fields.insert("podReplacementPolicy".into(), "Failed".into());
    }
    spec["suspend"] = Value::Null;
    spec["template"]["metadata"]["labels"][names::JOB_UID] = job_uid.into();
    spec
}

fn check_same_attempt(key: &JobKey, old: &Assignment, new: &Assignment) {
    let bound = |assignment: &Assignment| {
        (
            assignment.cluster.clone(),
            assignment.cluster_uid.clone(),
            assignment.run,
            assignment.claim.clone(),
            assignment.since.clone(),
        )
    };
    assert_eq!(bound(old), bound(new), "{key}: an attempt is not rewritten");
    if old.mirror_uid.is_some() {
        assert_eq!(old.mirror_uid, new.mirror_uid, "{key}: what is recorded stays");
    }
    if old.revoking.is_some() {
        assert_eq!(old.revoking, new.revoking, "{key}: revoking is never unset");
    }
}

fn check_conditions(key: &JobKey, before: &MultiKueueJobStatus, after: &MultiKueueJobStatus) {
    let is = |status: &MultiKueueJobStatus, name: &str| {
        let condition = status.conditions.iter().find(|condition| condition.type_ == name);
        condition.map_or("Unknown".to_owned(), |condition| condition.status.clone())
    };
    let mut names: Vec<&str> = after
        .conditions
        .iter()
        .map(|condition| condition.type_.as_str())
        .collect();
    names.sort_unstable();
    assert!(names.is_sorted_by(|a, b| a < b), "{key}: a condition twice: {names:?}");
    // Being taken off its worker is said by the reason, whatever the phase still is.
    if after
        .assignment
        .as_ref()
        .is_some_and(|assignment| assignment.revoking.is_some())
    {
        return;
    }
    let (name, value) = match after.phase {
        Phase::Queued | Phase::Assigned => ("Reconciling", "True"),
        Phase::Running | Phase::Succeeded => ("Ready", "True"),
        Phase::Failed => ("Stalled", "True"),
        Phase::Suspended => ("Ready", "False"),
        Phase::Unknown => {
            let (old, new) = (is(before, "Ready"), is(after, "Ready"));
            assert_eq!(old, new, "{key}: Ready keeps its last value while the worker is dark");
            return;
        }
    };
    assert_eq!(
        is(after, name),
        value,
        "{key} is {:?}: {:?}",
        after.phase,
        after.conditions
    );
}
