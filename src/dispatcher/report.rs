//! What the core says about workers, in their status, and about itself, for metrics.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

use crate::api::conditions::{AUTHORIZED, CAPACITY_KNOWN, CONNECTED, WorkerReason, set_condition};
use crate::api::job::Phase;
use crate::api::{Now, WorkerClusterStatus};
use crate::capacity::Ledger;

use super::Dispatcher;
use super::agenda::Item;
use super::summary::{Summary, WorkerSummary};
use super::world::{Link, Worker};

impl Dispatcher {
    /// The status of a worker when it says something new that is due; none otherwise.
    pub(super) fn worker_status(&mut self, name: &Arc<str>, now: Now) -> Option<WorkerClusterStatus> {
        let worker = self.workers.get(name)?;
        let old = &worker.view.status;
        let mut status = old.clone();
        status.observed_generation = worker.view.generation;
        let ledger = self.sites.get(name).map(|site| &site.ledger);
        let known = ledger.map_or(Err("not connected yet"), |ledger| ledger.known());
        worker_conditions(worker, ledger, now, &mut status.conditions);
        if let Link::Up { cluster_uid, version } = &worker.link {
            if status.cluster_uid.is_none() && worker.view.deleted.is_none() {
                status.cluster_uid = Some(cluster_uid.to_string());
            }
            if worker.is_itself() {
                status.version = Some(version.clone());
                if let Some(access) = &worker.access {
                    status.kinds = access.kinds.iter().cloned().collect();
                }
            }
        }
        status.lost_since = worker.lost_since.map(Time);
        status.debts.clone_from(&worker.debts);
        let urgent = differ(old, &status);
        if let (Ok(()), Some(ledger)) = (known, ledger) {
            let report = ledger.devices();
            status.devices = report.by_model;
            status.free_devices = report.free;
            status.largest_free_block = report.largest_free_block;
        }
        let phases = worker
            .bound
            .iter()
            .filter_map(|key| self.jobs.get(key))
            .map(|job| job.view.status.phase);
        let (mut running, mut promised) = (0, 0);
        for phase in phases {
            match phase {
                Phase::Running => running += 1,
                Phase::Assigned => promised += 1,
                _ => {}
            }
        }
        (status.running_jobs, status.promised_jobs) = (running, promised);
        if *old == status {
            return None;
        }
        if !urgent && worker.report_at > now.mono {
            let at = worker.report_at;
            self.agenda.wake(at, Item::Worker(name.clone()));
            return None;
        }
        Some(status)
    }

    /// What the core says about itself; the latencies since the last call are taken.
    pub fn summary(&mut self, _now: Now) -> Summary {
        let mut summary = Summary {
            queue_length: self.scheduler.len(),
            dispatch_latencies: std::mem::take(&mut self.latencies),
            unreadable_jobs: self.unreadable.len(),
            ..Summary::default()
        };
        for job in self.jobs.values() {
            *summary.jobs.entry(job.view.status.phase).or_default() += 1;
        }
        for (name, worker) in &self.workers {
            let devices = match self.sites.get(name) {
                Some(site) if site.ledger.known().is_ok() => site.ledger.devices().by_model,
                _ => std::collections::BTreeMap::new(),
            };
            summary.workers.insert(
                name.clone(),
                WorkerSummary {
                    connected: worker.is_itself(),
                    devices,
                },
            );
        }
        summary
    }
}

/// The conditions of a worker as they are now.
fn worker_conditions(worker: &Worker, ledger: Option<&Ledger>, now: Now, conditions: &mut Vec<Condition>) {
    let mut set = |type_: &str, status: &str, reason: &str, message: &str| {
        set_condition(
            conditions,
            type_,
            status,
            reason,
            message,
            worker.view.generation,
            now.wall,
        );
    };
    let up = match &worker.link {
        Link::Connecting => {
            if worker.view.status.conditions.is_empty() {
                set(
                    CONNECTED,
                    "Unknown",
                    WorkerReason::Connecting.as_str(),
                    "the first contact is being made",
                );
            }
            return;
        }
        Link::Down { reason, message } => {
            set(CONNECTED, "False", reason, message);
            false
        }
        Link::Up { cluster_uid, .. } => match (worker.pinned_uid(), &worker.duplicate_of) {
            (Some(pinned), _) if *pinned != **cluster_uid => {
                let message = format!(
                    "another cluster answers there: {cluster_uid} instead of {pinned}; nothing is written to it"
                );
                set(CONNECTED, "False", WorkerReason::IdentityChanged.as_str(), &message);
                false
            }
            (_, Some(first)) => {
                let message = format!("WorkerCluster {first} has the same cluster and is older; this one is not used");
                set(CONNECTED, "False", WorkerReason::DuplicateCluster.as_str(), &message);
                false
            }
            _ => {
                set(CONNECTED, "True", WorkerReason::Connected.as_str(), "");
                true
            }
        },
    };
    if !up {
        let reason = WorkerReason::Disconnected.as_str();
        set(AUTHORIZED, "Unknown", reason, "the worker is not connected");
        set(CAPACITY_KNOWN, "Unknown", reason, "the worker is not connected");
        return;
    }
    match (&worker.access, &worker.lease.obstacle) {
        (None, _) => {}
        (Some(access), _) if !access.missing.is_empty() => {
            let message = format!("missing rights: {}", access.missing.join(", "));
            set(AUTHORIZED, "False", WorkerReason::PermissionsMissing.as_str(), &message);
        }
        (Some(_), Some((reason, message))) => set(AUTHORIZED, "False", reason, message),
        (Some(access), None) => {
            let message = if access.degraded.is_empty() {
                String::new()
            } else {
                format!("rights missing for some capabilities: {}", access.degraded.join(", "))
            };
            set(AUTHORIZED, "True", WorkerReason::Authorized.as_str(), &message);
        }
    }
    match ledger.map_or(Err("not connected yet"), Ledger::known) {
        Ok(()) => set(CAPACITY_KNOWN, "True", WorkerReason::Synced.as_str(), ""),
        Err(message) => {
            let failing = ledger.is_some_and(Ledger::is_failing);
            let reason = if failing {
                WorkerReason::WatchFailed
            } else {
                WorkerReason::Syncing
            };
            set(CAPACITY_KNOWN, "False", reason.as_str(), message);
        }
    }
}

/// True when two statuses differ in more than numbers.
fn differ(old: &WorkerClusterStatus, new: &WorkerClusterStatus) -> bool {
    let facts = |s: &WorkerClusterStatus| {
        (
            s.observed_generation,
            s.conditions.clone(),
            s.cluster_uid.clone(),
            s.version.clone(),
            s.kinds.clone(),
            s.lost_since.clone(),
            s.debts.clone(),
        )
    };
    facts(old) != facts(new)
}
