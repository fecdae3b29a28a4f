//! What is known of each template kind: its pod sets, what to strip for the mirror, how it sleeps, how to read its status.

pub mod error;
mod field;
pub mod job;
mod pod_template;
pub mod state;

use std::fmt;

use serde_json::Value;

pub use error::TemplateError;
pub use job::Job;
pub use state::{Terminal, WorkloadState};

use self::field::Field;
use crate::api::{JobKey, MirrorIdentity, RawJson, ResourceVersion};
use crate::resources::PodSet;

/// The template kinds that the operator knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TemplateKind {
    /// `batch/v1` Job.
    Job,
}

impl TemplateKind {
    /// The kind of a template, by its `apiVersion` and `kind`.
    pub fn of(template: &RawJson) -> Result<Self, TemplateError> {
        let document = template.to_value();
        let root = Field::root("spec.template", &document);
        let (version, kind) = (root.get("apiVersion")?, root.get("kind")?);
        match (version.required_text()?, kind.required_text()?) {
            ("batch/v1", "Job") => Ok(Self::Job),
            (version, kind) => Err(TemplateError::UnknownKind {
                found: format!("{version}/{kind}"),
                known: Self::Job.as_str(),
            }),
        }
    }

    /// What is known of this kind.
    pub fn workload(self) -> &'static dyn Workload {
        match self {
            Self::Job => &Job,
        }
    }

    /// `group/version/Kind`, as in `WorkerCluster.status.kinds`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Job => "batch/v1/Job",
        }
    }
}

impl fmt::Display for TemplateKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Where an API server serves a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ApiResource {
    /// API group.
    pub group: &'static str,
    /// Version of the group.
    pub version: &'static str,
    /// Kind.
    pub kind: &'static str,
    /// The name in URLs.
    pub plural: &'static str,
}

/// What a mirror is made of.
#[derive(Debug, Clone, Copy)]
pub struct MirrorInput<'a> {
    /// The template of the job.
    pub template: &'a RawJson,
    /// Namespace and name of the job, and so of the mirror.
    pub key: &'a JobKey,
    /// Whose mirror it is, of which attempt.
    pub identity: &'a MirrorIdentity,
    /// The origin as text.
    pub origin_name: &'a str,
    /// The nonce of this write.
    pub nonce: &'a str,
}

/// What is known of one template kind. All of it is pure: documents in, documents out.
///
/// A kind is only for here when an object of it that is created suspended makes no pods. Otherwise a mirror would run from its creation on, and a crash
/// between creating and recording it could leave two copies.
pub trait Workload: Sync {
    /// Where an API server serves it.
    fn api_resource(&self) -> ApiResource;

    /// What the template asks of nodes: each pod set with the number of its members that run at once.
    fn pod_sets(&self, template: &RawJson) -> Result<Vec<PodSet>, TemplateError>;

    /// The object to create on a worker: the template with the job's own name, asleep, marked as ours, without what belongs to another cluster
    /// or to another queue manager.
    fn mirror(&self, input: &MirrorInput<'_>) -> Result<RawJson, TemplateError>;

    /// The JSON patch that wakes a mirror: only that uid, only on that nonce, and not one that is being deleted.
    fn release_patch(&self, uid: &str, old_nonce: &str, new_nonce: &str) -> Value;

    /// The merge patch that puts a mirror to sleep, on that uid and version.
    fn suspend_patch(&self, uid: &str, resource_version: ResourceVersion, new_nonce: &str) -> Value;

    /// What an object says of itself, and its status as it came; none when it has none or too large a one ([`job::MAX_RAW_STATUS`]).
    fn read(&self, object: &Value) -> Result<(WorkloadState, Option<RawJson>), serde_json::Error>;
}
