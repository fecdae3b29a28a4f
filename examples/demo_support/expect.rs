//! What is expected of each job, held against what happened.

use super::world::JobLine;

/// What becomes of a job.
pub enum Fate {
    /// It succeeds, on a certain worker or on any.
    Succeeds {
        /// The worker.
        on: Option<&'static str>,
    },
    /// It fails with this reason.
    Fails {
        /// The reason of its condition `Stalled`.
        reason: &'static str,
    },
    /// It waits, and one of its sentences holds this text.
    Waits {
        /// The text.
        saying: &'static str,
    },
    /// It is deleted while running and leaves nothing.
    Goes,
}

/// A job and its fate.
pub struct Expected {
    /// Name of the job, and of its file.
    pub name: &'static str,
    /// What becomes of it.
    pub fate: Fate,
}

/// How a job stands against what is expected of it.
pub struct Verdict {
    /// Name of the job.
    pub name: &'static str,
    /// Nothing more will change.
    pub is_final: bool,
    /// It is as expected.
    pub as_expected: bool,
    /// In words.
    pub text: String,
}

/// How every job stands; `gone` says that the deleted one left nothing on any worker.
pub fn verdicts(expected: &[Expected], jobs: &[JobLine], gone: bool) -> Vec<Verdict> {
    let others_done = expected.iter().all(|e| {
        let job = jobs.iter().find(|j| j.name == e.name);
        matches!(e.fate, Fate::Waits { .. } | Fate::Goes) || job.is_some_and(JobLine::is_ended)
    });
    expected
        .iter()
        .map(|e| verdict(e, jobs.iter().find(|j| j.name == e.name), gone, others_done))
        .collect()
}

fn verdict(expected: &Expected, job: Option<&JobLine>, gone: bool, others_done: bool) -> Verdict {
    let name = expected.name;
    let (is_final, as_expected, text) = match (&expected.fate, job) {
        (Fate::Goes, None) => (
            gone,
            gone,
            if gone {
                "deleted while running, nothing left on any worker".into()
            } else {
                "deleted, its object is still on a worker".into()
            },
        ),
        (Fate::Goes, Some(job)) => (
            job.is_ended(),
            false,
            format!("{}, to be deleted once it runs", job.phase),
        ),
        (_, None) => (false, false, "is not there".into()),
        (Fate::Succeeds { on }, Some(job)) => {
            let right_place = on.is_none_or(|on| job.worker == on);
            (
                job.is_ended(),
                job.phase == "Succeeded" && right_place,
                format!("{} on {}", job.phase, job.worker),
            )
        }
        (Fate::Fails { reason }, Some(job)) => (
            job.is_ended(),
            job.phase == "Failed" && job.reason == *reason,
            format!("{} on {}: {} ({})", job.phase, job.worker, job.reason, job.message),
        ),
        (Fate::Waits { saying }, Some(job)) => {
            let says_so = job.waiting.iter().any(|sentence| sentence.contains(saying));
            let waits = job.phase == "Queued" && says_so;
            (
                others_done && (waits || job.is_ended()),
                waits,
                format!("{}: {}", job.phase, job.waiting.join("; ")),
            )
        }
    };
    Verdict {
        name,
        is_final,
        as_expected,
        text,
    }
}
