//! What watches show of a worker: mirrors, nodes and pods.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use crate::api::Now;
use crate::lifecycle::view::{JobKey, MirrorView};

use super::Dispatcher;
use super::agenda::Item;
use super::event::WorkerEvent;

/// A change of nodes or pods shows in the worker's status after this time.
const REPORT: Duration = Duration::from_secs(1);
/// Changes of nodes and pods are collected this long before the next cycle.
const DEBOUNCE: Duration = Duration::from_millis(50);

impl Dispatcher {
    // === mirrors ===

    /// An object of a job's name on a worker, from a watch or an answer; `read_at` is when the request was sent or the event taken.
    pub(super) fn mirror_seen(&mut self, name: &Arc<str>, view: MirrorView, read_at: Duration, now: Now) {
        let Some(worker) = self.workers.get_mut(name) else {
            return;
        };
        let key = view.key.clone();
        let mirror = worker.mirrors.entry(key.clone()).or_default();
        if mirror
            .view
            .as_ref()
            .is_some_and(|known| known.resource_version > view.resource_version)
        {
            return;
        }
        if mirror.outlived(&view, read_at) {
            // The answer is older than the news that the object is gone: which of them holds is asked.
            mirror.side.verify = true;
            self.touch_mirror(name, &key);
            return;
        }
        mirror.see(view, read_at);
        self.sync_promise(&key, now);
        self.touch_mirror(name, &key);
    }

    /// A watch or a list no longer shows the object: a hint, from which the proof of absence starts.
    pub(super) fn mirror_vanished(&mut self, name: &Arc<str>, key: &JobKey, uid: Option<&Arc<str>>, now: Now) {
        let Some(mirror) = self.workers.get_mut(name).and_then(|w| w.mirrors.get_mut(key)) else {
            return;
        };
        if let (Some(uid), Some(view)) = (uid, &mirror.view)
            && view.uid != *uid
        {
            return;
        }
        mirror.vanish(now.mono);
        self.sync_promise(key, now);
        self.touch_mirror(name, key);
    }

    pub(super) fn mirrors_listed(&mut self, name: &Arc<str>, keys: &BTreeSet<JobKey>, now: Now) {
        let Some(worker) = self.workers.get_mut(name) else {
            return;
        };
        worker.mirrors_listed = true;
        // Its watch may have been lost while the connection held.
        let linked = worker.linked_uid();
        if linked.is_some_and(|linked| worker.pinned_uid().is_none_or(|pinned| *pinned == **linked)) {
            worker.lost_since = None;
        }
        let own = |m: &super::world::Mirror| m.view.as_ref().is_some_and(|v| v.identity.is_some());
        let vanished: Vec<_> = worker
            .mirrors
            .iter()
            .filter(|(key, m)| own(m) && !keys.contains(*key))
            .map(|(key, _)| key.clone())
            .collect();
        for key in vanished {
            self.mirror_vanished(name, &key, None, now);
        }
        self.refresh_site(name, now);
        self.touch_bound(name);
        self.touch_shunning(name);
    }

    /// Looks at what a mirror means: a job's current one through the job, any other by the table.
    pub(super) fn touch_mirror(&mut self, name: &Arc<str>, key: &JobKey) {
        let Some(worker) = self.workers.get(name) else { return };
        let bound = worker.bound.contains(key);
        if worker.view.deleted.is_some() {
            // A WorkerCluster that is being deleted waits for what is left there.
            self.agenda.touch(Item::Worker(name.clone()));
        }
        self.agenda.touch(if bound {
            Item::Job(key.clone())
        } else {
            Item::Stray(name.clone(), key.clone())
        });
    }

    // === capacity ===

    pub(super) fn capacity_event(&mut self, name: &Arc<str>, event: WorkerEvent, now: Now) {
        let Some(site) = self.sites.get_mut(name) else { return };
        let ledger = &mut site.ledger;
        let mut ran = Vec::new();
        match event {
            WorkerEvent::Node(node) => ledger.upsert_node(&node),
            WorkerEvent::NodeDeleted(node) => ledger.delete_node(&node),
            WorkerEvent::NodesListed(nodes) => ledger.reset_nodes(&nodes),
            WorkerEvent::Pod(pod) => {
                ledger.upsert_pod(&pod);
                ran.push(pod);
            }
            WorkerEvent::PodDeleted(namespace, pod) => ledger.delete_pod(&namespace, &pod),
            WorkerEvent::PodsListed(pods) => {
                ledger.reset_pods(&pods);
                ran = pods;
            }
            WorkerEvent::RuntimeClasses(classes) => ledger.set_runtime_classes(classes),
            WorkerEvent::CapacityLost { watched, message } => ledger.watch_lost(watched, &message),
            _ => return,
        }
        for pod in ran.into_iter().filter(|p| p.running) {
            if let (Some(job_uid), Some(owner)) = (pod.job_uid, pod.owner) {
                self.member_ran(name, &job_uid, &owner, pod.uid);
            }
        }
        self.agenda.wake(now.mono + REPORT, Item::Worker(name.clone()));
        self.want_cycle(now.mono + DEBOUNCE);
    }

    fn member_ran(&mut self, name: &Arc<str>, job_uid: &Arc<str>, owner: &Arc<str>, pod_uid: Arc<str>) {
        let Some(key) = self.keys.get(job_uid).cloned() else {
            return;
        };
        // Its mirror may be listed after its pods.
        let Some(worker) = self.workers.get_mut(name) else {
            return;
        };
        let mirror = worker.mirrors.entry(key.clone()).or_default();
        if mirror.ran.insert((owner.clone(), pod_uid)) && mirror.pods_started() {
            self.touch_mirror(name, &key);
        }
    }
}
