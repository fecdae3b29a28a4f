//! What we may do on a worker: rights by `SelfSubjectAccessReview`, kinds by discovery.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::authorization::v1::{ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec};
use kube::api::PostParams;
use kube::{Api, Client};
use tokio::sync::{mpsc, watch};
use tokio::time::{sleep, timeout};
use tracing::debug;

use super::executor::Signals;
use super::manager_feeds::LinkSpec;
use super::reason::Trouble;
use super::worker_feeds::Source;
use crate::api::names;
use crate::api::worker_cluster::Namespaces;
use crate::dispatcher::event::Access;
use crate::dispatcher::{Event, WorkerEvent};
use crate::workload::{ApiResource, TemplateKind};

/// A right that the protocol uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Right {
    /// Verb.
    pub verb: &'static str,
    /// Resource, plural.
    pub resource: &'static str,
    /// API group.
    pub group: &'static str,
    /// Where it is needed.
    pub scope: Scope,
    /// Without it nothing can be sent there; else one capability is lost.
    pub needed: bool,
}

/// Where a right is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// In the whole cluster.
    Cluster,
    /// In the namespaces that jobs may use: each of `spec.namespaces.allow`, or all.
    Jobs,
    /// In the namespace of the worker lease.
    Lease,
}

const fn right(verb: &'static str, resource: &'static str, group: &'static str, scope: Scope, needed: bool) -> Right {
    Right {
        verb,
        resource,
        group,
        scope,
        needed,
    }
}

/// Every right that the operator uses on a worker; the roles of the chart and of the documents are this list.
pub const RIGHTS: &[Right] = &[
    GET_KUBE_SYSTEM,
    CREATE_JOBS,
    right("get", "jobs", "batch", Scope::Jobs, true),
    right("patch", "jobs", "batch", Scope::Jobs, true),
    right("delete", "jobs", "batch", Scope::Jobs, true),
    right("get", "leases", "coordination.k8s.io", Scope::Lease, true),
    right("create", "leases", "coordination.k8s.io", Scope::Lease, true),
    right("update", "leases", "coordination.k8s.io", Scope::Lease, true),
    // Without them nothing is known of the objects there, and a worker whose mirrors are not known takes no job.
    right("list", "jobs", "batch", Scope::Cluster, true),
    right("watch", "jobs", "batch", Scope::Cluster, true),
    right("list", "nodes", "", Scope::Cluster, false),
    right("watch", "nodes", "", Scope::Cluster, false),
    right("list", "pods", "", Scope::Cluster, false),
    right("watch", "pods", "", Scope::Cluster, false),
    right("list", "runtimeclasses", "node.k8s.io", Scope::Cluster, false),
    right("watch", "runtimeclasses", "node.k8s.io", Scope::Cluster, false),
    CREATE_NAMESPACES,
];

/// Only used, and only asked for, where `spec.namespaces.create` says so: there a job of any namespace may need it.
const CREATE_NAMESPACES: Right = right("create", "namespaces", "", Scope::Cluster, true);
const GET_KUBE_SYSTEM: Right = right("get", "namespaces", "", Scope::Cluster, true);
const CREATE_JOBS: Right = right("create", "jobs", "batch", Scope::Jobs, true);

/// How often rights and kinds are reviewed, and how soon again after a refusal or a failed review.
const REVIEW_EVERY: Duration = Duration::from_mins(10);
const REVIEW_AGAIN: Duration = Duration::from_secs(10);
/// How long a review may take.
const REVIEW_WITHIN: Duration = Duration::from_secs(30);

/// Reviews the rights on one connection for as long as it lasts.
pub struct Reviewer {
    /// Whose.
    pub source: Source,
    /// The connection.
    pub client: Client,
    /// Which namespaces are used.
    pub spec: watch::Receiver<LinkSpec>,
    /// Says when something was forbidden.
    pub signals: Arc<Signals>,
    /// Where the findings go.
    pub events: mpsc::Sender<Event>,
}

impl Reviewer {
    /// Reviews now, after every change of the spec, after something was forbidden, and from time to time.
    pub async fn run(mut self) {
        loop {
            let namespaces = self.spec.borrow_and_update().namespaces.clone();
            let pause = match timeout(REVIEW_WITHIN, review(&self.client, &namespaces)).await {
                Ok(Ok(access)) => {
                    let event = self.source.event(WorkerEvent::Access(access));
                    if self.events.send(event).await.is_err() {
                        return;
                    }
                    REVIEW_EVERY
                }
                Ok(Err(e)) => {
                    debug!(
                        worker = &*self.source.name,
                        "review of rights failed: {}",
                        Trouble::of(&e).message
                    );
                    REVIEW_AGAIN
                }
                Err(_) => {
                    debug!(worker = &*self.source.name, "review of rights took too long");
                    REVIEW_AGAIN
                }
            };
            tokio::select! {
                () = sleep(pause) => {}
                changed = self.spec.changed() => if changed.is_err() { return },
                // Many requests may be forbidden at once: one review answers for all.
                () = async { tokio::join!(sleep(REVIEW_AGAIN), self.signals.forbidden.notified()); } => {}
            }
        }
    }
}

/// Reviews at once, so that a worker with a slow authorizer is not asked one by one.
const AT_ONCE: usize = 6;

/// Asks the worker what we may do and what it serves.
pub async fn review(client: &Client, namespaces: &Namespaces) -> Result<Access, kube::Error> {
    let everywhere = [String::new()];
    let jobs = if namespaces.allow.is_empty() {
        &everywhere[..]
    } else {
        &namespaces.allow
    };
    let lease = [names::WORKER_LEASE_NAMESPACE.to_owned()];
    let mut reviews = Vec::new();
    for right in RIGHTS
        .iter()
        .filter(|right| namespaces.create || **right != CREATE_NAMESPACES)
    {
        let places = match right.scope {
            Scope::Cluster => &everywhere[..],
            Scope::Jobs => jobs,
            Scope::Lease => &lease[..],
        };
        for place in places {
            reviews.push(allowed(client.clone(), *right, place.clone()));
        }
    }
    let answers: Vec<_> = stream::iter(reviews).buffered(AT_ONCE).try_collect().await?;

    let mut access = Access::default();
    let may_create = answers
        .iter()
        .any(|(right, _, allowed)| *right == CREATE_JOBS && *allowed);
    for (right, place, allowed) in answers {
        if allowed {
            continue;
        }
        let mut name = format!("{} {}", right.verb, right.resource);
        if !place.is_empty() {
            name = format!("{name} in {place}");
        }
        if right.needed {
            &mut access.missing
        } else {
            &mut access.degraded
        }
        .push(name);
    }
    if may_create {
        access.kinds = kinds(client).await?;
    }
    Ok(access)
}

async fn allowed(client: Client, right: Right, namespace: String) -> Result<(Right, String, bool), kube::Error> {
    let review = SelfSubjectAccessReview {
        spec: SelfSubjectAccessReviewSpec {
            resource_attributes: Some(ResourceAttributes {
                verb: Some(right.verb.into()),
                resource: Some(right.resource.into()),
                group: Some(right.group.into()),
                namespace: Some(namespace.clone()),
                // The role may name the one namespace that is read.
                name: (right == GET_KUBE_SYSTEM).then(|| "kube-system".to_owned()),
                ..ResourceAttributes::default()
            }),
            ..SelfSubjectAccessReviewSpec::default()
        },
        ..SelfSubjectAccessReview::default()
    };
    let answer = Api::all(client).create(&PostParams::default(), &review).await?;
    Ok((right, namespace, answer.status.is_some_and(|status| status.allowed)))
}

/// The template kinds that are served. A group that is missing is a kind that is missing.
async fn kinds(client: &Client) -> Result<BTreeSet<String>, kube::Error> {
    let mut kinds = BTreeSet::new();
    for kind in [TemplateKind::Job] {
        let ApiResource {
            group, version, plural, ..
        } = kind.workload().api_resource();
        match client.list_api_group_resources(&format!("{group}/{version}")).await {
            Ok(list) if list.resources.iter().any(|resource| resource.name == plural) => {
                kinds.insert(kind.to_string());
            }
            Ok(_) => {}
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            Err(e) => return Err(e),
        }
    }
    Ok(kinds)
}
