//! Lists and watches: what the logs of the servers look like as events of the core.

use std::collections::VecDeque;
use std::sync::Arc;

use multikueue::dispatcher::{Event, WorkerEvent};

use crate::log::Change;
use crate::watches::Source;
use crate::world::World;

impl World {
    pub fn length(&self, source: Source) -> usize {
        match source {
            Source::Jobs => self.manager.job_log.len(),
            Source::Clusters => self.manager.cluster_log.len(),
            Source::Nodes(worker) => self.workers[worker].node_log.len(),
            Source::Pods(worker) => self.workers[worker].pod_log.len(),
            Source::Mirrors(worker) => self.workers[worker].mirror_log.len(),
        }
    }

    /// A list as of now.
    pub fn list(&self, source: Source, epoch: u64) -> VecDeque<Event> {
        let of = |worker: usize, event| self.of(worker, epoch, event);
        match source {
            Source::Jobs => {
                let jobs = self.manager.job_log.current();
                let each = jobs.values().map(|job| Event::Job(Box::new((**job).clone())));
                each.chain([Event::JobsListed(jobs.keys().cloned().collect())])
                    .collect()
            }
            Source::Clusters => {
                let clusters = self.manager.cluster_log.current();
                let each = clusters
                    .values()
                    .map(|cluster| Event::WorkerCluster(Box::new((**cluster).clone())));
                each.chain([Event::WorkerClustersListed(clusters.keys().cloned().collect())])
                    .collect()
            }
            Source::Nodes(worker) => {
                let rows = self.workers[worker].node_log.current();
                let rows = rows.values().map(|row| (**row).clone()).collect();
                [of(worker, WorkerEvent::NodesListed(rows))].into()
            }
            Source::Pods(worker) => {
                let rows = self.workers[worker].pod_log.current();
                let rows = rows.values().map(|row| (**row).clone()).collect();
                [of(worker, WorkerEvent::PodsListed(rows))].into()
            }
            Source::Mirrors(worker) => {
                let mirrors = self.workers[worker].mirror_log.current();
                let each = mirrors
                    .values()
                    .map(|mirror| of(worker, WorkerEvent::Mirror(Box::new((**mirror).clone()))));
                let listed = of(worker, WorkerEvent::MirrorsListed(mirrors.keys().cloned().collect()));
                each.chain([listed]).collect()
            }
        }
    }

    /// One change as a watch shows it.
    pub fn change(&self, source: Source, index: usize, epoch: u64) -> Event {
        match source {
            Source::Jobs => match self.manager.job_log.entry(index) {
                (_, Change::Set(job)) => Event::Job(Box::new(job.clone())),
                (key, Change::Removed(job)) => Event::JobDeleted {
                    key: key.clone(),
                    uid: Arc::clone(&job.uid),
                },
            },
            Source::Clusters => match self.manager.cluster_log.entry(index) {
                (_, Change::Set(cluster)) => Event::WorkerCluster(Box::new(cluster.clone())),
                (name, Change::Removed(_)) => Event::WorkerClusterDeleted(Arc::clone(name)),
            },
            Source::Nodes(worker) => {
                let event = match self.workers[worker].node_log.entry(index) {
                    (_, Change::Set(row)) => WorkerEvent::Node(row.clone()),
                    (name, Change::Removed(_)) => WorkerEvent::NodeDeleted(Arc::clone(name)),
                };
                self.of(worker, epoch, event)
            }
            Source::Pods(worker) => {
                let event = match self.workers[worker].pod_log.entry(index) {
                    (_, Change::Set(row)) => WorkerEvent::Pod(row.clone()),
                    ((namespace, name), Change::Removed(_)) => {
                        WorkerEvent::PodDeleted(Arc::clone(namespace), Arc::clone(name))
                    }
                };
                self.of(worker, epoch, event)
            }
            Source::Mirrors(worker) => {
                let event = match self.workers[worker].mirror_log.entry(index) {
                    (_, Change::Set(mirror)) => WorkerEvent::Mirror(Box::new(mirror.clone())),
                    (key, Change::Removed(mirror)) => WorkerEvent::MirrorDeleted {
                        key: key.clone(),
                        uid: Arc::clone(&mirror.uid),
                    },
                };
                self.of(worker, epoch, event)
            }
        }
    }

    fn of(&self, worker: usize, epoch: u64, event: WorkerEvent) -> Event {
        Event::Worker {
            name: Arc::clone(&self.workers[worker].name),
            epoch,
            event,
        }
    }
}
