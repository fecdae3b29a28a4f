//! Who is who across clusters: keys, versions, and the marks that a mirror carries.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::names;

/// Namespace and name: of a job, and (they are equal) of its mirror on any worker.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobKey {
    /// Namespace.
    pub namespace: Arc<str>,
    /// Name.
    pub name: Arc<str>,
}

impl JobKey {
    /// A key of two names.
    pub fn new(namespace: &str, name: &str) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
        }
    }
}

impl fmt::Display for JobKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// A resourceVersion. Since 1.35 the API promises that they compare as integers within a kind (KEP-5504), and etcd always made them so.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResourceVersion(pub u64);

impl fmt::Display for ResourceVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// What a mirror says of where it belongs: our labels and annotations on it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MirrorIdentity {
    /// Hash of the origin (label).
    pub origin: String,
    /// Uid of the manager's `kube-system`.
    pub manager_uid: String,
    /// Uid of the worker's `kube-system`, as the manager knew it.
    pub cluster_uid: String,
    /// Namespace and name of the job, as `namespace/name`.
    pub job: String,
    /// Uid of the job.
    pub job_uid: String,
    /// Run of the job.
    pub run: i64,
    /// Number of the attempt.
    pub number: i64,
}

impl MirrorIdentity {
    /// The marks among the labels and annotations of an object; none when any is missing or malformed: such an object is a stranger's.
    pub fn read(labels: &BTreeMap<String, String>, annotations: &BTreeMap<String, String>) -> Option<Self> {
        Some(Self {
            origin: labels.get(names::ORIGIN)?.clone(),
            manager_uid: annotations.get(names::MANAGER_UID)?.clone(),
            cluster_uid: annotations.get(names::CLUSTER_UID)?.clone(),
            job: annotations.get(names::JOB)?.clone(),
            job_uid: labels.get(names::JOB_UID)?.clone(),
            run: annotations.get(names::RUN)?.parse().ok()?,
            number: annotations.get(names::ATTEMPT)?.parse().ok()?,
        })
    }
}
