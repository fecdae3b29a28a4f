//! The driver: what one job needs next, on each side.

use std::time::Duration;

use k8s_openapi::jiff::Timestamp;

use crate::api::conditions::JobReason;
use crate::api::job::{Assignment, Phase, RevokeReason, Waiting};
use crate::api::names::FINALIZER;
use crate::api::{MultiKueueJobStatus, Now};

use super::absence::Absence;
use super::ending::{deleting, finished, look, next_run, own_mirror, prove_absent, remove, revoking};
use super::intent::Intent;
use super::judge::{Ours, Owner, Verdict, judge};
use super::news;
use super::nonce::Wrote;
use super::view::{JobView, MirrorView, Plan};

/// An attempt that is not recorded leaves a worker that has been dark this long.
const UNRECORDED_GRACE: Duration = Duration::from_secs(15);
/// A job says that its status is old once its worker has been dark this long. Blips live on the `WorkerCluster`.
const FRESHNESS: Duration = Duration::from_mins(1);

/// All that a decision about one job reads.
#[derive(Debug, Clone)]
pub struct Situation<'a> {
    /// The job as the manager returned it.
    pub job: &'a JobView,
    /// Ok when its template was understood, and its priority class is known.
    pub template: Result<(), (JobReason, &'a str)>,
    /// The scheduler's decision, if it has one.
    pub plan: Option<&'a Plan>,
    /// Why it waits, when that should be written now.
    pub waiting: Option<&'a Waiting>,
    /// True when a change of the raw status alone may be written now.
    pub follow_due: bool,
    /// Id of our claim.
    pub claim: &'a str,
    /// Who we are on the assigned worker.
    pub ours: Ours<'a>,
    /// The worker of the assignment.
    pub worker: WorkerSide<'a>,
    /// Now.
    pub now: Now,
}

/// The assigned worker, as far as this job is concerned.
#[derive(Debug, Clone, Default)]
pub struct WorkerSide<'a> {
    /// A `WorkerCluster` with the assignment's clusterUID exists and is the one in use.
    pub in_use: bool,
    /// Since when it has not answered.
    pub lost_since: Option<Timestamp>,
    /// Connected, and its mirrors have been listed on this connection.
    pub readable: bool,
    /// Readable, and our claim holds an unexpired worker lease there.
    pub writable: bool,
    /// The object that has the job's name there.
    pub mirror: Option<&'a MirrorView>,
    /// How far the absence of the mirror is proven.
    pub absence: Absence,
    /// The outcome of the last write there is unknown: look before anything else.
    pub verify: bool,
    /// The worker refused the mirror of this attempt: why.
    pub refused: Option<&'a str>,
    /// The pods themselves showed that every member has been Running once.
    pub pods_started: bool,
    /// Its `WorkerCluster` is being deleted: what stays there now, nobody removes later.
    pub leaving: bool,
    /// The removal of the job's mirror is already owed, or can't be.
    pub owed: bool,
}

/// What one job needs next, on each side. Both sides may go at once.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Step {
    /// On the manager.
    pub manager: Option<ManagerStep>,
    /// On the assigned worker.
    pub worker: Option<WorkerStep>,
    /// How long from now the job must be looked at again although nothing changed.
    pub wake: Option<Duration>,
}

/// A write on the manager.
#[derive(Debug, Clone, PartialEq)]
pub enum ManagerStep {
    /// Replace the list of finalizers.
    Finalizers(Vec<String>),
    /// Replace the status.
    Status(Box<MultiKueueJobStatus>),
    /// Put the removal of the mirror on the worker's list of debts.
    Owe,
}

/// A request to the assigned worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkerStep {
    /// Create the mirror, asleep.
    Create,
    /// GET the mirror by name.
    Look,
    /// Release the recorded mirror.
    Release,
    /// Stop the mirror.
    Suspend,
    /// Delete the mirror.
    Delete,
    /// A renewal of the worker lease is wanted early.
    Renew,
    /// List the job's pods.
    ListPods,
}

impl Step {
    pub(super) fn none() -> Self {
        Self::default()
    }

    pub(super) fn status(status: MultiKueueJobStatus) -> Self {
        Self {
            manager: Some(ManagerStep::Status(Box::new(status))),
            ..Self::default()
        }
    }

    pub(super) fn finalizers(list: Vec<String>) -> Self {
        Self {
            manager: Some(ManagerStep::Finalizers(list)),
            ..Self::default()
        }
    }

    pub(super) fn worker(step: WorkerStep) -> Self {
        Self {
            worker: Some(step),
            ..Self::default()
        }
    }

    pub(super) fn wake(after: Duration) -> Self {
        Self {
            wake: Some(after),
            ..Self::default()
        }
    }
}

/// What the job needs next.
pub fn step(s: &Situation<'_>) -> Step {
    let status = &s.job.status;
    if let Some(deleted) = s.job.deleted {
        return deleting(s, deleted);
    }
    if status.phase.is_terminal() {
        return if s.job.spec.run > status.run {
            next_run(s)
        } else {
            finished(s)
        };
    }
    match &status.assignment {
        None => queued(s),
        Some(a) if a.revoking.is_some() => revoking(s, a),
        Some(a) if a.mirror_uid.is_none() => unrecorded(s, a),
        Some(a) => recorded(s, a),
    }
}

pub(super) fn intent<'a>(s: &Situation<'a>) -> Intent<'a> {
    Intent::new(s.job, s.now)
}

/// Time left until `seconds` after `since`; none when it has passed.
pub(super) fn left(s: &Situation<'_>, since: Timestamp, seconds: i64) -> Option<Duration> {
    let passed = s.now.seconds_since(since);
    u64::try_from(seconds - passed)
        .ok()
        .filter(|left| *left > 0)
        .map(Duration::from_secs)
}

// === queued ===

fn queued(s: &Situation<'_>) -> Step {
    let (job, status) = (s.job, &s.job.status);
    let seen = status.observed_generation == job.generation;
    if let Err((reason, message)) = s.template {
        let invalid = intent(s).invalid(reason, message);
        return if news::says_something_new(status, &invalid) {
            Step::status(invalid)
        } else {
            Step::none()
        };
    }
    if job.spec.suspend {
        return if status.phase == Phase::Suspended && seen {
            Step::none()
        } else {
            Step::status(intent(s).suspended())
        };
    }
    if status.phase == Phase::Suspended {
        return Step::status(intent(s).resumed());
    }
    let mut wake = None;
    if let Some(limit) = job.spec.policy.max_queue_seconds {
        wake = left(s, news::queued_at(job), limit);
        if wake.is_none() {
            let message = format!("waited {limit} s in the queue (maxQueueSeconds) without being placed");
            return Step::status(intent(s).fail_queued(JobReason::MaxQueueTimeExceeded.as_str(), &message));
        }
    }
    if let Some(plan) = s.plan {
        return if job.finalizers.iter().any(|f| f == FINALIZER) {
            Step::status(intent(s).assign(plan, s.claim))
        } else {
            let list = job.finalizers.iter().cloned().chain([FINALIZER.to_owned()]).collect();
            Step::finalizers(list)
        };
    }
    if let Some(waiting) = s.waiting {
        return Step {
            wake,
            ..Step::status(intent(s).waiting(waiting))
        };
    }
    // A job that nobody has written on yet is placed at once or told why not: no write of its own for having been seen.
    if !seen && status.run > 0 {
        return Step {
            wake,
            ..Step::status(intent(s).observed())
        };
    }
    Step { wake, ..Step::none() }
}

// === assigned, not recorded ===

fn unrecorded(s: &Situation<'_>, a: &Assignment) -> Step {
    let worker = &s.worker;
    let verdict = worker.mirror.map(|m| (m, judge(s.ours, Owner::Exists(s.job), m)));
    if let Some((mirror, Verdict::Record)) = verdict
        && !mirror.state.asleep
    {
        // Awake before our release: what may run is never given up by one write. It is stopped and removed, and the worker is not used for this job.
        return Step::status(intent(s).revoke(RevokeReason::Refused));
    }
    let requeue = |reason, message: &str| Step::status(intent(s).requeue(reason, message));
    if s.job.spec.suspend {
        return requeue(RevokeReason::Suspended, "spec.suspend is true");
    }
    if !worker.in_use {
        return requeue(RevokeReason::WorkerLost, "the worker is not in use any more");
    }
    if let Some(since) = worker.lost_since {
        return match left(s, since, seconds(UNRECORDED_GRACE)) {
            Some(left) => Step::wake(left),
            None => requeue(
                RevokeReason::WorkerLost,
                &format!("the worker has not answered since {since}"),
            ),
        };
    }
    if let Some(why) = worker.refused {
        return requeue(RevokeReason::Refused, why);
    }
    let timeout = s.job.spec.policy.start_timeout_seconds;
    let Some(wake) = left(s, a.since.0, timeout) else {
        let message = format!("its object could not be made on {} within {timeout} s", a.cluster);
        return requeue(RevokeReason::StartTimeout, &message);
    };
    Step {
        wake: Some(wake),
        ..unrecorded_in_contact(s, verdict)
    }
}

fn unrecorded_in_contact(s: &Situation<'_>, verdict: Option<(&MirrorView, Verdict)>) -> Step {
    let requeue = |reason, message: &str| Step::status(intent(s).requeue(reason, message));
    if !s.worker.writable {
        return Step::none();
    }
    if s.worker.verify {
        return Step::worker(WorkerStep::Look);
    }
    let Some((mirror, verdict)) = verdict else {
        return Step::worker(WorkerStep::Create);
    };
    match verdict {
        Verdict::Record => Step::status(intent(s).record(mirror)),
        Verdict::Adopt => {
            let cluster = s.job.status.assignment.as_ref().map_or("", |a| &*a.cluster);
            intent(s).adopt(cluster, mirror).map_or_else(Step::none, Step::status)
        }
        Verdict::Remove => remove(mirror),
        Verdict::Stranger => requeue(
            RevokeReason::Refused,
            "the name is taken there by an object that is not ours",
        ),
        Verdict::Dying => requeue(
            RevokeReason::Refused,
            "the name is held there by an object that is being deleted",
        ),
        Verdict::Orphan => requeue(
            RevokeReason::Refused,
            "the name is held there by an object of an earlier job that still runs",
        ),
        Verdict::Follow | Verdict::AskForJob => Step::none(),
    }
}

// === recorded ===

fn recorded(s: &Situation<'_>, a: &Assignment) -> Step {
    let worker = &s.worker;
    let mirror = own_mirror(s, a);
    if let Some((mirror, terminal)) = mirror.and_then(|m| Some((m, m.state.terminal.as_ref()?))) {
        return Step::status(intent(s).result(mirror, terminal));
    }
    if s.job.spec.suspend {
        return Step::status(intent(s).revoke(RevokeReason::Suspended));
    }
    if let Some(step) = out_of_contact(s) {
        return step;
    }
    if worker.verify {
        return look(s);
    }
    let Some(mirror) = mirror else {
        return prove_absent(s, || Step::status(intent(s).mirror_deleted()));
    };
    let started = !mirror.state.asleep && (worker.pods_started || news::gang_started(&mirror.state));
    let mut result = Step::none();
    if s.job.status.phase == Phase::Unknown {
        result = Step::status(intent(s).found(mirror, started));
    } else if s.job.status.phase == Phase::Assigned && !started {
        match left(s, a.since.0, s.job.spec.policy.start_timeout_seconds) {
            None => return Step::status(intent(s).revoke(RevokeReason::StartTimeout)),
            left => result.wake = left,
        }
    }
    if worker.writable && !mirror.deleting && mirror.state.asleep && Wrote::of(&mirror.nonce) == Some(Wrote::Creation) {
        result.worker = Some(WorkerStep::Release);
    }
    if result.manager.is_none() {
        let follow = intent(s).follow(mirror, started);
        let old = &s.job.status;
        if news::says_something_new(old, &follow)
            || (s.follow_due && started && news::raw_differs(old.mirror_status.as_ref(), follow.mirror_status.as_ref()))
        {
            result.manager = Some(ManagerStep::Status(Box::new(follow)));
        }
    }
    result
}

/// The step for a worker that can't be read, if it can't: nothing is decided from what is unknown.
pub(super) fn out_of_contact(s: &Situation<'_>) -> Option<Step> {
    let worker = &s.worker;
    if worker.in_use && worker.readable {
        return None;
    }
    if !worker.in_use {
        let told = s.job.status.phase == Phase::Unknown || s.job.status.phase.is_terminal();
        return Some(if told {
            Step::none()
        } else {
            Step::status(intent(s).unbound())
        });
    }
    let Some(since) = worker.lost_since else {
        return Some(Step::none());
    };
    Some(match left(s, since, seconds(FRESHNESS)) {
        Some(left) => Step::wake(left),
        // A result stands, also while the mirror of that run is looked for.
        None if s.job.status.phase == Phase::Unknown || s.job.status.phase.is_terminal() => Step::none(),
        None => Step::status(intent(s).lost(since)),
    })
}

fn seconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_secs()).unwrap_or(i64::MAX)
}
