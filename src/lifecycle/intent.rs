//! Every status that the operator writes on a job (design 5.1), each as a pure function of the job as the manager returned it.
//!
//! A status is always written whole and under the resourceVersion of the view it was made from; a leader with a stale view fails there.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;

use crate::api::conditions::{self, JobReason};
use crate::api::job::{Assignment, Attempt, AttemptOutcome, Phase, RevokeReason, Revoking, Waiting};
use crate::api::{MultiKueueJobStatus, Now};
use crate::workload::Terminal;

use super::news::{queued_at, waiting_words};
use super::nonce::Wrote;
use super::view::{JobView, MirrorView, Plan};

/// How many ended attempts a status keeps.
const ATTEMPTS_KEPT: usize = 10;

/// Makes statuses from a job as it is now.
#[derive(Debug, Clone, Copy)]
pub struct Intent<'a> {
    job: &'a JobView,
    now: Now,
}

impl<'a> Intent<'a> {
    /// Statuses for `job`, written at `now`.
    pub fn new(job: &'a JobView, now: Now) -> Self {
        Self { job, now }
    }

    fn base(&self) -> MultiKueueJobStatus {
        let mut status = self.job.status.clone();
        status.observed_generation = self.job.generation;
        if status.run == 0 {
            status.run = self.job.spec.run;
        }
        status
    }

    fn time(&self) -> Time {
        Time(self.now.wall)
    }

    fn set(&self, status: &mut MultiKueueJobStatus, condition: &str, truth: &str, reason: &str, message: &str) {
        conditions::set_condition(
            &mut status.conditions,
            condition,
            truth,
            reason,
            message,
            self.job.generation,
            self.now.wall,
        );
    }

    fn enter(&self, status: &mut MultiKueueJobStatus, phase: Phase, reason: &str, message: &str) {
        status.phase = phase;
        conditions::phase_conditions(
            phase,
            reason,
            message,
            self.job.generation,
            self.now.wall,
            &mut status.conditions,
        );
    }

    /// The job belongs to `plan`'s worker from now on.
    pub fn assign(&self, plan: &Plan, claim: &str) -> MultiKueueJobStatus {
        let mut status = self.base();
        status.last_attempt += 1;
        status.run = self.job.spec.run;
        status.queued_at = Some(Time(queued_at(self.job)));
        status.waiting = None;
        status.assignment = Some(Assignment {
            cluster: plan.cluster.clone(),
            cluster_uid: plan.cluster_uid.clone(),
            run: self.job.spec.run,
            number: status.last_attempt,
            claim: claim.into(),
            mirror_uid: None,
            revoking: None,
            since: self.time(),
        });
        self.enter(
            &mut status,
            Phase::Assigned,
            JobReason::Assigned.as_str(),
            &format!("assigned to {}", plan.cluster),
        );
        status
    }

    /// The mirror's uid: the commit point for running.
    pub fn record(&self, mirror: &MirrorView) -> MultiKueueJobStatus {
        let mut status = self.base();
        if let Some(assignment) = &mut status.assignment {
            assignment.mirror_uid = Some(mirror.uid.to_string());
        }
        status
    }

    /// A mirror above the job's counter: the manager was restored from a time before its assignment.
    pub fn adopt(&self, cluster: &str, mirror: &MirrorView) -> Option<MultiKueueJobStatus> {
        let identity = mirror.identity.as_ref()?;
        let mut status = self.base();
        status.last_attempt = identity.number;
        status.run = identity.run;
        status.waiting = None;
        status.assignment = Some(Assignment {
            cluster: cluster.into(),
            cluster_uid: identity.cluster_uid.clone(),
            run: identity.run,
            number: identity.number,
            claim: "adopted".into(),
            mirror_uid: Some(mirror.uid.to_string()),
            revoking: None,
            since: self.time(),
        });
        self.enter(
            &mut status,
            Phase::Assigned,
            JobReason::Adopted.as_str(),
            &format!("found on {cluster}, from before this manager's memory"),
        );
        Some(status)
    }

    /// The attempt is being taken back. Never unset.
    pub fn revoke(&self, reason: RevokeReason) -> MultiKueueJobStatus {
        let mut status = self.base();
        if let Some(assignment) = &mut status.assignment {
            assignment.revoking.get_or_insert(Revoking {
                reason,
                since: self.time(),
            });
            let message = format!(
                "attempt {} is being taken off {} ({})",
                assignment.number,
                assignment.cluster,
                reason.as_str()
            );
            let word = match reason {
                RevokeReason::Suspended => JobReason::Suspending,
                RevokeReason::Deleted => JobReason::Deleting,
                _ => JobReason::Revoking,
            };
            for (condition, truth) in [(conditions::READY, "False"), (conditions::RECONCILING, "True")] {
                self.set(&mut status, condition, truth, word.as_str(), &message);
            }
        }
        status
    }

    /// The attempt is over without a result, and nothing of it is left (or it never was recorded): queued again, suspended, or out of attempts.
    pub fn requeue(&self, reason: RevokeReason, message: &str) -> MultiKueueJobStatus {
        let mut status = self.base();
        self.close_attempt(&mut status, AttemptOutcome::Revoked, reason.as_str());
        status.assignment = None;
        status.mirror_status = None;
        status.start_time = None;
        if !matches!(reason, RevokeReason::Refused | RevokeReason::WorkerLost) {
            // What was no fault of the job's costs it neither its place in the queue nor its time there.
            status.queued_at = Some(self.time());
        }
        let limit = self.job.spec.policy.max_attempts;
        if reason == RevokeReason::StartTimeout {
            status.failed_attempts += 1;
        }
        if status.failed_attempts >= limit {
            let text = format!(
                "{} attempts did not start, maxAttempts is {limit}; the last: {message}",
                status.failed_attempts
            );
            status.completion_time = Some(self.time());
            self.enter(
                &mut status,
                Phase::Failed,
                JobReason::MaxAttemptsExceeded.as_str(),
                &text,
            );
        } else if self.job.spec.suspend {
            self.enter(
                &mut status,
                Phase::Suspended,
                JobReason::Suspended.as_str(),
                "spec.suspend is true",
            );
        } else {
            self.enter(&mut status, Phase::Queued, reason.as_str(), message);
        }
        status
    }

    /// The result of the run, as the mirror says.
    pub fn result(&self, mirror: &MirrorView, terminal: &Terminal) -> MultiKueueJobStatus {
        let mut status = self.base();
        let outcome = if terminal.succeeded {
            AttemptOutcome::Succeeded
        } else {
            AttemptOutcome::Failed
        };
        let reason = match (&*terminal.reason, terminal.succeeded) {
            ("", true) => JobReason::Complete.as_str(),
            ("", false) => JobReason::Failed.as_str(),
            (reason, _) => reason,
        };
        self.close_attempt(&mut status, outcome, reason);
        status.start_time = mirror.state.start_time.map(Time).or(status.start_time);
        status.completion_time = Some(Time(terminal.at.unwrap_or(self.now.wall)));
        status.mirror_status.clone_from(&mirror.raw_status);
        let phase = if terminal.succeeded {
            Phase::Succeeded
        } else {
            Phase::Failed
        };
        self.enter(&mut status, phase, reason, &terminal.message);
        status
    }

    /// A recorded mirror is proven absent without a result and without our doing.
    pub fn mirror_deleted(&self) -> MultiKueueJobStatus {
        let mut status = self.base();
        let cluster = status.assignment.as_ref().map_or("", |a| &*a.cluster);
        let message = format!("the object on {cluster} was deleted by another; raise spec.run to run the job again");
        self.close_attempt(&mut status, AttemptOutcome::Failed, JobReason::MirrorDeleted.as_str());
        status.completion_time = Some(self.time());
        self.enter(&mut status, Phase::Failed, JobReason::MirrorDeleted.as_str(), &message);
        status
    }

    /// The job ends without ever having had a worker.
    pub fn fail_queued(&self, reason: &str, message: &str) -> MultiKueueJobStatus {
        let mut status = self.base();
        status.run = self.job.spec.run;
        status.waiting = None;
        status.completion_time = Some(self.time());
        self.enter(&mut status, Phase::Failed, reason, message);
        status
    }

    /// `spec.run` was raised after the previous run ended, and nothing of that run is left.
    pub fn new_run(&self) -> MultiKueueJobStatus {
        let mut status = self.base();
        status.run = self.job.spec.run;
        status.assignment = None;
        status.failed_attempts = 0;
        status.queued_at = Some(self.time());
        status.start_time = None;
        status.completion_time = None;
        status.mirror_status = None;
        status.waiting = None;
        let message = format!("run {} waits for a worker", status.run);
        self.enter(&mut status, Phase::Queued, JobReason::Queued.as_str(), &message);
        status
    }

    /// `spec.suspend` keeps the job from being placed.
    pub fn suspended(&self) -> MultiKueueJobStatus {
        let mut status = self.base();
        status.waiting = None;
        self.enter(
            &mut status,
            Phase::Suspended,
            JobReason::Suspended.as_str(),
            "spec.suspend is true",
        );
        status
    }

    /// `spec.suspend` is false again: queued anew.
    pub fn resumed(&self) -> MultiKueueJobStatus {
        let mut status = self.base();
        status.queued_at = Some(self.time());
        self.enter(
            &mut status,
            Phase::Queued,
            JobReason::Queued.as_str(),
            "waits for a worker",
        );
        status
    }

    /// Why the job waits.
    pub fn waiting(&self, waiting: &Waiting) -> MultiKueueJobStatus {
        let mut status = self.base();
        status.run = self.job.spec.run;
        let (reason, message) = waiting_words(waiting);
        self.enter(&mut status, Phase::Queued, reason, &message);
        status.waiting = Some(waiting.clone());
        status
    }

    /// The job cannot be placed as it is written: it waits for a change.
    pub fn invalid(&self, reason: JobReason, message: &str) -> MultiKueueJobStatus {
        let mut status = self.base();
        status.waiting = None;
        status.phase = Phase::Queued;
        let reason = reason.as_str();
        self.set(&mut status, conditions::READY, "False", reason, message);
        self.set(&mut status, conditions::STALLED, "True", reason, message);
        conditions::remove_condition(&mut status.conditions, conditions::RECONCILING);
        status
    }

    /// What the mirror says now, of a job that is on its worker and in contact.
    pub fn follow(&self, mirror: &MirrorView, started: bool) -> MultiKueueJobStatus {
        let mut status = self.base();
        // Written together with Running: a start time alone is no reason for a write.
        status.start_time = mirror.state.start_time.map(Time).or(status.start_time);
        status.mirror_status.clone_from(&mirror.raw_status);
        let cluster = status
            .assignment
            .as_ref()
            .map_or_else(String::new, |a| a.cluster.clone());
        let (phase, reason) = if started || status.phase == Phase::Running {
            (Phase::Running, JobReason::Running)
        } else {
            (Phase::Assigned, JobReason::Assigned)
        };
        if mirror.state.asleep && Wrote::of(&mirror.nonce) == Some(Wrote::Release) {
            // Shown, never fought: somebody on the worker has a reason.
            self.enter(
                &mut status,
                phase,
                JobReason::SuspendedOnWorker.as_str(),
                &format!("its object on {cluster} was suspended by another"),
            );
        } else if phase == Phase::Running {
            self.enter(
                &mut status,
                phase,
                reason.as_str(),
                &format!("every pod has started on {cluster}"),
            );
        } else {
            self.enter(&mut status, phase, reason.as_str(), &format!("assigned to {cluster}"));
        }
        status
    }

    /// Its worker does not answer since `since`.
    pub fn lost(&self, since: Timestamp) -> MultiKueueJobStatus {
        let mut status = self.base();
        let cluster = status
            .assignment
            .as_ref()
            .map_or_else(String::new, |a| a.cluster.clone());
        let message = format!("{cluster} has not answered since {since}");
        self.enter(&mut status, Phase::Unknown, JobReason::WorkerLost.as_str(), &message);
        status
    }

    /// No `WorkerCluster` stands for the cluster that the job is bound to.
    pub fn unbound(&self) -> MultiKueueJobStatus {
        let mut status = self.base();
        let message = status.assignment.as_ref().map_or_else(String::new, |a| {
            format!(
                "no WorkerCluster stands for {} (cluster {}) any more",
                a.cluster, a.cluster_uid
            )
        });
        self.enter(&mut status, Phase::Unknown, JobReason::WorkerLost.as_str(), &message);
        status
    }

    /// The worker answers again after the job was `Unknown`: back to what it was.
    pub fn found(&self, mirror: &MirrorView, started: bool) -> MultiKueueJobStatus {
        // In phase Unknown the other conditions keep their last values: Ready says that it was running.
        let had_started = conditions::is_true(&self.job.status.conditions, conditions::READY);
        self.follow(mirror, started || had_started)
    }

    /// Only the generation moved on.
    pub fn observed(&self) -> MultiKueueJobStatus {
        self.base()
    }

    fn close_attempt(&self, status: &mut MultiKueueJobStatus, outcome: AttemptOutcome, reason: &str) {
        let Some(assignment) = &status.assignment else { return };
        status.attempts.push(Attempt {
            cluster: assignment.cluster.clone(),
            run: assignment.run,
            number: assignment.number,
            from: assignment.since.clone(),
            to: self.time(),
            outcome,
            reason: reason.into(),
        });
        let surplus = status.attempts.len().saturating_sub(ATTEMPTS_KEPT);
        status.attempts.drain(..surplus);
    }
}
