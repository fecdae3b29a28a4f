//! Debts: removals that are owed on a worker although their jobs are gone.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::api::Now;
use crate::api::worker_cluster::Debt;
use crate::lifecycle::view::JobKey;
use crate::workload::TemplateKind;

use super::Dispatcher;
use super::agenda::Item;
use super::effect::{Notice, Regarding, Request};
use super::traffic::Note;
use super::world::Worker;

/// Most debts that a status lists; the rest fall to the grace of orphans.
const DEBTS_KEPT: usize = 1_000;

impl Dispatcher {
    /// The job's mirror is owed a removal: the job itself need not wait any longer.
    pub(super) fn owe(&mut self, key: &JobKey, now: Now) {
        let Some(job) = self.jobs.get_mut(key) else { return };
        let Some(worker) = job.bound_to.as_ref().and_then(|name| self.workers.get_mut(name)) else {
            // Nobody to owe it to: a debt that can't be written holds no finalizer.
            job.owed = true;
            self.agenda.touch(Item::Job(key.clone()));
            return;
        };
        let written = worker.view.status.debts.iter().any(|d| *d.job_uid == *job.view.uid);
        if written || worker.debts.len() >= DEBTS_KEPT {
            job.owed = true;
            self.agenda.touch(Item::Job(key.clone()));
        } else if !worker.debts.iter().any(|d| *d.job_uid == *job.view.uid) {
            worker.debts.push(Debt {
                namespace: key.namespace.to_string(),
                name: key.name.to_string(),
                job_uid: job.view.uid.to_string(),
                since: Time(now.wall),
            });
            let note = format!(
                "its object on {} could not be removed in time; the removal is owed",
                worker.view.name
            );
            let regarding = Regarding::Job(key.clone(), job.view.uid.clone());
            self.agenda.touch(Item::Worker(worker.view.name.clone()));
            self.notice(Notice {
                regarding,
                warning: true,
                reason: "RemovalOwed",
                action: "Delete",
                note,
            });
        }
    }

    /// What a `WorkerCluster` that leaves owes, the one that now stands for its cluster owes.
    pub(super) fn bequeath_debts(&mut self) {
        let leaving = self.workers.values().filter(|w| w.view.deleted.is_some());
        let legacies: Vec<_> = leaving
            .filter_map(|w| Some((w.view.name.clone(), w.duplicate_of.clone()?, w.debts.clone())))
            .collect();
        for (leaving, heir, debts) in legacies {
            // It goes once its heir has written them down.
            self.agenda.touch(Item::Worker(leaving));
            let Some(worker) = self.workers.get_mut(&heir) else {
                continue;
            };
            for debt in debts {
                let known = worker.debts.iter().any(|d| d.job_uid == debt.job_uid);
                if !known && worker.debts.len() < DEBTS_KEPT {
                    worker.debts.push(debt);
                }
            }
            self.agenda.touch(Item::Worker(heir));
        }
    }

    /// How many debts of a `WorkerCluster` that leaves are not written down by its heir yet. Those beyond what a status lists fall to the
    /// grace of orphans.
    pub(super) fn not_inherited(&self, worker: &Worker) -> usize {
        let heir = worker.duplicate_of.as_ref().and_then(|heir| self.workers.get(heir));
        let written = heir.map_or(&[][..], |heir| &heir.view.status.debts);
        if written.len() >= DEBTS_KEPT {
            return 0;
        }
        let debts = worker.debts.iter();
        debts
            .filter(|debt| written.iter().all(|d| d.job_uid != debt.job_uid))
            .count()
    }

    /// The list of debts could not be written: what was to stand there holds no finalizer.
    pub(super) fn excuse_debts(&mut self, name: &Arc<str>) {
        let Some(worker) = self.workers.get(name) else { return };
        for debt in &worker.debts {
            let key = JobKey::new(&debt.namespace, &debt.name);
            if let Some(job) = self.jobs.get_mut(&key).filter(|job| *job.view.uid == *debt.job_uid) {
                job.owed = true;
                self.agenda.touch(Item::Job(key));
            }
        }
    }

    /// A debt whose object is not among the known mirrors is looked for by name: it may be gone already.
    pub(super) fn look_for_debts(&mut self, name: &Arc<str>, now: Now) {
        let Some(worker) = self.workers.get(name) else { return };
        if !worker.readable() || worker.lease.held_since.is_none() {
            return;
        }
        let unseen: Vec<_> = worker
            .debts
            .iter()
            .filter(|debt| !self.keys.contains_key(&*debt.job_uid))
            .map(|debt| (JobKey::new(&debt.namespace, &debt.name), debt.job_uid.clone()))
            .filter(|(key, uid)| {
                worker
                    .mirrors
                    .get(key)
                    .and_then(|m| m.view.as_ref())
                    .is_none_or(|v| v.identity.as_ref().is_none_or(|id| id.job_uid != *uid))
            })
            .collect();
        for (key, _) in unseen {
            let request = Request::GetMirror {
                kind: TemplateKind::Job,
                key: key.clone(),
            };
            let item = Item::Stray(name.clone(), key.clone());
            self.send_to_mirror(name, &key, &item, Note::Read, request, now);
        }
    }

    /// A GET found nothing of that name, or another's object: what was owed there is paid.
    pub(super) fn pay_debt(&mut self, name: &Arc<str>, key: &JobKey, now: Now) {
        let keys = &self.keys;
        let Some(worker) = self.workers.get(name) else {
            return;
        };
        let there = worker
            .mirrors
            .get(key)
            .and_then(|m| m.view.as_ref())
            .and_then(|v| v.identity.as_ref())
            .map(|id| id.job_uid.clone());
        let debtors = self.workers.values_mut();
        for worker in debtors.filter(|w| w.view.name == *name || w.duplicate_of.as_ref() == Some(name)) {
            let before = worker.debts.len();
            worker.debts.retain(|d| {
                let named = *d.namespace == *key.namespace && *d.name == *key.name;
                !named || keys.contains_key(&*d.job_uid) || there.as_ref() == Some(&d.job_uid)
            });
            if worker.debts.len() != before {
                self.agenda.wake(now.mono, Item::Worker(worker.view.name.clone()));
            }
        }
    }
}
