//! A worker's API server: what it does and answers when the operator asks.

use std::sync::Arc;

use multikueue::api::names;
use multikueue::dispatcher::{Answer, Refusal, RefusalKind, Request};
use multikueue::lifecycle::view::{JobKey, LeaseView, ResourceVersion};
use serde_json::{Value, json};

use crate::object::Object;
use crate::patch::{json_patch, merge_patch};
use crate::refusal::refuse;
use crate::worker::Worker;

impl Worker {
    pub fn execute(&mut self, request: &Request) -> Result<Answer, Refusal> {
        match request {
            Request::RenewLease {
                holder,
                resource_version,
                ..
            } => self.renew(holder, *resource_version),
            Request::CreateNamespace { name } => {
                self.namespaces.insert(Arc::clone(name));
                Ok(Answer::Accepted)
            }
            Request::CreateMirror {
                key, object, dry_run, ..
            } => {
                if !self.namespaces.contains(&key.namespace) {
                    return Err(refuse(
                        RefusalKind::NamespaceNotFound,
                        format!("namespaces {} not found", key.namespace),
                    ));
                }
                if self.jobs.contains_key(key) {
                    return Err(refuse(
                        RefusalKind::AlreadyExists,
                        format!("jobs.batch {} already exists", key.name),
                    ));
                }
                if self.denies {
                    return Err(refuse(RefusalKind::Forbidden, "exceeded quota: devices"));
                }
                if *dry_run {
                    return Ok(Answer::Mirror(Box::new(self.draft(object.to_value()).view(key))));
                }
                self.create(key, object.to_value());
                self.mirror(key)
            }
            Request::GetMirror { key, .. } => self.mirror(key),
            Request::JsonPatchMirror { key, patch, .. } => {
                let object = self.object(key)?;
                let before = object.document.clone();
                json_patch(&mut object.document, patch).map_err(|message| Refusal {
                    code: 422,
                    ..refuse(RefusalKind::Conflict, message)
                })?;
                if object.document != before {
                    self.changed_job(key);
                }
                self.mirror(key)
            }
            Request::MergePatchMirror { key, patch, .. } => {
                let object = self.object(key)?;
                for name in ["uid", "resourceVersion"] {
                    let asked = &patch["metadata"][name];
                    if *asked != Value::Null && *asked != object.document["metadata"][name] {
                        return Err(refuse(
                            RefusalKind::Conflict,
                            format!("metadata.{name} differs from {asked}"),
                        ));
                    }
                }
                let before = object.document.clone();
                merge_patch(&mut object.document, patch);
                if object.document != before {
                    self.changed_job(key);
                }
                self.mirror(key)
            }
            Request::DeleteMirror {
                key,
                uid,
                resource_version,
                ..
            } => {
                let object = self.object(key)?;
                if object.uid != *uid || object.version != *resource_version {
                    let message = format!(
                        "preconditions {uid} {resource_version}, is {} {}",
                        object.uid, object.version
                    );
                    return Err(refuse(RefusalKind::Conflict, message));
                }
                self.delete(key);
                Ok(Answer::Accepted)
            }
            Request::ListPods { namespace, job_uid } => Ok(Answer::Pods(
                self.pods
                    .values()
                    .filter(|pod| pod.live() && pod.namespace == *namespace && pod.job_uid.as_ref() == Some(job_uid))
                    .count(),
            )),
            other => panic!("{} was sent to a worker", other.kind()),
        }
    }

    /// DELETE with background propagation: gone at once, unless a finalizer holds it.
    pub fn delete(&mut self, key: &JobKey) {
        let Some(object) = self.jobs.get_mut(key) else { return };
        if object.finalizers().is_empty() {
            self.remove_job(key);
        } else if !object.deleting() {
            object.document["metadata"]["deletionTimestamp"] = json!("2027-01-15T08:00:00Z");
            self.changed_job(key);
        }
    }

    fn renew(&mut self, holder: &str, version: Option<ResourceVersion>) -> Result<Answer, Refusal> {
        let home = names::WORKER_LEASE_NAMESPACE;
        match (&self.lease, version) {
            _ if !self.namespaces.contains(home) => {
                return Err(refuse(
                    RefusalKind::NamespaceNotFound,
                    format!("namespaces {home} not found"),
                ));
            }
            // No version was named and it exists: the rim reads it, and the core decides whether to take it over.
            (Some(lease), None) => return Ok(Answer::Lease(lease.clone())),
            (Some(lease), Some(version)) if lease.resource_version != version => {
                return Err(refuse(RefusalKind::Conflict, "the lease has been modified"));
            }
            (None, Some(_)) => return Err(refuse(RefusalKind::ObjectNotFound, "leases not found")),
            _ => {}
        }
        let lease = LeaseView {
            holder: holder.to_owned(),
            resource_version: self.bump(),
        };
        self.lease = Some(lease.clone());
        Ok(Answer::Lease(lease))
    }

    fn object(&mut self, key: &JobKey) -> Result<&mut Object, Refusal> {
        self.jobs.get_mut(key).ok_or_else(|| {
            refuse(
                RefusalKind::ObjectNotFound,
                format!("jobs.batch {} not found", key.name),
            )
        })
    }

    fn mirror(&mut self, key: &JobKey) -> Result<Answer, Refusal> {
        self.object(key)
            .map(|object| Answer::Mirror(Box::new(object.view(key))))
    }
}
