//! Events for people: one at each change that matters, best effort.

use std::sync::Arc;
use std::time::Duration;

use crate::api::Now;
use crate::api::job::Phase;
use crate::lifecycle::view::{JobKey, JobView};

use super::Dispatcher;
use super::agenda::Item;
use super::effect::{Notice, Regarding, Request, Target};
use super::traffic::Note;

/// Notices that wait to be published; beyond it the oldest go, since they block nothing.
const WAITING: usize = 200;
/// One notice in this time over all objects, after a burst: a thousand jobs at once are no storm of events.
const PACE: Duration = Duration::from_millis(100);
/// How far the pace may be ahead: the burst.
const BURST: Duration = Duration::from_secs(5);
/// Room that notices leave for other requests.
const RESERVE: usize = 4;

impl Dispatcher {
    /// What changed between two views of a job, in words.
    pub(super) fn notice_change(&mut self, old: &JobView, new: &JobView) {
        let (was, is) = (&old.status, &new.status);
        let cluster = is
            .assignment
            .as_ref()
            .or(was.assignment.as_ref())
            .map_or("", |a| &*a.cluster);
        let told = |reason, action, warning, note: String| (reason, action, warning, note);
        let ready = is
            .conditions
            .iter()
            .find(|c| c.type_ == crate::api::conditions::READY)
            .map_or("", |c| &*c.message);
        let revoking = |status: &crate::api::MultiKueueJobStatus| {
            status
                .assignment
                .as_ref()
                .and_then(|a| a.revoking.as_ref().map(|r| r.reason))
        };
        let (reason, action, warning, note) = if was.phase != is.phase {
            match is.phase {
                Phase::Assigned => told(
                    "Assigned",
                    "Assign",
                    false,
                    format!("attempt {} goes to {cluster}", is.last_attempt),
                ),
                Phase::Running => told(
                    "Running",
                    "Follow",
                    false,
                    format!("every pod has started on {cluster}"),
                ),
                Phase::Succeeded => told("Succeeded", "Finish", false, format!("complete on {cluster}")),
                Phase::Failed => told("Failed", "Finish", true, ready.to_owned()),
                Phase::Unknown => told("WorkerLost", "Follow", true, format!("{cluster} does not answer")),
                Phase::Suspended => told("Suspended", "Suspend", false, "spec.suspend is true".into()),
                Phase::Queued if was.assignment.is_some() => told("Requeued", "Requeue", true, ready.to_owned()),
                Phase::Queued => return,
            }
        } else if let (None, Some(reason)) = (revoking(was), revoking(is)) {
            told(
                "Revoking",
                "Revoke",
                false,
                format!("taken off {cluster}: {}", reason.as_str()),
            )
        } else if was.assignment.is_some() && is.assignment.is_none() && is.phase == Phase::Queued {
            told("Requeued", "Requeue", true, ready.to_owned())
        } else {
            return;
        };
        let regarding = Regarding::Job(new.key.clone(), new.uid.clone());
        self.notice(Notice {
            regarding,
            warning,
            reason,
            action,
            note,
        });
    }

    pub(super) fn notice_released(&mut self, key: &JobKey) {
        let Some(job) = self.jobs.get(key) else { return };
        let cluster = job.view.status.assignment.as_ref().map_or("", |a| &*a.cluster);
        let note = format!("released on {cluster}");
        let regarding = Regarding::Job(key.clone(), job.view.uid.clone());
        self.notice(Notice {
            regarding,
            warning: false,
            reason: "Released",
            action: "Release",
            note,
        });
    }

    /// A worker answers, or does not any more. Only a leader speaks: every replica has links of its own.
    pub(super) fn notice_link(&mut self, name: &Arc<str>, warning: bool, reason: &'static str, note: &str) {
        let Some(worker) = self.workers.get(name).filter(|_| self.claim.is_some()) else {
            return;
        };
        let regarding = Regarding::WorkerCluster(name.clone(), worker.view.uid.clone());
        self.notice(Notice {
            regarding,
            warning,
            reason,
            action: "Connect",
            note: note.into(),
        });
    }

    pub(super) fn notice_orphan(&mut self, name: &Arc<str>, key: &JobKey) {
        let Some(worker) = self.workers.get(name) else { return };
        let hours = self.config.orphan_grace.as_secs() / 3600;
        let note = format!(
            "{key} runs there for a job that does not exist any more; it is removed in {hours} h (--orphan-grace)"
        );
        let regarding = Regarding::WorkerCluster(name.clone(), worker.view.uid.clone());
        self.notice(Notice {
            regarding,
            warning: true,
            reason: "Orphaned",
            action: "Sweep",
            note,
        });
    }

    pub(super) fn notice(&mut self, notice: Notice) {
        self.notices.push_back(notice);
        if self.notices.len() > WAITING {
            self.notices.pop_front();
        }
    }

    /// Hands out notices at their pace, as far as the manager has room to spare.
    pub(super) fn publish(&mut self, now: Now) {
        while self.traffic.free(&Target::Manager) > RESERVE {
            if self.notices.is_empty() {
                return;
            }
            if self.notice_at > now.mono {
                self.agenda.wake(self.notice_at, Item::Worker("".into()));
                return;
            }
            self.notice_at = self.notice_at.max(now.mono.saturating_sub(BURST)) + PACE;
            let Some(notice) = self.notices.pop_front() else { return };
            let item = Item::Worker("".into());
            self.send(
                &Target::Manager,
                &item,
                Note::Event,
                Request::PublishEvent(Box::new(notice)),
                None,
                now,
            );
        }
    }
}
