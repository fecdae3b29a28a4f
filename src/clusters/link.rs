//! The link to one worker: kubeconfig → client → identity → watches, and whether it still answers.
//!
//! Two sources tell that a worker is gone: a periodic probe, and any request of its executor that ends without an answer. The latter only *asks*: it makes the
//! link probe at once, with a short deadline, so that one slow request is not an outage and an outage is noticed within seconds. Only a failed probe says
//! `Down`. Everything that was built on the connection goes with it, watches too: what answers at that address next may be another cluster, so its identity is
//! read again before any list is believed, and a new epoch begins.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http::Request as HttpRequest;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apimachinery::pkg::version::Info;
use k8s_openapi::jiff::Timestamp;
use kube::api::{GetParams, Request as Path};
use kube::{Client, Resource};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tracing::{debug, info, warn};

use super::access;
use super::backoff::{Backoff, jitter};
use super::client;
use super::executor::{Connection, Signals};
use super::kubeconfig::{self, VettedKubeconfig};
use super::manager_feeds::{LinkSpec, Secrets};
use super::reason::{Reason, Trouble};
use super::slim::Meta;
use super::worker_feeds::{self, Source};
use crate::dispatcher::{Event, LinkEvent, Target, WorkerEvent};

/// How often a connected worker is probed.
const PROBE_EVERY: Duration = Duration::from_secs(10);
/// How long a probe may take.
const PROBE_WITHIN: Duration = Duration::from_secs(4);
/// How long the first requests on a connection may take together, opening it included.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);
/// How often rights and kinds are reviewed, and how soon again after a refusal.
const REVIEW_EVERY: Duration = Duration::from_mins(10);
const REVIEW_AGAIN: Duration = Duration::from_secs(10);
/// How long a review may take.
const REVIEW_WITHIN: Duration = Duration::from_secs(30);
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
                if !self.tell(0, WorkerEvent::Link(down)).await {
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
            identified = timeout(CONNECT_WITHIN, identify(&client)) => identified,
            end = self.changed(bytes) => return end,
        };
        let (cluster_uid, version) = match identified {
            Ok(Ok(identity)) => identity,
            Ok(Err(trouble)) => return End::Trouble(explain(trouble, &vetted)),
            Err(_) => return End::Trouble(Trouble::new(Reason::Timeout, "the server did not answer in time")),
        };
        let epoch = self.epochs.fetch_add(1, Ordering::Relaxed) + 1;
        info!(worker = &*self.name, epoch, cluster_uid, version, "connected");
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
        if !self.tell(epoch, WorkerEvent::Link(up)).await || self.events.send(slots).await.is_err() {
            return End::Over;
        }
        *said = None;
        backoff.reset();
        // Dropped, and with it every watch, when this function ends.
        let mut watches = JoinSet::new();
        worker_feeds::start(&mut watches, &source, &client, &self.origin_hash, &self.events);
        self.hold(bytes, &client, &vetted, &cluster_uid, epoch).await
    }

    /// Probes and reviews until something ends the link.
    async fn hold(
        &mut self,
        bytes: &Arc<Vec<u8>>,
        client: &Client,
        vetted: &VettedKubeconfig,
        cluster_uid: &str,
        epoch: u64,
    ) -> End {
        let mut probe_at = Instant::now() + PROBE_EVERY;
        let mut review_at = Instant::now();
        let mut reviewed_at: Option<Instant> = None;
        let signals = self.signals.clone();
        let mut spec = self.spec.clone();
        spec.mark_unchanged();
        loop {
            tokio::select! {
                end = self.changed(bytes) => return end,
                () = signals.suspicious.notified() => probe_at = Instant::now(),
                () = signals.forbidden.notified() => {
                    review_at = review_at.min(reviewed_at.map_or_else(Instant::now, |at| at + REVIEW_AGAIN));
                }
                // The namespaces may have changed; another Secret is seen above.
                Ok(()) = spec.changed() => review_at = Instant::now(),
                () = sleep_until(probe_at) => {
                    if let Some(trouble) = probe(client, cluster_uid).await {
                        return End::Trouble(explain(trouble, vetted));
                    }
                    probe_at = Instant::now() + PROBE_EVERY - jitter(PROBE_EVERY / 5);
                }
                () = sleep_until(review_at) => {
                    reviewed_at = Some(Instant::now());
                    review_at = Instant::now() + REVIEW_EVERY;
                    let namespaces = spec.borrow().namespaces.clone();
                    match timeout(REVIEW_WITHIN, access::review(client, &namespaces)).await {
                        Ok(Ok(access)) => {
                            if !self.tell(epoch, WorkerEvent::Access(access)).await {
                                return End::Over;
                            }
                        }
                        Ok(Err(e)) => {
                            debug!(worker = &*self.name, "review of rights failed: {}", Trouble::of(&e).message);
                            review_at = Instant::now() + REVIEW_AGAIN;
                        }
                        Err(_) => review_at = Instant::now() + REVIEW_AGAIN,
                    }
                    warn_of_expiry(&self.name, vetted);
                }
            }
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

    async fn tell(&self, epoch: u64, event: WorkerEvent) -> bool {
        let source = Source {
            name: self.name.clone(),
            epoch,
        };
        self.events.send(source.event(event)).await.is_ok()
    }
}

/// Reads who the worker is: uid of its `kube-system`, and its version.
async fn identify(client: &Client) -> Result<(String, String), Trouble> {
    let uid = kube_system(client).await?;
    let version = HttpRequest::get("/version").body(Vec::new());
    let version = version.map_err(|e| Trouble::new(Reason::ServerError, e.to_string()))?;
    let info: Info = ask(client, version).await?;
    Ok((uid, info.git_version))
}

async fn kube_system(client: &Client) -> Result<String, Trouble> {
    #[derive(Deserialize)]
    struct Object {
        metadata: Meta,
    }
    let get = Path::new(Namespace::url_path(&(), None)).get("kube-system", &GetParams::default());
    let get = get.map_err(|e| Trouble::new(Reason::ServerError, e.to_string()))?;
    let Object { metadata } = ask(client, get).await?;
    if metadata.uid.is_empty() {
        return Err(Trouble::new(
            Reason::ServerError,
            "the namespace kube-system came without a uid: this is no API server",
        ));
    }
    Ok(metadata.uid)
}

async fn ask<T: DeserializeOwned>(client: &Client, request: HttpRequest<Vec<u8>>) -> Result<T, Trouble> {
    let text = client.request_text(request).await.map_err(|e| Trouble::of(&e))?;
    // Not kube's `request`, which logs the whole text of what it cannot read.
    serde_json::from_str(&text).map_err(|e| {
        Trouble::new(
            Reason::ServerError,
            format!("the answer is not that of an API server: {e}"),
        )
    })
}

/// None when the same cluster answers.
async fn probe(client: &Client, cluster_uid: &str) -> Option<Trouble> {
    match timeout(PROBE_WITHIN, kube_system(client)).await {
        Ok(Ok(uid)) if uid == cluster_uid => None,
        Ok(Ok(_)) => Some(Trouble::new(
            Reason::ConnectionReset,
            "another cluster answers at this address",
        )),
        // A server that is busy is there.
        Ok(Err(trouble)) if matches!(trouble.reason, Reason::Busy | Reason::ServerError) => None,
        Ok(Err(trouble)) => Some(trouble),
        Err(_) => Some(Trouble::new(
            Reason::Timeout,
            format!("the server did not answer a probe within {} s", PROBE_WITHIN.as_secs()),
        )),
    }
}

/// An API server does not say why it does not accept a client certificate.
fn explain(trouble: Trouble, vetted: &VettedKubeconfig) -> Trouble {
    match vetted.client_not_after {
        Some(end) if trouble.reason == Reason::Unauthorized && end <= Timestamp::now() => Trouble::new(
            Reason::CredentialsExpired,
            format!(
                "the client certificate of the kubeconfig has expired at {end}; put a new kubeconfig into the Secret"
            ),
        ),
        _ => trouble,
    }
}

fn warn_of_expiry(worker: &str, vetted: &VettedKubeconfig) {
    const SOON: i64 = 14 * 86_400;
    if let Some(end) = vetted.client_not_after
        && end.as_second() - Timestamp::now().as_second() < SOON
    {
        warn!(worker, "the client certificate of the kubeconfig expires at {end}");
    }
}
