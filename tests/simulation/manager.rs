//! The manager's API server: jobs and `WorkerCluster` objects with versions, generations, finalizers and a status subresource.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::jiff::Timestamp;
use multikueue::api::{MultiKueueJobSpec, MultiKueueJobStatus, WorkerClusterSpec, WorkerClusterStatus};
use multikueue::dispatcher::effect::Notice;
use multikueue::dispatcher::{Answer, Refusal, RefusalKind, Request};
use multikueue::lifecycle::view::{JobKey, JobView, ResourceVersion, WorkerView};

use crate::log::Log;
use crate::refusal::refuse;

pub struct Manager {
    version: u64,
    uids: u64,
    pub jobs: BTreeMap<JobKey, JobView>,
    pub clusters: BTreeMap<Arc<str>, WorkerView>,
    pub job_log: Log<JobKey, JobView>,
    pub cluster_log: Log<Arc<str>, WorkerView>,
    pub events: Vec<Notice>,
}

impl Manager {
    pub fn new() -> Self {
        Self {
            version: 1000,
            uids: 0,
            jobs: BTreeMap::new(),
            clusters: BTreeMap::new(),
            job_log: Log::new(),
            cluster_log: Log::new(),
            events: Vec::new(),
        }
    }

    fn bump(&mut self) -> ResourceVersion {
        self.version += 1;
        ResourceVersion(self.version)
    }

    fn uid(&mut self, prefix: &str) -> Arc<str> {
        self.uids += 1;
        format!("{prefix}-{}", self.uids).into()
    }

    // --- users ---

    pub fn create_job(
        &mut self,
        key: &JobKey,
        spec: MultiKueueJobSpec,
        finalizers: Vec<String>,
        now: Timestamp,
    ) -> Arc<str> {
        let uid = self.uid("job");
        let view = JobView {
            key: key.clone(),
            uid: Arc::clone(&uid),
            resource_version: self.bump(),
            generation: 1,
            created: now,
            deleted: None,
            finalizers,
            spec,
            status: MultiKueueJobStatus::default(),
        };
        self.job_log.set(key.clone(), view.clone());
        self.jobs.insert(key.clone(), view);
        uid
    }

    pub fn create_cluster(
        &mut self,
        name: &str,
        labels: BTreeMap<String, String>,
        spec: WorkerClusterSpec,
        now: Timestamp,
    ) {
        let name: Arc<str> = name.into();
        let view = WorkerView {
            name: Arc::clone(&name),
            uid: self.uid("wc"),
            resource_version: self.bump(),
            generation: 1,
            created: now,
            deleted: None,
            finalizers: Vec::new(),
            labels,
            spec,
            status: WorkerClusterStatus::default(),
        };
        self.cluster_log.set(Arc::clone(&name), view.clone());
        self.clusters.insert(name, view);
    }

    pub fn edit_job(&mut self, key: &JobKey, edit: impl FnOnce(&mut MultiKueueJobSpec)) {
        let Some(job) = self.jobs.get_mut(key) else { return };
        let before = job.spec.clone();
        edit(&mut job.spec);
        if job.spec != before {
            job.generation += 1;
            self.changed_job(key);
        }
    }

    pub fn edit_job_finalizers(&mut self, key: &JobKey, edit: impl FnOnce(&mut Vec<String>)) {
        let Some(job) = self.jobs.get_mut(key) else { return };
        let before = job.finalizers.clone();
        edit(&mut job.finalizers);
        if job.finalizers != before {
            self.changed_job(key);
        }
    }

    pub fn edit_cluster(&mut self, name: &str, edit: impl FnOnce(&mut WorkerClusterSpec)) {
        let Some(cluster) = self.clusters.get_mut(name) else {
            return;
        };
        let before = cluster.spec.clone();
        edit(&mut cluster.spec);
        if cluster.spec != before {
            cluster.generation += 1;
            self.changed_cluster(name);
        }
    }

    pub fn delete_job(&mut self, key: &JobKey, now: Timestamp) {
        let Some(job) = self.jobs.get_mut(key) else { return };
        if job.deleted.is_none() {
            job.deleted = Some(now);
            job.generation += 1;
            self.changed_job(key);
        }
    }

    pub fn delete_cluster(&mut self, name: &str, now: Timestamp) {
        let Some(cluster) = self.clusters.get_mut(name) else {
            return;
        };
        if cluster.deleted.is_none() {
            cluster.deleted = Some(now);
            cluster.generation += 1;
            self.changed_cluster(name);
        }
    }

    /// Its namespace was finalized by force: the object is gone whatever its finalizers say.
    pub fn vanish_job(&mut self, key: &JobKey) {
        if self.jobs.remove(key).is_some() {
            self.bump();
            self.job_log.remove(key.clone());
        }
    }

    /// Writes a change down; a deleted object without finalizers is gone.
    fn changed_job(&mut self, key: &JobKey) {
        let version = self.bump();
        let Some(job) = self.jobs.get_mut(key) else { return };
        if job.deleted.is_some() && job.finalizers.is_empty() {
            self.jobs.remove(key);
            self.job_log.remove(key.clone());
            return;
        }
        job.resource_version = version;
        self.job_log.set(key.clone(), job.clone());
    }

    fn changed_cluster(&mut self, name: &str) {
        let version = self.bump();
        let Some(cluster) = self.clusters.get_mut(name) else {
            return;
        };
        if cluster.deleted.is_some() && cluster.finalizers.is_empty() {
            self.clusters.remove(name);
            self.cluster_log.remove(name.into());
            return;
        }
        cluster.resource_version = version;
        self.cluster_log.set(name.into(), cluster.clone());
    }

    // --- requests of the operator ---

    pub fn execute(&mut self, request: &Request) -> Result<Answer, Refusal> {
        match request {
            Request::GetJob { key } => self.job(key).map(|job| Answer::Job(Box::new(job.clone()))),
            Request::SetJobFinalizers {
                key,
                uid,
                resource_version,
                finalizers,
            } => {
                let job = self.job(key)?;
                expect_same((uid, *resource_version), (&job.uid, job.resource_version))?;
                check_finalizers(job.deleted.is_some(), &job.finalizers, finalizers)?;
                self.edit_job_finalizers(key, |list| list.clone_from(finalizers));
                Ok(self
                    .job(key)
                    .map_or(Answer::Accepted, |job| Answer::Job(Box::new(job.clone()))))
            }
            Request::WriteJobStatus {
                key,
                uid,
                resource_version,
                status,
            } => {
                let job = self.job(key)?;
                expect_same((uid, *resource_version), (&job.uid, job.resource_version))?;
                if job.status != **status {
                    job.status.clone_from(status);
                    self.changed_job(key);
                }
                self.job(key).map(|job| Answer::Job(Box::new(job.clone())))
            }
            Request::GetWorkerCluster { name } => self
                .cluster(name)
                .map(|cluster| Answer::WorkerCluster(Box::new(cluster.clone()))),
            Request::SetWorkerFinalizers {
                name,
                uid,
                resource_version,
                finalizers,
            } => {
                let cluster = self.cluster(name)?;
                expect_same((uid, *resource_version), (&cluster.uid, cluster.resource_version))?;
                check_finalizers(cluster.deleted.is_some(), &cluster.finalizers, finalizers)?;
                if cluster.finalizers != *finalizers {
                    cluster.finalizers.clone_from(finalizers);
                    self.changed_cluster(name);
                }
                Ok(self.cluster(name).map_or(Answer::Accepted, |cluster| {
                    Answer::WorkerCluster(Box::new(cluster.clone()))
                }))
            }
            Request::WriteWorkerStatus {
                name,
                uid,
                resource_version,
                status,
            } => {
                let cluster = self.cluster(name)?;
                expect_same((uid, *resource_version), (&cluster.uid, cluster.resource_version))?;
                if cluster.status != **status {
                    cluster.status.clone_from(status);
                    self.changed_cluster(name);
                }
                self.cluster(name)
                    .map(|cluster| Answer::WorkerCluster(Box::new(cluster.clone())))
            }
            Request::PublishEvent(notice) => {
                self.events.push((**notice).clone());
                Ok(Answer::Accepted)
            }
            other => panic!("{} was sent to the manager", other.kind()),
        }
    }

    fn job(&mut self, key: &JobKey) -> Result<&mut JobView, Refusal> {
        self.jobs.get_mut(key).ok_or_else(|| {
            refuse(
                RefusalKind::ObjectNotFound,
                format!("multikueuejobs {} not found", key.name),
            )
        })
    }

    fn cluster(&mut self, name: &str) -> Result<&mut WorkerView, Refusal> {
        self.clusters
            .get_mut(name)
            .ok_or_else(|| refuse(RefusalKind::ObjectNotFound, format!("workerclusters {name} not found")))
    }
}

/// The tests of a JSON patch on uid and resourceVersion.
fn expect_same(asked: (&str, ResourceVersion), is: (&str, ResourceVersion)) -> Result<(), Refusal> {
    if asked == is {
        Ok(())
    } else {
        Err(refuse(
            RefusalKind::Conflict,
            format!("test failed: asked for {asked:?}, is {is:?}"),
        ))
    }
}

/// An object that is being deleted takes no new finalizers.
fn check_finalizers(deleted: bool, before: &[String], after: &[String]) -> Result<(), Refusal> {
    if deleted && after.iter().any(|name| !before.contains(name)) {
        return Err(refuse(
            RefusalKind::Invalid,
            "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted",
        ));
    }
    Ok(())
}
