//! `WorkerCluster`: a cluster that runs jobs.

#![expect(
    clippy::duplicated_attributes,
    reason = "columns of one table have fields of the same name; clippy takes them for repetitions"
)]

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{rules, schema};

/// How to reach a worker, and what may be sent there.
#[derive(CustomResource, Debug, Clone, PartialEq, Serialize, Deserialize, KubeSchema)]
#[kube(
    group = "multikueue.rs",
    version = "v1alpha1",
    kind = "WorkerCluster",
    doc = "A cluster that runs jobs. Its labels are what the selectors of jobs match.",
    status = "WorkerClusterStatus",
    shortname = "wc",
    derive = "PartialEq",
    printcolumn(
        name = "Connected",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Connected\")].status",
        description = "Whether the worker answers."
    ),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Connected\")].reason",
        description = "Why it does or does not."
    ),
    printcolumn(
        name = "Cordoned",
        type_ = "boolean",
        json_path = ".spec.cordoned",
        description = "True: no new jobs."
    ),
    printcolumn(
        name = "Free",
        type_ = "integer",
        json_path = ".status.freeDevices",
        description = "Free devices of all models."
    ),
    printcolumn(
        name = "Largest",
        type_ = "integer",
        json_path = ".status.largestFreeBlock",
        description = "The most free devices on one node."
    ),
    printcolumn(
        name = "Running",
        type_ = "integer",
        json_path = ".status.runningJobs",
        description = "Jobs whose pods have started there."
    ),
    printcolumn(
        name = "Promised",
        type_ = "integer",
        json_path = ".status.promisedJobs",
        description = "Jobs that are assigned there and have not started."
    ),
    printcolumn(
        name = "Version",
        type_ = "string",
        json_path = ".status.version",
        description = "Its Kubernetes version."
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(
        name = "Authorized",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Authorized\")].status",
        priority = 1,
        description = "Whether the operator may do there what it needs to."
    ),
    printcolumn(
        name = "Capacity",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"CapacityKnown\")].status",
        priority = 1,
        description = "Whether its free devices are known."
    ),
    printcolumn(
        name = "Lost",
        type_ = "date",
        json_path = ".status.lostSince",
        priority = 1,
        description = "For how long it has not answered."
    ),
    printcolumn(
        name = "UID",
        type_ = "string",
        json_path = ".status.clusterUID",
        priority = 1,
        description = "Identity of the cluster."
    ),
    printcolumn(
        name = "Message",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Connected\")].message",
        priority = 1,
        description = "Why it does or does not answer, in words."
    )
)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = schema::Plain)]
pub struct WorkerClusterSpec {
    /// The kubeconfig with which the operator reaches the worker.
    pub kubeconfig: KubeconfigSource,
    /// Jobs are not sent here unless they tolerate every one of these. One per key.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["key".to_owned()]))]
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
    #[schemars(length(min = 1, max = 253), regex(pattern = schema::DNS_SUBDOMAIN))]
    pub name: String,
    /// Key within it whose value is a kubeconfig. It must carry its certificates and token in itself: files and programs that it
    /// names do not exist where the operator runs.
    #[serde(default = "kubeconfig_key")]
    #[schemars(length(min = 1, max = 253), regex(pattern = schema::SECRET_KEY))]
    pub key: String,
}

fn kubeconfig_key() -> String {
    "kubeconfig".into()
}

/// Keeps jobs away that do not tolerate it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterTaint {
    /// Key of the taint, written like that of a label.
    #[schemars(length(min = 1, max = 317), regex(pattern = schema::LABEL_KEY))]
    pub key: String,
    /// Value of the taint, written like that of a label.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63), regex(pattern = schema::LABEL_VALUE))]
    pub value: Option<String>,
    /// What it does. `NoSchedule` (default): no new jobs; those that are here stay.
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
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Namespaces {
    /// True: a namespace that is missing on the worker is created, with a label that says so, and never removed. The operator then
    /// needs the right to create namespaces there.
    #[serde(default)]
    pub create: bool,
    /// The namespaces that jobs may use. Empty: every one but `kube-*` and the operator's own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256), inner(length(min = 1, max = 63), regex(pattern = schema::DNS_LABEL)))]
    #[x_kube(merge_strategy = ListMerge::Set, validation = rules::namespaces_are_not_kube())]
    pub allow: Vec<String>,
}

/// What is true of a worker; written by the operator alone.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = |schema: &mut schemars::Schema| schema::status_of(schema, None, "Connected"))]
pub struct WorkerClusterStatus {
    /// The generation of the spec that this status speaks of; -1 until the operator has seen the object.
    #[serde(default)]
    pub observed_generation: i64,
    /// `Connected`, `Authorized` and `CapacityKnown`, each with a precise reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
    /// The uid of the worker's `kube-system` namespace, pinned at first contact.
    #[serde(rename = "clusterUID", default, skip_serializing_if = "Option::is_none")]
    pub cluster_uid: Option<String>,
    /// The worker's Kubernetes version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The template kinds that the worker serves and that the operator may use there, as `group/version/Kind`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub kinds: Vec<String>,
    /// Since when the worker has not answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_since: Option<Time>,
    /// Objects on the worker whose removal is owed: their jobs are gone already.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1000), extend("x-kubernetes-list-type" = "atomic"))]
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
