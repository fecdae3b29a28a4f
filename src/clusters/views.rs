//! Our own kinds: from JSON to the views that the core sees.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::api::scheduling::v1::PriorityClass;
use k8s_openapi::jiff::Timestamp;
use k8s_openapi::{ByteString, api::batch::v1::Job};
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer};

use super::mirror::mirror;
use super::slim::{Lite, Meta};
use crate::api::{
    MultiKueueJob, MultiKueueJobSpec, MultiKueueJobStatus, WorkerCluster, WorkerClusterSpec, WorkerClusterStatus,
};
use crate::lifecycle::view::{JobKey, JobView, MirrorView, ResourceVersion, WorkerView};
use crate::workload::TemplateKind;

/// Why an object is not what it should be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ViewError {
    /// Not of the form of its kind.
    #[error("{0}")]
    Form(String),
    /// A resourceVersion that cannot be compared.
    #[error("metadata.resourceVersion is {0:?}; an unsigned integer is expected")]
    ResourceVersion(String),
}

/// The version of an object, as it compares.
pub fn version(text: &str) -> Result<ResourceVersion, ViewError> {
    text.parse()
        .map(ResourceVersion)
        .map_err(|_| ViewError::ResourceVersion(text.to_owned()))
}

#[derive(Deserialize)]
struct Ours<Spec, Status> {
    metadata: Meta,
    spec: Spec,
    #[serde(default = "Option::default")]
    status: Option<Status>,
}

fn parse<T: DeserializeOwned>(text: &str) -> Result<T, ViewError> {
    serde_json::from_str(text).map_err(|e| ViewError::Form(e.to_string()))
}

/// A job of its JSON.
pub fn job(text: &str) -> Result<JobView, ViewError> {
    let Ours { metadata, spec, status } = parse::<Ours<MultiKueueJobSpec, MultiKueueJobStatus>>(text)?;
    Ok(JobView {
        key: JobKey::new(&metadata.namespace, &metadata.name),
        uid: metadata.uid.into(),
        resource_version: version(&metadata.resource_version)?,
        generation: metadata.generation,
        created: metadata.creation_timestamp.map_or(Timestamp::UNIX_EPOCH, |time| time.0),
        deleted: metadata.deletion_timestamp.map(|time| time.0),
        finalizers: metadata.finalizers,
        spec,
        status: status.unwrap_or_default(),
    })
}

/// A `WorkerCluster` of its JSON.
pub fn worker_cluster(text: &str) -> Result<WorkerView, ViewError> {
    let Ours { metadata, spec, status } = parse::<Ours<WorkerClusterSpec, WorkerClusterStatus>>(text)?;
    Ok(WorkerView {
        name: metadata.name.into(),
        uid: metadata.uid.into(),
        resource_version: version(&metadata.resource_version)?,
        generation: metadata.generation,
        created: metadata.creation_timestamp.map_or(Timestamp::UNIX_EPOCH, |time| time.0),
        deleted: metadata.deletion_timestamp.map(|time| time.0),
        finalizers: metadata.finalizers,
        labels: metadata.labels,
        spec,
        status: status.unwrap_or_default(),
    })
}

macro_rules! lite_by {
    ($(#[$doc:meta])* $lite:ident($view:ty), $kind:ty, $read:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone)]
        pub struct $lite(pub $view);

        impl<'de> Deserialize<'de> for $lite {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let raw = <&serde_json::value::RawValue>::deserialize(deserializer)?;
                let read: fn(&str) -> Result<$view, ViewError> = $read;
                read(raw.get()).map(Self).map_err(D::Error::custom)
            }
        }

        impl Lite for $lite {
            type Kind = $kind;
        }
    };
}

lite_by!(
    /// A job as a watch decodes it.
    JobLite(JobView),
    MultiKueueJob,
    job
);
lite_by!(
    /// A `WorkerCluster` as a watch decodes it.
    WorkerLite(WorkerView),
    WorkerCluster,
    worker_cluster
);
lite_by!(
    /// A mirror of a `batch/v1` Job as a watch decodes it.
    MirrorLite(MirrorView),
    Job,
    |text| mirror(TemplateKind::Job, text)
);

/// The fields of a `PriorityClass` that are read.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PriorityClassLite {
    /// Value.
    pub value: i32,
    /// It is for pods that name none.
    pub global_default: bool,
}

impl Lite for PriorityClassLite {
    type Kind = PriorityClass;
}

/// The fields of a Secret that are read.
#[derive(Clone, Default, Deserialize)]
#[serde(default)]
pub struct SecretLite {
    data: BTreeMap<String, ByteString>,
}

/// What a Secret holds, by key.
pub type SecretData = Arc<BTreeMap<String, Vec<u8>>>;

impl SecretLite {
    /// What it holds.
    pub fn data(self) -> SecretData {
        Arc::new(self.data.into_iter().map(|(key, bytes)| (key, bytes.0)).collect())
    }
}

impl Lite for SecretLite {
    type Kind = Secret;
}
