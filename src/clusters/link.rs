//! The link to one worker: kubeconfig → client → identity → watches, and whether it still answers.
//!
//! Two sources tell that a worker is gone: a periodic probe, and any request of its executor that ends without an answer. The latter only *asks*: it makes the
//! link probe at once, with a short deadline, so that one slow request is not an outage and an outage is noticed within seconds. Only a failed probe says
//! `Down`. Everything that was built on the connection goes with it, watches too: what answers at that address next may be another cluster, so its identity is
//! read again before any list is believed, and a new epoch begins.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use kube::Client;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};
use tracing::{info, warn};

use super::access::Reviewer;
use super::backoff::{Backoff, jitter};
use super::client;
use super::executor::{Connection, Signals};
use super::identity::{explain, identify, probe, warn_of_expiry};
use super::kubeconfig;
use super::manager_feeds::{LinkSpec, Secrets};
use super::observe::Observe;
use super::reason::{Reason, Trouble};
use super::worker_feeds::{self, Source};
use crate::dispatcher::{Event, LinkEvent, Target, WorkerEvent};

/// How often a connected worker is probed.
const PROBE_EVERY: Duration = Duration::from_secs(10);
const RETRY_FIRST: Duration = Duration::from_millis(500);
const RETRY_MOST: Duration = Duration::from_secs(15);

/// What a link needs.
pub struct Link {
    /// Name of the `WorkerCluster`.
    pub name: Arc<str>,
    /// What it goes by; the sender goes when the `WorkerCluster` does.
    pub spec: watch::Receiver<LinkSpec>,
    /// The Secrets of the operator's namespace.
    pub secrets: watch::Receiver<Secrets>,
    /// Numbers of connections, shared by all links.
    pub epochs: Arc<AtomicU64>,
    /// The connection for the executor.
    pub connection: watch::Sender<Option<Connection>>,
    /// From the executor.
    pub signals: Arc<Signals>,
    /// Requests that may be in flight while connected.
    pub limit: usize,
    /// Hash of the origin: the mirrors to watch.
    pub origin_hash: Arc<str>,
    /// Where events go.
    pub events: mpsc::Sender<Event>,
    /// Of metrics.
    pub observe: Observe,
    /// The last connection; before the first, a number of the link's own. What the link says is of it: the core drops what is of an older one.
    pub epoch: u64,
}

/// Why a step of a link ended.
enum End {
    /// Spec or Secret changed: begin with what they say now.
    Changed,
    /// The worker does not answer as it should.
    Trouble(Trouble),
    /// The `WorkerCluster` or the process is going.
    Over,
}

/// The kubeconfig as it is now, or why there is none.
type Material = Result<Arc<Vec<u8>>, Trouble>;

impl Link {
    /// Keeps the link until its `WorkerCluster` is gone.
    pub async fn run(mut self) {
        let mut backoff = Backoff::new(RETRY_FIRST, RETRY_MOST);
        let mut said: Option<Trouble> = None;
        loop {
            let material = self.material();
            let end = match &material {
                Ok(bytes) => self.live(bytes, &mut backoff, &mut said).await,
                Err(trouble) => End::Trouble(trouble.clone()),
            };
            self.connection.send_replace(None);
            let trouble = match end {
                End::Over => return,
                End::Changed => {
                    info!(worker = &*self.name, "kubeconfig changed");
                    backoff.reset();
                    continue;
                }
                End::Trouble(trouble) => trouble,
            };
            if said.as_ref() != Some(&trouble) {
                warn!(
                    worker = &*self.name,
                    reason = trouble.reason.as_str(),
                    "{}",
                    trouble.message
                );
                let (reason, message) = (trouble.reason.as_str().to_owned(), trouble.message.clone());
                let down = LinkEvent::Down { reason, message };
                if !self.tell(WorkerEvent::Link(down)).await {
                    return;
                }
                said = Some(trouble);
            }
            // What only another kubeconfig can cure waits for one.
            let pause = match &material {
                Ok(bytes) if kubeconfig::vet(bytes).is_ok() => Some(backoff.pause()),
                _ => None,
            };
            match self.rest(&material, pause).await {
                End::Over => return,
                End::Changed => backoff.reset(),
                End::Trouble(_) => {}
            }
        }
    }

    /// From a kubeconfig to an established link, until it ends.
    async fn live(&mut self, bytes: &Arc<Vec<u8>>, backoff: &mut Backoff, said: &mut Option<Trouble>) -> End {
        let vetted = match kubeconfig::vet(bytes) {
            Ok(vetted) => vetted,
            Err(e) => return End::Trouble(Trouble::new(Reason::InvalidKubeconfig, e.to_string())),
        };
        let client = match client::worker(&vetted) {
            Ok(client) => client,
            Err(e) => {
                return End::Trouble(Trouble::new(
                    Reason::InvalidKubeconfig,
                    format!("no client can be made of the kubeconfig: {e}"),
                ));
            }
        };
        let identified = tokio::select! {
            identified = identify(&client) => identified,
            end = self.changed(bytes) => return end,
        };
        let (cluster_uid, version) = match identified {
            Ok(identity) => identity,
            Err(trouble) => return End::Trouble(explain(trouble, &vetted)),
        };
        let epoch = self.epochs.fetch_add(1, Ordering::Relaxed) + 1;
        self.epoch = epoch;
        info!(worker = &*self.name, epoch, cluster_uid, version, "connected");
        warn_of_expiry(&self.name, &vetted);
        let source = Source {
            name: self.name.clone(),
            epoch,
        };
        self.connection.send_replace(Some(Connection {
            epoch,
            client: client.clone(),
        }));
        let up = LinkEvent::Up {
            cluster_uid: cluster_uid.as_str().into(),
            version,
        };
        let slots = Event::Slots {
            target: Target::Worker(self.name.clone()),
            limit: self.limit,
        };
        if !self.tell(WorkerEvent::Link(up)).await || self.events.send(slots).await.is_err() {
            return End::Over;
        }
        *said = None;
        backoff.reset();
        let mut tasks = JoinSet::new();
        worker_feeds::start(
            &mut tasks,
            &source,
            &client,
            &self.origin_hash,
            &self.events,
            &self.observe,
        );
        let reviewer = Reviewer {
            source,
            client: client.clone(),
            spec: self.spec.clone(),
            signals: self.signals.clone(),
            events: self.events.clone(),
        };
        tasks.spawn(reviewer.run());
        let end = self.hold(bytes, &client, &cluster_uid).await;
        // Whatever is said of the link next, nothing of this connection may be said after it.
        self.connection.send_replace(None);
        tasks.shutdown().await;
        match end {
            End::Trouble(trouble) => End::Trouble(explain(trouble, &vetted)),
            end => end,
        }
    }

    /// Probes until something ends the link.
    async fn hold(&mut self, bytes: &Arc<Vec<u8>>, client: &Client, cluster_uid: &str) -> End {
        let signals = self.signals.clone();
        let mut probe_at = Instant::now() + PROBE_EVERY;
        loop {
            tokio::select! {
                end = self.changed(bytes) => return end,
                () = signals.suspicious.notified() => {}
                () = sleep_until(probe_at) => {}
            }
            let probed = tokio::select! {
                probed = probe(client, cluster_uid) => probed,
                end = self.changed(bytes) => return end,
            };
            if let Some(trouble) = probed {
                return End::Trouble(trouble);
            }
            probe_at = Instant::now() + PROBE_EVERY - jitter(PROBE_EVERY / 5);
        }
    }

    /// Waits for a pause or for another kubeconfig.
    async fn rest(&mut self, material: &Material, pause: Option<Duration>) -> End {
        let pause = async {
            match pause {
                Some(pause) => sleep(pause).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = pause => End::Trouble(Trouble::new(Reason::Unreachable, "")),
            end = self.differs(material) => end,
        }
    }

    async fn changed(&mut self, bytes: &Arc<Vec<u8>>) -> End {
        self.differs(&Ok(bytes.clone())).await
    }

    /// Waits until spec and Secret say something else than `material`. An edit that leaves the kubeconfig as it is disturbs nothing.
    async fn differs(&mut self, material: &Material) -> End {
        loop {
            if self.material() != *material {
                return End::Changed;
            }
            let changed = tokio::select! {
                changed = self.spec.changed() => changed,
                changed = self.secrets.changed() => changed,
            };
            if changed.is_err() {
                return End::Over;
            }
        }
    }

    fn material(&mut self) -> Material {
        let secret = self.spec.borrow_and_update().secret.clone();
        let secrets = self.secrets.borrow_and_update();
        let Some(data) = secrets.as_ref().and_then(|all| all.get(&secret.name)) else {
            return Err(Trouble::new(
                Reason::SecretNotFound,
                format!(
                    "there is no Secret {:?} in the operator's namespace; create it, or name another in spec.kubeconfig.secretRef",
                    secret.name
                ),
            ));
        };
        data.get(&secret.key).cloned().map(Arc::new).ok_or_else(|| {
            let keys: Vec<_> = data.keys().map(String::as_str).collect();
            Trouble::new(
                Reason::SecretKeyNotFound,
                format!(
                    "the Secret {:?} has no key {:?}, only {:?}; name the right one in spec.kubeconfig.secretRef.key",
                    secret.name, secret.key, keys
                ),
            )
        })
    }

    async fn tell(&self, event: WorkerEvent) -> bool {
        let source = Source {
            name: self.name.clone(),
            epoch: self.epoch,
        };
        self.events.send(source.event(event)).await.is_ok()
    }
}
