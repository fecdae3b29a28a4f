//! Requests at their server, and those on the manager judged at the moment they take effect.

use multikueue::api::job::{Assignment, Phase};
use multikueue::api::{MultiKueueJobStatus, names};
use multikueue::dispatcher::{Answer, Effect, Outcome, Refusal, Request, Target};
use multikueue::lifecycle::view::{JobKey, JobView};

use crate::plan::Workload;
use crate::world::World;

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

    fn commit_manager(&mut self, generation: u32, request: &Request) -> Result<Answer, Refusal> {
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
