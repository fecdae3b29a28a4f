//! Requests of the operator on workers, judged at the moment they take effect.

use std::sync::Arc;

use multikueue::api::names;
use multikueue::dispatcher::{Answer, Refusal, Request};
use multikueue::lifecycle::view::JobKey;
use serde_json::Value;

use crate::checks::MirrorFacts;
use crate::object::Object;
use crate::world::{Occurrence, World};

impl World {
    pub fn commit_worker(&mut self, worker: usize, request: &Request) -> Result<Answer, Refusal> {
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
