//! The rim as one value: events come out, effects go in.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use kube::Client;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::{JoinHandle, JoinSet};
use tracing::{info, warn};

use super::clock::Clock;
use super::executor::{Connection, Executor, Signals};
use super::link::Link;
use super::manager_feeds::{self, LinkSpec, Secrets, Workers};
use super::observe::Observe;
use super::readiness::Readiness;
use crate::dispatcher::{Effect, Event, Outcome, Target};

/// What the rim is told at its start.
#[derive(Debug, Clone)]
pub struct RimConfig {
    /// Namespace of the operator, where kubeconfigs are.
    pub operator_namespace: String,
    /// 16 hex digits: the mirrors that are ours.
    pub origin_hash: String,
    /// Name of this process, for events (its pod).
    pub instance: String,
    /// Requests in flight on the manager.
    pub manager_requests: usize,
    /// Requests in flight on each worker.
    pub worker_requests: usize,
}

impl RimConfig {
    /// Requests in flight on the manager, unless told otherwise.
    pub const MANAGER_REQUESTS: usize = 64;
    /// Requests in flight on a worker, unless told otherwise.
    pub const WORKER_REQUESTS: usize = 32;
}

type Inlets = Arc<RwLock<BTreeMap<Arc<str>, mpsc::Sender<Effect>>>>;

/// Everything that talks to API servers.
pub struct Rim {
    manager: mpsc::Sender<Effect>,
    workers: Inlets,
    readiness: watch::Receiver<Readiness>,
    stop: oneshot::Sender<()>,
    supervisor: JoinHandle<()>,
}

impl Rim {
    /// Starts to watch the manager, and a link for each of its `WorkerCluster` objects. Events go to `events`; the rim ends when its receiver is gone.
    pub fn start(
        config: RimConfig,
        manager: Client,
        clock: Clock,
        events: mpsc::Sender<Event>,
        observe: Observe,
    ) -> Self {
        let (readiness_tx, readiness) = watch::channel(Readiness::default());
        let (effects, inlet) = mpsc::channel(config.manager_requests * 2);
        let (stop, stopped) = oneshot::channel();
        let workers = Inlets::default();
        let supervisor = Supervisor {
            config,
            manager,
            clock,
            events,
            observe,
            workers: workers.clone(),
            links: BTreeMap::new(),
            epochs: Arc::default(),
            executors: JoinSet::new(),
        };
        Self {
            manager: effects,
            workers,
            readiness,
            stop,
            supervisor: tokio::spawn(supervisor.run(inlet, readiness_tx, stopped)),
        }
    }

    /// Hands an effect to its executor. Never waits: a core that keeps to its slots finds room. Where there is none, or no executor, the outcome `NotSent` comes
    /// back at once, for the caller to handle like any other event.
    pub fn send(&self, effect: Effect) -> Option<Event> {
        let sent = match &effect.target {
            Target::Manager => self.manager.try_send(effect),
            Target::Worker(name) => {
                let inlet = self
                    .workers
                    .read()
                    .unwrap_or_else(PoisonError::into_inner)
                    .get(name)
                    .cloned();
                match inlet {
                    Some(inlet) => inlet.try_send(effect),
                    None => Err(mpsc::error::TrySendError::Closed(effect)),
                }
            }
        };
        sent.err().map(|error| Event::Outcome {
            id: error.into_inner().id,
            outcome: Outcome::NotSent,
        })
    }

    /// Whether every watch of the manager runs.
    pub fn readiness(&self) -> watch::Receiver<Readiness> {
        self.readiness.clone()
    }

    /// Stops: no more watches, no more effects; requests in flight end within their deadlines, at most within `patience`.
    pub async fn stop(self, patience: Duration) {
        let Self {
            manager,
            workers,
            stop,
            supervisor,
            ..
        } = self;
        drop(manager);
        workers.write().unwrap_or_else(PoisonError::into_inner).clear();
        // It is gone already when its task ended by itself.
        let _ = stop.send(());
        let abort = supervisor.abort_handle();
        if tokio::time::timeout(patience, supervisor).await.is_err() {
            warn!("requests still in flight at the end are left behind");
            abort.abort();
        }
    }
}

/// A worker that has a link.
struct Linked {
    spec: watch::Sender<LinkSpec>,
    task: JoinHandle<()>,
}

struct Supervisor {
    config: RimConfig,
    manager: Client,
    clock: Clock,
    events: mpsc::Sender<Event>,
    observe: Observe,
    workers: Inlets,
    links: BTreeMap<Arc<str>, Linked>,
    epochs: Arc<AtomicU64>,
    executors: JoinSet<()>,
}

impl Supervisor {
    async fn run(
        mut self,
        inlet: mpsc::Receiver<Effect>,
        readiness: watch::Sender<Readiness>,
        mut stopped: oneshot::Receiver<()>,
    ) {
        let (_keep, connection) = watch::channel(Some(Connection {
            epoch: 0,
            client: self.manager.clone(),
        }));
        let executor = self.executor(
            Target::Manager,
            self.config.manager_requests,
            connection,
            Arc::default(),
        );
        self.executors.spawn(executor.run(inlet));
        let slots = Event::Slots {
            target: Target::Manager,
            limit: self.config.manager_requests,
        };
        if self.events.send(slots).await.is_err() {
            return;
        }
        let mut watches = JoinSet::new();
        let namespace = &self.config.operator_namespace;
        let (mut workers, secrets) = manager_feeds::start(
            &mut watches,
            &self.manager,
            namespace,
            &self.events,
            &self.observe,
            &readiness,
        );
        loop {
            tokio::select! {
                _ = &mut stopped => break,
                Some(ended) = watches.join_next() => {
                    // A watch ends only with the receiver of its events, or in a panic: half a rim is worse than none.
                    if let Err(error) = ended {
                        warn!("a watch of the manager ended: {error}");
                    }
                    break;
                }
                changed = workers.changed() => {
                    if changed.is_err() {
                        break;
                    }
                    let wanted = workers.borrow_and_update().clone();
                    self.follow(wanted, &secrets);
                }
                // Executors of workers that are gone.
                Some(_) = self.executors.join_next(), if !self.executors.is_empty() => {}
            }
        }
        watches.shutdown().await;
        for (_, linked) in std::mem::take(&mut self.links) {
            linked.task.abort();
        }
        self.workers.write().unwrap_or_else(PoisonError::into_inner).clear();
        while self.executors.join_next().await.is_some() {}
    }

    /// Makes the links those of `wanted`.
    fn follow(&mut self, wanted: Workers, secrets: &watch::Receiver<Secrets>) {
        let Some(wanted) = wanted else { return };
        let gone: Vec<_> = self
            .links
            .iter()
            .filter(|(name, linked)| {
                let uid = &linked.spec.borrow().uid;
                wanted.get(*name).is_none_or(|spec| spec.uid != *uid)
            })
            .map(|(name, _)| name.clone())
            .collect();
        for name in gone {
            if let Some(linked) = self.links.remove(&name) {
                info!(worker = &*name, "link ends");
                self.workers
                    .write()
                    .unwrap_or_else(PoisonError::into_inner)
                    .remove(&name);
                linked.task.abort();
            }
        }
        for (name, spec) in wanted {
            match self.links.get(&name) {
                Some(linked) => {
                    linked.spec.send_if_modified(|now| {
                        let differs = *now != spec;
                        *now = spec;
                        differs
                    });
                }
                None => self.link(name, spec, secrets.clone()),
            }
        }
    }

    fn link(&mut self, name: Arc<str>, spec: LinkSpec, mut secrets: watch::Receiver<Secrets>) {
        let (connection, connected) = watch::channel(None);
        let signals = Arc::new(Signals::default());
        let (inlet, effects) = mpsc::channel(self.config.worker_requests * 2);
        let executor = self.executor(
            Target::Worker(name.clone()),
            self.config.worker_requests,
            connected,
            signals.clone(),
        );
        self.executors.spawn(executor.run(effects));
        self.workers
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(name.clone(), inlet);
        let (spec, seen) = watch::channel(spec);
        // Without the first list of the Secrets every kubeconfig would look as if it were missing.
        let listed = secrets.clone();
        let link = Link {
            name: name.clone(),
            spec: seen,
            secrets: listed,
            epochs: self.epochs.clone(),
            connection,
            signals,
            limit: self.config.worker_requests,
            origin_hash: self.config.origin_hash.as_str().into(),
            events: self.events.clone(),
            observe: self.observe.clone(),
            // Above all that a former link of this name may still have said: its events may be on their way.
            epoch: self.epochs.fetch_add(1, Ordering::Relaxed) + 1,
        };
        let task = tokio::spawn(async move {
            if secrets.wait_for(Option::is_some).await.is_ok() {
                link.run().await;
            }
        });
        self.links.insert(name, Linked { spec, task });
    }

    fn executor(
        &self,
        target: Target,
        limit: usize,
        connection: watch::Receiver<Option<Connection>>,
        signals: Arc<Signals>,
    ) -> Executor {
        Executor {
            target,
            limit,
            clock: self.clock,
            instance: self.config.instance.as_str().into(),
            connection,
            signals,
            events: self.events.clone(),
            observe: self.observe.clone(),
        }
    }
}
