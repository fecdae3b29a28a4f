//! What happened, in words: kept only on request, since words cost more than the world they are about. A failing seed is run again with them.

use std::collections::VecDeque;

use multikueue::api::MultiKueueJobStatus;
use multikueue::dispatcher::{Answer, Effect, Event, Outcome, Request, Target, WorkerEvent};
use multikueue::lifecycle::view::{JobView, MirrorView};

use crate::world::Ms;

pub struct Trace {
    lines: Option<VecDeque<String>>,
    title: String,
    length: usize,
}

impl Trace {
    pub fn off() -> Self {
        Self {
            lines: None,
            title: String::new(),
            length: 0,
        }
    }

    /// Keeps the last lines and prints them when the test fails.
    pub fn on(title: impl Into<String>) -> Self {
        let length = std::env::var("TRACE")
            .ok()
            .and_then(|text| text.parse().ok())
            .unwrap_or(80);
        Self {
            lines: Some(VecDeque::new()),
            title: title.into(),
            length,
        }
    }

    pub fn note(&mut self, now: Ms, words: impl FnOnce() -> String) {
        if let Some(lines) = &mut self.lines {
            if lines.len() == self.length {
                lines.pop_front();
            }
            lines.push_back(format!("{:>10}.{:03} {}", now / 1000, now % 1000, words()));
        }
    }
}

impl Drop for Trace {
    fn drop(&mut self) {
        if std::thread::panicking()
            && let Some(lines) = &self.lines
        {
            eprintln!("--- {}: the last {} steps ---", self.title, lines.len());
            for line in lines {
                eprintln!("{line}");
            }
        }
    }
}

fn side(target: &Target) -> &str {
    match target {
        Target::Manager => "manager",
        Target::Worker(name) => name,
    }
}

fn status(status: &MultiKueueJobStatus) -> String {
    let assignment = status
        .assignment
        .as_ref()
        .map_or("unassigned".to_owned(), |assignment| {
            format!(
                "{} #{} run {} mirror {}{}",
                assignment.cluster,
                assignment.number,
                assignment.run,
                assignment.mirror_uid.as_deref().unwrap_or("-"),
                assignment
                    .revoking
                    .as_ref()
                    .map_or(String::new(), |revoking| format!(" revoking {:?}", revoking.reason)),
            )
        });
    format!(
        "[{:?} run {} last {} failed {} | {assignment}]",
        status.phase, status.run, status.last_attempt, status.failed_attempts
    )
}

fn job(job: &JobView) -> String {
    format!(
        "{} {} v{}{}{}{} {}",
        job.key,
        job.uid,
        job.resource_version,
        if job.deleted.is_some() { " deleted" } else { "" },
        if job.spec.suspend { " suspend" } else { "" },
        if job.finalizers.is_empty() { "" } else { " held" },
        status(&job.status)
    )
}

fn mirror(mirror: &MirrorView) -> String {
    let state = &mirror.state;
    format!(
        "{} {} v{}{} {} {}{} active {} ready {} terminating {} succeeded {} failed {}{} nonce {}",
        mirror.key,
        mirror.uid,
        mirror.resource_version,
        if mirror.deleting { " deleting" } else { "" },
        mirror
            .identity
            .as_ref()
            .map_or("no identity".to_owned(), |identity| format!(
                "of {} run {} #{}",
                identity.job_uid, identity.run, identity.number
            )),
        if state.asleep { "asleep" } else { "awake" },
        match (state.suspend_acknowledged, state.start_acknowledged) {
            (true, _) => " (suspended)",
            (_, true) => " (started)",
            _ => "",
        },
        state.active,
        state.ready,
        state.terminating,
        state.succeeded,
        state.failed,
        state
            .terminal
            .as_ref()
            .map_or("", |terminal| if terminal.succeeded { " COMPLETE" } else { " FAILED" }),
        mirror.nonce,
    )
}

pub fn describe_event(event: &Event) -> String {
    match event {
        Event::Job(view) => format!("  watch: job {}", job(view)),
        Event::WorkerCluster(cluster) => {
            let status = &cluster.status;
            format!(
                "  watch: cluster {} v{} {:?} debts {:?}",
                cluster.name, cluster.resource_version, status.cluster_uid, status.debts
            )
        }
        Event::Worker { name, epoch, event } => match event {
            WorkerEvent::Mirror(view) => format!("  watch {name}/{epoch}: mirror {}", mirror(view)),
            WorkerEvent::Node(row) => format!("  watch {name}/{epoch}: node {} ready {}", row.name, row.ready),
            WorkerEvent::NodesListed(rows) => format!("  watch {name}/{epoch}: {} nodes listed", rows.len()),
            WorkerEvent::Pod(row) => format!(
                "  watch {name}/{epoch}: pod {} of {:?} on {} running {} deleting {}",
                row.name, row.job_uid, row.node, row.running, row.deleting
            ),
            WorkerEvent::PodsListed(rows) => format!("  watch {name}/{epoch}: {} pods listed", rows.len()),
            other => format!("  watch {name}/{epoch}: {other:?}"),
        },
        Event::Outcome { id, outcome } => format!("  outcome of {}: {}", id.0, describe_outcome(outcome)),
        other => format!("  event: {other:?}"),
    }
}

pub fn describe_outcome(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Done(Answer::Job(view)) => format!("done, {}", job(view)),
        Outcome::Done(Answer::Mirror(view)) => format!("done, {}", mirror(view)),
        Outcome::Done(Answer::WorkerCluster(cluster)) => {
            format!("done, cluster {} v{}", cluster.name, cluster.resource_version)
        }
        Outcome::Done(other) => format!("done, {other:?}"),
        Outcome::Refused(refusal) => format!("REFUSED {:?}: {}", refusal.kind, refusal.message),
        Outcome::Unknown { message } => format!("UNKNOWN: {message}"),
        Outcome::NotSent => "NOT SENT".to_owned(),
    }
}

pub fn describe_effect(effect: &Effect) -> String {
    let words = match &effect.request {
        Request::WriteJobStatus {
            key,
            resource_version,
            status: new,
            ..
        } => {
            format!("{key} v{resource_version} {}", status(new))
        }
        Request::SetJobFinalizers {
            key,
            resource_version,
            finalizers,
            ..
        } => format!("{key} v{resource_version} {finalizers:?}"),
        Request::GetJob { key } | Request::GetMirror { key, .. } => key.to_string(),
        Request::CreateMirror { key, object, .. } => {
            let annotations = object.to_value()["metadata"]["annotations"].to_string();
            format!("{key} {annotations}")
        }
        Request::JsonPatchMirror { key, patch, .. } | Request::MergePatchMirror { key, patch, .. } => {
            format!("{key} {patch}")
        }
        Request::DeleteMirror {
            key,
            uid,
            resource_version,
            ..
        } => format!("{key} {uid} v{resource_version}"),
        Request::WriteWorkerStatus {
            name,
            resource_version,
            status,
            ..
        } => {
            let conditions: Vec<_> = status
                .conditions
                .iter()
                .map(|c| format!("{}={}/{}", c.type_, c.status, c.reason))
                .collect();
            format!("{name} v{resource_version} {conditions:?} debts {:?}", status.debts)
        }
        Request::PublishEvent(notice) => format!("{} {}", notice.reason, notice.note),
        other => format!("{other:?}"),
    };
    format!(
        "SEND {} {}#{} {words}",
        side(&effect.target),
        effect.request.kind(),
        effect.id.0
    )
}
