//! `WorkerCluster`: a cluster that runs jobs.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How to reach a worker, and what may be sent there.
#[derive(CustomResource, Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "multikueue.rs",
    version = "v1alpha1",
    kind = "WorkerCluster",
    status = "WorkerClusterStatus",
    shortname = "wc",
    derive = "PartialEq"
)]
#[serde(rename_all = "camelCase")]
pub struct WorkerClusterSpec {
    /// The kubeconfig with which the operator reaches the worker.
    pub kubeconfig: KubeconfigSource,
    /// Jobs are not sent here unless they tolerate every one of these.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taints: Vec<ClusterTaint>,
    /// True: no new jobs; those here stay.
    #[serde(default)]
    pub cordoned: bool,
    /// Which namespaces of the worker are used.
    #[serde(default)]
    pub namespaces: Namespaces,
    /// True releases a deleted `WorkerCluster` although jobs are bound to it or removals are owed; an event lists what may be left.
    #[serde(default)]
    pub force_detach: bool,
}

/// Where a kubeconfig is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KubeconfigSource {
    /// A Secret in the operator's own namespace.
    pub secret_ref: SecretRef,
}

/// A key of a Secret in the operator's own namespace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SecretRef {
    /// Name of the Secret.
    pub name: String,
    /// Key within it.
    #[serde(default = "kubeconfig_key")]
    pub key: String,
}

fn kubeconfig_key() -> String {
    "kubeconfig".into()
}

/// Keeps jobs away that do not tolerate it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterTaint {
    /// Key.
    pub key: String,
    /// Value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// What it does; only `NoSchedule` exists.
    #[serde(default)]
    pub effect: TaintEffect,
}

/// What a taint does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum TaintEffect {
    /// No new jobs.
    #[default]
    NoSchedule,
}

/// Which namespaces of a worker are used.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Namespaces {
    /// True: a namespace that is missing on the worker is created, with a label that says so, and never removed.
    #[serde(default)]
    pub create: bool,
    /// The namespaces that jobs may use. Empty: every one but `kube-*` and the operator's own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<String>,
}

/// What is true of a worker; written by the operator alone.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkerClusterStatus {
    /// The generation of the spec that this status speaks of.
    #[serde(default)]
    pub observed_generation: i64,
    /// `Connected`, `Authorized` and `CapacityKnown`, each with a precise reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// The uid of the worker's `kube-system` namespace, pinned at first contact.
    #[serde(rename = "clusterUID", default, skip_serializing_if = "Option::is_none")]
    pub cluster_uid: Option<String>,
    /// The worker's Kubernetes version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The template kinds that the worker serves and that the operator may use there, as `group/version/Kind`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kinds: Vec<String>,
    /// Since when the worker has not answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_since: Option<Time>,
    /// Objects on the worker whose removal is owed: their jobs are gone already.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub debts: Vec<Debt>,
    /// Devices by accelerator model.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub devices: BTreeMap<String, Devices>,
    /// Free devices of all models together.
    #[serde(default)]
    pub free_devices: i64,
    /// The most free devices on one node.
    #[serde(default)]
    pub largest_free_block: i64,
    /// Jobs whose pods have started here.
    #[serde(default)]
    pub running_jobs: i64,
    /// Jobs that are assigned here and have not started.
    #[serde(default)]
    pub promised_jobs: i64,
}

/// An object on the worker whose removal is owed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Debt {
    /// Namespace of the job and of its object.
    pub namespace: String,
    /// Name of the job and of its object.
    pub name: String,
    /// Uid of the job that is gone.
    #[serde(rename = "jobUID")]
    pub job_uid: String,
    /// Since when it is owed.
    pub since: Time,
}

/// Devices of one accelerator model.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Devices {
    /// Could be taken now.
    #[serde(default)]
    pub free: i64,
    /// Held by pods or promised to jobs.
    #[serde(default)]
    pub used: i64,
    /// On nodes that take no pods, or unhealthy.
    #[serde(default)]
    pub unavailable: i64,
}
