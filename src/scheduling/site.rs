//! A worker as the cycle sees it: what its `WorkerCluster` says, and its ledger.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::class::Asks;
use super::selector;
use crate::api::job::{ClusterToleration, Placement, TolerationOperator};
use crate::api::worker_cluster::{ClusterTaint, Namespaces};
use crate::capacity::Ledger;

/// Why nothing is sent to a worker at present, whatever the job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blocked {
    /// The class of the reason, from a closed set (`Unreachable`, `Unauthorized`, `IdentityChanged`, ...).
    pub reason: &'static str,
    /// One sentence.
    pub message: String,
}

/// What the `WorkerCluster` and the link to it say.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SiteMeta {
    /// Uid of the worker's `kube-system`; empty until first contact.
    pub cluster_uid: Arc<str>,
    /// Labels of the `WorkerCluster`.
    pub labels: BTreeMap<String, String>,
    /// Its taints.
    pub taints: Vec<ClusterTaint>,
    /// No new jobs.
    pub cordoned: bool,
    /// Which namespaces may be used.
    pub namespaces: Namespaces,
    /// Template kinds served there, as `group/version/Kind`.
    pub kinds: BTreeSet<String>,
    /// Why nothing is sent there at present.
    pub blocked: Option<Blocked>,
}

/// A worker as the cycle sees it. Keep one value for the life of a `WorkerCluster`: the scheduler skips what it tried by `revision` and the
/// ledger's generation. A site that takes the place of another of the same name needs `Scheduler::forget_site` first.
#[derive(Debug, Default)]
pub struct Site {
    meta: SiteMeta,
    revision: u64,
    /// Its account.
    pub ledger: Ledger,
}

impl Site {
    /// A worker with an empty ledger.
    pub fn new(meta: SiteMeta) -> Self {
        Self {
            meta,
            revision: 1,
            ledger: Ledger::new(),
        }
    }

    /// What the `WorkerCluster` and the link to it say.
    pub fn meta(&self) -> &SiteMeta {
        &self.meta
    }

    /// Replaces it; true when anything changed.
    pub fn set_meta(&mut self, meta: SiteMeta) -> bool {
        if self.meta == meta {
            return false;
        }
        self.meta = meta;
        self.revision += 1;
        true
    }

    /// Grows with every change of `meta`.
    pub fn revision(&self) -> u64 {
        self.revision
    }
}

/// May the job go there at all, room apart? Else the reason and one sentence.
pub(super) fn admits(meta: &SiteMeta, job: &Asks, operator_namespace: &str) -> Result<(), (&'static str, String)> {
    if let Some(exclusion) = job.excluded.get(&meta.cluster_uid) {
        return Err((exclusion.reason, exclusion.message.clone()));
    }
    if let Some(blocked) = &meta.blocked {
        return Err((blocked.reason, blocked.message.clone()));
    }
    if meta.cordoned {
        return Err(("Cordoned", "the WorkerCluster is cordoned".into()));
    }
    if let Some(selector) = &job.placement.cluster_selector
        && !selector::matches(selector, &meta.labels)
    {
        return Err((
            "SelectorMismatch",
            "the labels of the WorkerCluster do not match placement.clusterSelector".into(),
        ));
    }
    if let Some(taint) = meta.taints.iter().find(|t| !tolerated(t, &job.placement)) {
        let value = taint.value.as_deref().map(|v| format!("={v}")).unwrap_or_default();
        return Err((
            "UntoleratedTaint",
            format!(
                "placement.tolerations do not tolerate the taint {}{value} of the WorkerCluster",
                taint.key
            ),
        ));
    }
    if !meta.kinds.contains(job.kind.as_str()) {
        return Err((
            "KindNotServed",
            format!("the worker does not serve {} to the operator", job.kind),
        ));
    }
    let namespace = &*job.namespace;
    if !namespace_allowed(&meta.namespaces, namespace, operator_namespace) {
        return Err((
            "NamespaceNotAllowed",
            format!("namespace {namespace} is not among those that the WorkerCluster allows"),
        ));
    }
    Ok(())
}

/// The namespaces named, or, when none is named, every one but `kube-*` and the operator's own.
pub(super) fn namespace_allowed(namespaces: &Namespaces, namespace: &str, operator_namespace: &str) -> bool {
    if namespaces.allow.is_empty() {
        !namespace.starts_with("kube-") && namespace != operator_namespace
    } else {
        namespaces.allow.iter().any(|n| n == namespace)
    }
}

/// The rules are those of pods and nodes: no key with `Exists` tolerates everything, `Equal` compares an absent value as empty.
fn tolerated(taint: &ClusterTaint, placement: &Placement) -> bool {
    placement.tolerations.iter().any(|t| tolerates(t, taint))
}

fn tolerates(toleration: &ClusterToleration, taint: &ClusterTaint) -> bool {
    let key = toleration.key.as_deref().unwrap_or_default();
    match toleration.operator {
        TolerationOperator::Exists => key.is_empty() || key == taint.key,
        TolerationOperator::Equal => {
            key == taint.key
                && toleration.value.as_deref().unwrap_or_default() == taint.value.as_deref().unwrap_or_default()
        }
    }
}

/// Sum of the weights of the preferences that match.
pub(super) fn preference(placement: &Placement, labels: &BTreeMap<String, String>) -> i64 {
    placement
        .preferences
        .iter()
        .filter(|p| selector::matches(&p.selector, labels))
        .map(|p| i64::from(p.weight))
        .sum()
}
