//! The watches of one worker: nodes, bound live pods, runtime classes, our mirrors.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::runtime::watcher;
use kube::{Api, Client};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::feed::{Feed, Mode, Output, run, watch_config};
use super::observe::Observe;
use super::rows::{NodeLite, PodLite, RuntimeClassLite, Texts};
use super::views::MirrorLite;
use crate::api::names;
use crate::capacity::{NodeRow, PodRow, RuntimeClassRow, Watched};
use crate::dispatcher::{Event, WorkerEvent};
use crate::lifecycle::view::{JobKey, MirrorView};

/// Whose events a feed makes.
#[derive(Debug, Clone)]
pub struct Source {
    /// Name of the `WorkerCluster`.
    pub name: Arc<str>,
    /// The connection.
    pub epoch: u64,
}

impl Source {
    /// An event of this worker.
    pub fn event(&self, event: WorkerEvent) -> Event {
        Event::Worker {
            name: self.name.clone(),
            epoch: self.epoch,
            event,
        }
    }
}

/// Starts the watches of a worker; they end when `tasks` is dropped.
pub fn start(
    tasks: &mut JoinSet<()>,
    source: &Source,
    client: &Client,
    origin_hash: &str,
    events: &mpsc::Sender<Event>,
    observe: &Observe,
) {
    let texts = Texts::default;
    tasks.spawn(run(
        Nodes {
            source: source.clone(),
            texts: texts(),
        },
        Api::all(client.clone()),
        watch_config(),
        events.clone(),
        observe.clone(),
    ));
    tasks.spawn(run(
        Pods {
            source: source.clone(),
            texts: texts(),
        },
        Api::all(client.clone()),
        bound_and_live(),
        events.clone(),
        observe.clone(),
    ));
    tasks.spawn(run(
        RuntimeClasses {
            source: source.clone(),
            texts: texts(),
        },
        Api::all(client.clone()),
        watch_config(),
        events.clone(),
        observe.clone(),
    ));
    tasks.spawn(run(
        Mirrors { source: source.clone() },
        Api::all(client.clone()),
        watch_config().labels(&format!("{}={origin_hash}", names::ORIGIN)),
        events.clone(),
        observe.clone(),
    ));
}

/// A pod that finishes leaves this selection, which the watch shows as a deletion: just what the counting needs.
fn bound_and_live() -> watcher::Config {
    watch_config().fields("spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed")
}

fn name(meta: &ObjectMeta) -> Arc<str> {
    meta.name.as_deref().unwrap_or_default().into()
}

fn key(meta: &ObjectMeta) -> JobKey {
    JobKey::new(
        meta.namespace.as_deref().unwrap_or_default(),
        meta.name.as_deref().unwrap_or_default(),
    )
}

struct Nodes {
    source: Source,
    texts: Texts,
}

impl Feed for Nodes {
    type Object = NodeLite;
    type Key = Arc<str>;
    type Row = NodeRow;
    const MODE: Mode = Mode::Bulk;
    const NAME: &'static str = "nodes";

    fn key(&self, meta: &ObjectMeta) -> Arc<str> {
        name(meta)
    }

    fn row(&mut self, _: &Arc<str>, object: Result<NodeLite, String>) -> Option<NodeRow> {
        // A node that cannot be read offers nothing.
        Some(object.ok()?.row(&mut self.texts))
    }

    fn event(&mut self, output: Output<'_, Self>) -> Option<Event> {
        Some(self.source.event(match output {
            Output::Row(row) => WorkerEvent::Node(row),
            Output::Gone(name, _) => WorkerEvent::NodeDeleted(name),
            Output::All(rows) => WorkerEvent::NodesListed(std::mem::take(rows).into_values().collect()),
            Output::Failed(trouble) => WorkerEvent::CapacityLost {
                watched: Watched::Nodes,
                message: format!("nodes cannot be watched: {}", trouble.message),
            },
            Output::Keys(_) => return None,
        }))
    }
}

struct Pods {
    source: Source,
    texts: Texts,
}

impl Feed for Pods {
    type Object = PodLite;
    type Key = JobKey;
    type Row = PodRow;
    const MODE: Mode = Mode::Bulk;
    const NAME: &'static str = "pods";

    fn key(&self, meta: &ObjectMeta) -> JobKey {
        key(meta)
    }

    fn row(&mut self, _: &JobKey, object: Result<PodLite, String>) -> Option<PodRow> {
        Some(object.ok()?.row(&mut self.texts))
    }

    fn event(&mut self, output: Output<'_, Self>) -> Option<Event> {
        Some(self.source.event(match output {
            Output::Row(row) => WorkerEvent::Pod(row),
            Output::Gone(key, _) => WorkerEvent::PodDeleted(key.namespace, key.name),
            Output::All(rows) => WorkerEvent::PodsListed(std::mem::take(rows).into_values().collect()),
            Output::Failed(trouble) => WorkerEvent::CapacityLost {
                watched: Watched::Pods,
                message: format!("pods cannot be watched: {}", trouble.message),
            },
            Output::Keys(_) => return None,
        }))
    }
}

struct RuntimeClasses {
    source: Source,
    texts: Texts,
}

impl Feed for RuntimeClasses {
    type Object = RuntimeClassLite;
    type Key = Arc<str>;
    type Row = RuntimeClassRow;
    const MODE: Mode = Mode::Whole;
    const NAME: &'static str = "runtimeclasses";

    fn key(&self, meta: &ObjectMeta) -> Arc<str> {
        name(meta)
    }

    fn row(&mut self, _: &Arc<str>, object: Result<RuntimeClassLite, String>) -> Option<RuntimeClassRow> {
        Some(object.ok()?.row(&mut self.texts))
    }

    fn event(&mut self, output: Output<'_, Self>) -> Option<Event> {
        match output {
            Output::All(rows) => Some(self.source.event(WorkerEvent::RuntimeClasses(rows.clone()))),
            // A shape that names a class which is not known here fits nowhere known: nothing else is lost, and the log has the reason.
            Output::Failed(_) => Some(self.source.event(WorkerEvent::RuntimeClasses(BTreeMap::new()))),
            Output::Row(_) | Output::Gone(..) | Output::Keys(_) => None,
        }
    }
}

struct Mirrors {
    source: Source,
}

impl Feed for Mirrors {
    type Object = MirrorLite;
    type Key = JobKey;
    type Row = MirrorView;
    const MODE: Mode = Mode::Keyed;
    const NAME: &'static str = "mirrors";

    fn key(&self, meta: &ObjectMeta) -> JobKey {
        key(meta)
    }

    fn row(&mut self, _: &JobKey, object: Result<MirrorLite, String>) -> Option<MirrorView> {
        // One that cannot be read looks gone, which is a hint only: the GET that follows says what is wrong.
        object.ok().map(|mirror| mirror.0)
    }

    fn event(&mut self, output: Output<'_, Self>) -> Option<Event> {
        Some(self.source.event(match output {
            Output::Row(view) => WorkerEvent::Mirror(Box::new(view)),
            Output::Gone(key, uid) => WorkerEvent::MirrorDeleted { key, uid },
            Output::Keys(keys) => WorkerEvent::MirrorsListed(keys),
            Output::Failed(trouble) => WorkerEvent::MirrorsLost {
                message: format!("jobs cannot be watched: {}", trouble.message),
            },
            Output::All(_) => return None,
        }))
    }
}
