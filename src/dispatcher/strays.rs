//! Objects on workers that are not the current mirror of their job: judged by the table, removed by the one way.

use std::sync::Arc;
use std::time::Duration;

use crate::api::Now;
use crate::lifecycle::intent::Intent;
use crate::lifecycle::judge::{Owner, Verdict, judge};
use crate::lifecycle::removal::{Removal, removal};
use crate::lifecycle::step::WorkerStep;
use crate::lifecycle::view::{JobKey, MirrorView};

use crate::workload::TemplateKind;

use super::Dispatcher;
use super::agenda::Item;
use super::effect::{Request, Target};
use super::traffic::Note;
use super::world::OwnerProof;

/// A proof that waits for a renewal of the claim is looked at again after this time.
const CLAIM_CHECK: Duration = Duration::from_secs(1);

impl Dispatcher {
    /// Sends what a stray needs next.
    pub(super) fn step_stray(&mut self, name: &Arc<str>, key: &JobKey, now: Now) {
        let item = Item::Stray(name.clone(), key.clone());
        let lease = self.config.worker_lease;
        let Some(worker) = self.workers.get_mut(name) else {
            return;
        };
        if worker.bound.contains(key) {
            self.agenda.touch(Item::Job(key.clone()));
            return;
        }
        let held = worker.readable() && worker.lease.expires(lease).is_some_and(|end| end > now.mono);
        let Some(mirror) = worker.mirrors.get(key) else { return };
        if mirror.is_idle() {
            worker.mirrors.remove(key);
            return;
        }
        if !held {
            return;
        }
        if !mirror.side.ready(now.mono) {
            if mirror.side.inflight.is_none() {
                self.agenda.wake(mirror.side.not_before, item);
            }
            return;
        }
        if mirror.side.verify {
            // What has the name may be of any kind that was tried there; there is one.
            let kind = mirror.view.as_ref().map_or(TemplateKind::Job, |v| v.kind);
            let request = Request::GetMirror { kind, key: key.clone() };
            self.send_to_mirror(name, key, &item, Note::Read, request, now);
            return;
        }
        match self.judge_stray(name, key, now) {
            Some(Verdict::Remove) => self.remove_stray(name, key, now),
            Some(Verdict::Orphan) => self.orphaned(name, key, now),
            Some(Verdict::Adopt) => self.adopt(name, key, now),
            Some(Verdict::AskForJob) => self.ask_for_job(name, key, now),
            Some(Verdict::Stranger | Verdict::Dying | Verdict::Follow | Verdict::Record) | None => {}
        }
    }

    fn judge_stray(&self, name: &Arc<str>, key: &JobKey, now: Now) -> Option<Verdict> {
        let worker = self.workers.get(name)?;
        let mirror = worker.mirrors.get(key)?;
        let view = mirror.view.as_ref()?;
        let debt = |view: &MirrorView| {
            let identity = view.identity.as_ref();
            identity.is_some_and(|id| worker.debts.iter().any(|d| d.job_uid == id.job_uid))
        };
        let owner = match (self.jobs.get(key), mirror.owner) {
            (Some(job), _) if view.identity.as_ref().is_none_or(|id| id.job_uid == *job.view.uid) => {
                Owner::Exists(&job.view)
            }
            // Another uid has the job's name: a uid never comes back, so the mirror's job is gone.
            (Some(_), _) => Owner::Absent { debt: debt(view) },
            // The answer was this manager's: our claim on it was renewed since.
            (None, OwnerProof::NotFound(asked)) if self.claim_renewed > asked => Owner::Absent { debt: debt(view) },
            (None, _) => Owner::Unseen,
        };
        let verdict = judge(Self::ours(&self.config, Some(worker)), owner, view);
        let grace_over = mirror
            .orphan_since
            .is_some_and(|since| now.mono >= since + self.config.orphan_grace);
        Some(if verdict == Verdict::Orphan && grace_over {
            Verdict::Remove
        } else {
            verdict
        })
    }

    fn remove_stray(&mut self, name: &Arc<str>, key: &JobKey, now: Now) {
        let item = Item::Stray(name.clone(), key.clone());
        let Some(view) = self
            .workers
            .get(name)
            .and_then(|w| w.mirrors.get(key))
            .and_then(|m| m.view.as_ref())
        else {
            return;
        };
        let kind = view.kind;
        let step = match removal(view) {
            Removal::Delete => WorkerStep::Delete,
            Removal::Suspend => WorkerStep::Suspend,
            Removal::Wait(_) => return,
        };
        if let Some((request, note)) = self.worker_request(name, key, kind, step) {
            self.send_to_mirror(name, key, &item, note, request, now);
        }
    }

    fn orphaned(&mut self, name: &Arc<str>, key: &JobKey, now: Now) {
        let Some(mirror) = self.workers.get_mut(name).and_then(|w| w.mirrors.get_mut(key)) else {
            return;
        };
        let first = mirror.orphan_since.is_none();
        let since = *mirror.orphan_since.get_or_insert(now.mono);
        self.agenda
            .wake(since + self.config.orphan_grace, Item::Stray(name.clone(), key.clone()));
        if first {
            self.notice_orphan(name, key);
        }
    }

    fn adopt(&mut self, name: &Arc<str>, key: &JobKey, now: Now) {
        let Some(job) = self
            .jobs
            .get(key)
            .filter(|job| job.side.ready(now.mono) && !job.side.verify)
        else {
            return;
        };
        let Some(view) = self
            .workers
            .get(name)
            .and_then(|w| w.mirrors.get(key))
            .and_then(|m| m.view.as_ref())
        else {
            return;
        };
        let Some(status) = Intent::new(&job.view, now).adopt(name, view) else {
            return;
        };
        let (uid, resource_version) = (job.view.uid.clone(), job.view.resource_version);
        let request = Request::WriteJobStatus {
            key: key.clone(),
            uid,
            resource_version,
            status: Box::new(status),
        };
        self.drop_plan(key);
        let sent = self.send(
            &Target::Manager,
            &Item::Job(key.clone()),
            Note::None,
            request,
            None,
            now,
        );
        if let Some(job) = self.jobs.get_mut(key) {
            job.side.inflight = sent;
        }
    }

    /// Its job was not seen: it must be proven absent before anything is done.
    fn ask_for_job(&mut self, name: &Arc<str>, key: &JobKey, now: Now) {
        let item = Item::Stray(name.clone(), key.clone());
        if !self.is_synced() {
            return;
        }
        let asked = self
            .workers
            .get(name)
            .and_then(|w| w.mirrors.get(key))
            .is_some_and(|m| m.owner != OwnerProof::Unasked);
        if asked {
            self.agenda.wake(now.mono + CLAIM_CHECK, item);
            return;
        }
        // The answer must be later than the outcome of our last write: of the finalizer of a job that a watch has shown to be gone already.
        if let Some(deadline) = self.traffic.under_way(&Target::Manager, &Item::Job(key.clone())) {
            self.agenda.wake(deadline, item);
            return;
        }
        let sent = self.send(
            &Target::Manager,
            &item,
            Note::Read,
            Request::GetJob { key: key.clone() },
            None,
            now,
        );
        if let Some(mirror) = self.workers.get_mut(name).and_then(|w| w.mirrors.get_mut(key)) {
            mirror.side.inflight = sent;
        }
    }
}
