//! The watches of the manager: jobs, workers, priority classes, and the Secrets of the operator's namespace.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{Api, Client};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use super::feed::{Feed, Mode, Output, run, watch_config};
use super::observe::Observe;
use super::readiness::{Part, Readiness};
use super::views::{JobLite, PriorityClassLite, SecretData, SecretLite, WorkerLite};
use crate::api::worker_cluster::{Namespaces, SecretRef};
use crate::dispatcher::Event;
use crate::lifecycle::view::{JobKey, JobView, WorkerView};

/// The Secrets of the operator's namespace, by name; none before the first list.
pub type Secrets = Option<BTreeMap<String, SecretData>>;
/// What the link of each worker goes by, by the name of its `WorkerCluster`; none before the first list.
pub type Workers = Option<BTreeMap<Arc<str>, LinkSpec>>;

/// What the link of a worker goes by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkSpec {
    /// Uid of the `WorkerCluster`. Deleted and made again within moments it may look like a change, but it is another object: the core has forgotten the
    /// connection of the former one, so the link begins anew.
    pub uid: Arc<str>,
    /// Where its kubeconfig is.
    pub secret: SecretRef,
    /// Namespaces that are used, and whether missing ones are created: rights are asked for accordingly.
    pub namespaces: Namespaces,
}

/// Starts the watches of the manager.
pub fn start(
    tasks: &mut JoinSet<()>,
    client: &Client,
    operator_namespace: &str,
    events: &mpsc::Sender<Event>,
    observe: &Observe,
    readiness: &watch::Sender<Readiness>,
) -> (watch::Receiver<Workers>, watch::Receiver<Secrets>) {
    let (workers, workers_seen) = watch::channel(None);
    let (secrets, secrets_seen) = watch::channel(None);
    let part = |part| (part, readiness.clone());
    let all = || client.clone();
    tasks.spawn(run(
        Jobs(part(Part::Jobs)),
        Api::all(all()),
        watch_config(),
        events.clone(),
        observe.clone(),
    ));
    let feed = WorkerClusters {
        part: part(Part::WorkerClusters),
        known: BTreeMap::new(),
        listed: false,
        changed: false,
        workers,
    };
    tasks.spawn(run(
        feed,
        Api::all(all()),
        watch_config(),
        events.clone(),
        observe.clone(),
    ));
    let feed = PriorityClasses(part(Part::PriorityClasses));
    tasks.spawn(run(
        feed,
        Api::all(all()),
        watch_config(),
        events.clone(),
        observe.clone(),
    ));
    let feed = SecretsOf(part(Part::Secrets), secrets);
    tasks.spawn(run(
        feed,
        Api::namespaced(all(), operator_namespace),
        watch_config(),
        events.clone(),
        observe.clone(),
    ));
    (workers_seen, secrets_seen)
}

type Reporter = (Part, watch::Sender<Readiness>);

/// Tells readiness how a watch fares, and passes its output on.
fn report<F: Feed>((part, readiness): &Reporter, output: &Output<'_, F>) {
    let state = match output {
        Output::Failed(trouble) => Err(trouble.message.clone()),
        Output::All(_) | Output::Keys(_) => Ok(()),
        Output::Row(_) | Output::Gone(..) => return,
    };
    readiness.send_if_modified(|now| now.set(*part, state));
}

fn name(meta: &ObjectMeta) -> &str {
    meta.name.as_deref().unwrap_or_default()
}

struct Jobs(Reporter);

impl Feed for Jobs {
    type Object = JobLite;
    type Key = JobKey;
    type Row = Result<Box<JobView>, (JobKey, String)>;
    const MODE: Mode = Mode::Keyed;
    const NAME: &'static str = "multikueuejobs";

    fn key(&self, meta: &ObjectMeta) -> JobKey {
        JobKey::new(meta.namespace.as_deref().unwrap_or_default(), name(meta))
    }

    fn row(&mut self, key: &JobKey, object: Result<JobLite, String>) -> Option<Self::Row> {
        Some(match object {
            Ok(JobLite(view)) => Ok(Box::new(view)),
            Err(message) => Err((key.clone(), message)),
        })
    }

    fn event(&mut self, output: Output<'_, Self>) -> Option<Event> {
        report(&self.0, &output);
        match output {
            Output::Row(Ok(view)) => Some(Event::Job(view)),
            Output::Row(Err((key, message))) => Some(Event::JobUnreadable { key, message }),
            Output::Gone(key, uid) => Some(Event::JobDeleted { key, uid }),
            Output::Keys(keys) => Some(Event::JobsListed(keys)),
            Output::All(_) | Output::Failed(_) => None,
        }
    }
}

struct WorkerClusters {
    part: Reporter,
    known: BTreeMap<Arc<str>, LinkSpec>,
    listed: bool,
    changed: bool,
    workers: watch::Sender<Workers>,
}

impl Feed for WorkerClusters {
    type Object = WorkerLite;
    type Key = Arc<str>;
    type Row = WorkerView;
    const MODE: Mode = Mode::Keyed;
    const NAME: &'static str = "workerclusters";

    fn key(&self, meta: &ObjectMeta) -> Arc<str> {
        name(meta).into()
    }

    fn row(&mut self, _: &Arc<str>, object: Result<WorkerLite, String>) -> Option<WorkerView> {
        object.ok().map(|worker| worker.0)
    }

    fn event(&mut self, output: Output<'_, Self>) -> Option<Event> {
        report(&self.part, &output);
        match output {
            Output::Row(view) => {
                let spec = LinkSpec {
                    uid: view.uid.clone(),
                    secret: view.spec.kubeconfig.secret_ref.clone(),
                    namespaces: view.spec.namespaces.clone(),
                };
                self.changed |= self.known.insert(view.name.clone(), spec.clone()) != Some(spec);
                Some(Event::WorkerCluster(Box::new(view)))
            }
            Output::Gone(name, _) => {
                self.changed |= self.known.remove(&name).is_some();
                Some(Event::WorkerClusterDeleted(name))
            }
            Output::Keys(keys) => {
                self.known.retain(|name, _| keys.contains(name));
                self.listed = true;
                self.changed = true;
                Some(Event::WorkerClustersListed(keys))
            }
            Output::All(_) | Output::Failed(_) => None,
        }
    }

    /// Only once the core knows of a worker may its link speak.
    fn sent(&mut self) {
        if std::mem::take(&mut self.changed) && self.listed {
            self.workers.send_replace(Some(self.known.clone()));
        }
    }
}

struct PriorityClasses(Reporter);

impl Feed for PriorityClasses {
    type Object = PriorityClassLite;
    type Key = Arc<str>;
    type Row = PriorityClassLite;
    const MODE: Mode = Mode::Whole;
    const NAME: &'static str = "priorityclasses";

    fn key(&self, meta: &ObjectMeta) -> Arc<str> {
        name(meta).into()
    }

    fn row(&mut self, _: &Arc<str>, object: Result<PriorityClassLite, String>) -> Option<PriorityClassLite> {
        object.ok()
    }

    fn event(&mut self, output: Output<'_, Self>) -> Option<Event> {
        report(&self.0, &output);
        let Output::All(rows) = output else { return None };
        Some(Event::PriorityClasses {
            values: rows
                .iter()
                .map(|(name, class)| (name.to_string(), class.value))
                .collect(),
            // Of several global defaults the API server's admission takes the lowest.
            default: rows
                .values()
                .filter(|class| class.global_default)
                .map(|class| class.value)
                .min()
                .unwrap_or(0),
        })
    }
}

struct SecretsOf(Reporter, watch::Sender<Secrets>);

impl Feed for SecretsOf {
    type Object = SecretLite;
    type Key = Arc<str>;
    type Row = SecretData;
    const MODE: Mode = Mode::Whole;
    const NAME: &'static str = "secrets";

    fn key(&self, meta: &ObjectMeta) -> Arc<str> {
        name(meta).into()
    }

    fn row(&mut self, _: &Arc<str>, object: Result<SecretLite, String>) -> Option<SecretData> {
        object.ok().map(SecretLite::data)
    }

    /// Kubeconfigs are no business of the core: the links read them from the channel.
    fn event(&mut self, output: Output<'_, Self>) -> Option<Event> {
        report(&self.0, &output);
        if let Output::All(rows) = output {
            let all = rows
                .iter()
                .map(|(name, data)| (name.to_string(), data.clone()))
                .collect();
            self.1.send_replace(Some(all));
        }
        None
    }
}
