//! How an attempt ends: taken back, finished, followed by a new run, or deleted with its job.

use k8s_openapi::jiff::Timestamp;

use crate::api::job::{Assignment, RevokeReason};
use crate::api::names::FINALIZER;

use super::absence::Evidence;
use super::judge::{Owner, Verdict, judge};
use super::nonce::Wrote;
use super::removal::{Removal, removal};
use super::step::{ManagerStep, Situation, Step, WorkerStep, intent, left, out_of_contact};
use super::view::{JobView, MirrorView};

// === taking back ===

pub(super) fn revoking(s: &Situation<'_>, a: &Assignment) -> Step {
    let mirror = own_mirror(s, a);
    if let Some((mirror, terminal)) = mirror.and_then(|m| Some((m, m.state.terminal.as_ref()?)))
        && a.mirror_uid.is_some()
        // A failure first seen after our own stop is none of its own; one of a mirror that we only ever released is.
        && (terminal.succeeded || Wrote::of(&mirror.nonce) == Some(Wrote::Release))
    {
        return Step::status(intent(s).result(mirror, terminal));
    }
    let reason = a.revoking.as_ref().map_or(RevokeReason::Refused, |r| r.reason);
    take_back(s, || {
        let message = match reason {
            RevokeReason::Suspended => "taken back, since spec.suspend was set".into(),
            RevokeReason::StartTimeout => {
                format!(
                    "did not start on {} within {} s",
                    a.cluster, s.job.spec.policy.start_timeout_seconds
                )
            }
            RevokeReason::Refused => format!("{} could not keep it asleep until its release", a.cluster),
            RevokeReason::Deleted | RevokeReason::WorkerLost => format!("taken off {}", a.cluster),
        };
        Step::status(intent(s).requeue(reason, &message))
    })
}

/// Removes what is on the worker by the one way; when it is proven absent with its pods, `then`.
fn take_back(s: &Situation<'_>, then: impl FnOnce() -> Step) -> Step {
    if let Some(step) = out_of_contact(s) {
        return step;
    }
    if s.worker.verify {
        return look(s);
    }
    match s.worker.mirror.map(|m| (m, judge(s.ours, Owner::Exists(s.job), m))) {
        Some((mirror, Verdict::Follow | Verdict::Record | Verdict::Remove | Verdict::Adopt)) if s.worker.writable => {
            remove(mirror)
        }
        Some((mirror, verdict)) if verdict != Verdict::Stranger && !is_successor(s, mirror) => Step::none(),
        _ => prove_absent(s, then),
    }
}

/// True for an object that has the name but can't be the one we recorded.
fn is_successor(s: &Situation<'_>, mirror: &MirrorView) -> bool {
    let recorded = s.job.status.assignment.as_ref().and_then(|a| a.mirror_uid.as_deref());
    recorded.is_some_and(|uid| *uid != *mirror.uid)
        && mirror.identity.as_ref().is_none_or(|id| *id.job_uid != *s.job.uid)
}

pub(super) fn remove(mirror: &MirrorView) -> Step {
    match removal(mirror) {
        Removal::Delete => Step::worker(WorkerStep::Delete),
        Removal::Suspend => Step::worker(WorkerStep::Suspend),
        Removal::Wait(_) => Step::none(),
    }
}

pub(super) fn look(s: &Situation<'_>) -> Step {
    if s.worker.readable {
        Step::worker(WorkerStep::Look)
    } else {
        Step::none()
    }
}

pub(super) fn prove_absent(s: &Situation<'_>, then: impl FnOnce() -> Step) -> Step {
    if !s.worker.readable {
        return Step::none();
    }
    match s.worker.absence.needs() {
        Evidence::Get => Step::worker(WorkerStep::Look),
        Evidence::Renewal => Step::worker(WorkerStep::Renew),
        Evidence::Pods(at) if at <= s.now.mono => Step::worker(WorkerStep::ListPods),
        Evidence::Pods(at) => Step::wake(at.saturating_sub(s.now.mono)),
        Evidence::Complete => then(),
    }
}

/// The mirror that the assignment records, if that is what has the name.
pub(super) fn own_mirror<'a>(s: &Situation<'a>, a: &Assignment) -> Option<&'a MirrorView> {
    s.worker.mirror.filter(|m| a.mirror_uid.as_deref() == Some(&*m.uid))
}

// === ended ===

/// A finished job holds nothing; its mirror stays for the retention and then goes.
pub(super) fn finished(s: &Situation<'_>) -> Step {
    let status = &s.job.status;
    if status.observed_generation != s.job.generation {
        return Step::status(intent(s).observed());
    }
    let Some(mirror) = status.assignment.as_ref().and_then(|a| own_mirror(s, a)) else {
        return Step::none();
    };
    let retained = if s.worker.leaving {
        0
    } else {
        s.job.spec.policy.retain_mirror_seconds
    };
    match left(s, ended_at(s.job), retained) {
        Some(left) => Step::wake(left),
        None if !s.worker.writable => Step::none(),
        None if s.worker.verify => look(s),
        None => remove(mirror),
    }
}

/// When the result was written, on the manager's clock: a restart does not extend the retention, and the worker's clock does not matter.
fn ended_at(job: &JobView) -> Timestamp {
    let ended = job.status.attempts.last().map(|a| a.to.0);
    ended
        .or_else(|| job.status.completion_time.as_ref().map(|t| t.0))
        .unwrap_or(job.created)
}

/// A new run starts only when the old one has ended: finished, and no pod of it left.
pub(super) fn next_run(s: &Situation<'_>) -> Step {
    // The result of the old run stands; where its cluster is not among the workers any more, nothing else can be asked.
    if s.job.status.assignment.is_none() || !s.worker.in_use {
        return Step::status(intent(s).new_run());
    }
    take_back(s, || Step::status(intent(s).new_run()))
}

// === deleted ===

pub(super) fn deleting(s: &Situation<'_>, deleted: Timestamp) -> Step {
    if !s.job.finalizers.iter().any(|f| f == FINALIZER) {
        return Step::none();
    }
    let release = || Step::finalizers(s.job.finalizers.iter().filter(|f| *f != FINALIZER).cloned().collect());
    let status = &s.job.status;
    let Some(a) = &status.assignment else { return release() };
    let finished = own_mirror(s, a).is_some_and(|m| m.state.terminal.is_some());
    if status.phase.is_terminal() || finished {
        return release();
    }
    let awake = s.worker.mirror.is_some_and(|m| !m.state.asleep);
    let dark = !s.worker.in_use || s.worker.lost_since.is_some();
    if a.mirror_uid.is_none() && dark && !awake {
        // Only a recorded mirror is ever released: what may come up there is a sleeper, which the sweep removes.
        return release();
    }
    let timeout = s.job.spec.policy.deletion_timeout_seconds;
    let Some(left) = left(s, deleted, timeout) else {
        return if s.worker.owed {
            release()
        } else {
            Step {
                manager: Some(ManagerStep::Owe),
                ..Step::none()
            }
        };
    };
    let mut next = if a.revoking.is_none() {
        Step::status(intent(s).revoke(RevokeReason::Deleted))
    } else if !s.worker.in_use || !s.worker.readable {
        // No write for having lost the worker: the job is on its way out.
        Step::none()
    } else {
        take_back(s, release)
    };
    next.wake = Some(next.wake.map_or(left, |wake| wake.min(left)));
    next
}
