//! The table: what to do with a mirror (design 5.2). First match wins.

use super::view::{JobView, MirrorIdentity, MirrorView};

/// Who we are, on the worker that the mirror is on.
#[derive(Debug, Clone, Copy)]
pub struct Ours<'a> {
    /// Hash of the origin.
    pub origin: &'a str,
    /// Uid of the manager's `kube-system`.
    pub manager_uid: &'a str,
    /// Uid of the worker's `kube-system`.
    pub cluster_uid: &'a str,
}

impl Ours<'_> {
    /// True for an object that bears all our marks.
    pub fn made(self, mirror: &MirrorView) -> bool {
        mirror
            .identity
            .as_ref()
            .is_some_and(|identity| is_ours(self, identity, mirror))
    }
}

/// What is known of the job that a mirror names.
#[derive(Debug, Clone, Copy)]
pub enum Owner<'a> {
    /// It exists.
    Exists(&'a JobView),
    /// It was not seen, and its absence is not proven.
    Unseen,
    /// It is proven absent.
    Absent {
        /// Its removal is owed.
        debt: bool,
    },
}

/// What to do with a mirror.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Not ours: never touch it.
    Stranger,
    /// Being deleted: wait.
    Dying,
    /// Recorded in its job's assignment: follow it.
    Follow,
    /// The current attempt, none recorded: record it.
    Record,
    /// Above the job's counter, same run, awake or finished (the manager was restored): adopt it.
    Adopt,
    /// Remove it.
    Remove,
    /// Its job must be proven absent before anything is done.
    AskForJob,
    /// Of a job proven absent, awake, without a debt: shown, and removed after the grace.
    Orphan,
}

/// What to do with `mirror`.
pub fn judge(ours: Ours<'_>, owner: Owner<'_>, mirror: &MirrorView) -> Verdict {
    let recorded = match owner {
        Owner::Exists(job) => job
            .status
            .assignment
            .as_ref()
            .filter(|a| a.mirror_uid.as_deref() == Some(&*mirror.uid)),
        _ => None,
    };
    let Some(identity) = mirror.identity.as_ref().filter(|id| is_ours(ours, id, mirror)) else {
        // A recorded uid is ours whatever its labels: somebody may have edited them.
        return match recorded {
            Some(_) if mirror.deleting => Verdict::Dying,
            Some(_) => Verdict::Follow,
            None => Verdict::Stranger,
        };
    };
    if mirror.deleting {
        return Verdict::Dying;
    }
    if recorded.is_some() {
        return Verdict::Follow;
    }
    match owner {
        Owner::Exists(job) if *job.uid == *identity.job_uid => of_job(job, identity, mirror),
        // Another uid has the job's name: a uid never comes back, so the mirror's job is gone.
        Owner::Exists(_) => of_nobody(false, mirror),
        Owner::Absent { debt } => of_nobody(debt, mirror),
        Owner::Unseen => Verdict::AskForJob,
    }
}

fn of_job(job: &JobView, identity: &MirrorIdentity, mirror: &MirrorView) -> Verdict {
    let assignment = job.status.assignment.as_ref();
    let current = assignment.is_some_and(|a| {
        a.mirror_uid.is_none()
            && a.cluster_uid == identity.cluster_uid
            && a.run == identity.run
            && a.number == identity.number
    });
    let above = identity.number > job.status.last_attempt && identity.run == job.spec.run;
    let bound = assignment.is_some_and(|a| a.mirror_uid.is_some());
    if current {
        Verdict::Record
    } else if above && !bound && (!mirror.state.asleep || mirror.state.terminal.is_some()) {
        Verdict::Adopt
    } else {
        Verdict::Remove
    }
}

fn of_nobody(debt: bool, mirror: &MirrorView) -> Verdict {
    if mirror.state.asleep || mirror.state.terminal.is_some() || debt {
        Verdict::Remove
    } else {
        Verdict::Orphan
    }
}

fn is_ours(ours: Ours<'_>, identity: &MirrorIdentity, mirror: &MirrorView) -> bool {
    identity.origin == ours.origin
        && identity.manager_uid == ours.manager_uid
        && identity.cluster_uid == ours.cluster_uid
        && identity.job == mirror.key.to_string()
}
