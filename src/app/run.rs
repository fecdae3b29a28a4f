//! The wiring: one task owns the core, the rim surrounds it, and leadership comes from beside.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;

use crate::clusters::{Clock, Readiness, Rim, RimConfig, client};
use crate::dispatcher::{Config, Dispatcher, Event};

use super::admin;
use super::args::RunArgs;
use super::driver::{Core, Driver, Ended, Inlets};
use super::error::Error;
use super::health::{CORE, Health, MANAGER, WATCHES};
use super::identity::Origin;
use super::leader::election::Timing;
use super::leader::sole::Sole;
use super::leader::{Leader, LeaderConfig, Leadership};
use super::manager;
use super::metrics::Metrics;

/// How many events may wait for the core. The watches behind it merge what they cannot hand over, so more would only be older.
const EVENTS: usize = 4096;
/// How much longer than its deadline a request is waited for at the end.
const SLACK: Duration = Duration::from_secs(1);

/// Runs the operator until `shutdown`, or until a part of it fails for good.
///
/// At the end nothing more is sent, requests in flight are waited for, and the leader lease is given back.
pub async fn run(args: RunArgs, shutdown: impl Future<Output = ()>) -> Result<(), Error> {
    run_core(args, Dispatcher::new, shutdown).await
}

/// [`run`] with another core, for tests of the process.
pub async fn run_core<C: Core>(
    args: RunArgs,
    core: impl FnOnce(Config) -> C,
    shutdown: impl Future<Output = ()>,
) -> Result<(), Error> {
    args.validate()?;
    // Every field by name: a flag that nobody reads does not build.
    let RunArgs {
        kubeconfig,
        namespace,
        release,
        origin,
        identity,
        leader_elect,
        lease_duration,
        lease_renew,
        worker_lease_duration,
        worker_lease_renew,
        orphan_grace,
        sweep_interval,
        backfill_reserve_after,
        request_timeout,
        metrics_bind_address,
        log: _,
    } = args;
    let mut shutdown = std::pin::pin!(shutdown);
    let clock = Clock::start();
    let metrics = Metrics::new();
    let health = Health::new(clock, &[MANAGER, WATCHES, CORE]);
    let reach = manager::config(kubeconfig.as_deref()).await?;
    let namespace = namespace.unwrap_or_else(|| reach.default_namespace.clone());
    // Renewals of the leader lease must not wait behind other requests: they have a client of their own.
    let election_client = client::manager(reach.clone()).map_err(Error::Client)?;
    let client = client::manager(reach).map_err(Error::Client)?;
    let admin = admin::bind(&metrics_bind_address)
        .await?
        .map(|listener| Admin::start(listener, &health, &metrics));

    let manager_uid = tokio::select! {
        uid = manager::uid(&client, &health) => uid,
        () = &mut shutdown => return Ok(()),
    };
    let origin = Origin::new(&manager_uid, &namespace, &release, origin);
    let identity = identity
        .or_else(|| std::env::var("HOSTNAME").ok())
        .unwrap_or_else(|| release.clone());
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        namespace,
        origin = origin.text,
        identity,
        "starting"
    );

    let core = core(Config {
        origin: origin.text,
        origin_hash: origin.hash.clone(),
        manager_uid: manager_uid.clone(),
        operator_namespace: namespace.clone(),
        worker_lease: worker_lease_duration,
        worker_lease_renew,
        request_timeout,
        orphan_grace,
        sweep_interval,
        backfill_reserve_after,
    });
    let (claims_in, claims) = mpsc::unbounded_channel();
    let led = if leader_elect {
        let timing = Timing {
            duration: lease_duration,
            renew: lease_renew,
        };
        let (namespace, identity) = (namespace.clone(), identity.clone());
        let config = LeaderConfig {
            namespace,
            name: release,
            identity,
            timing,
        };
        let leader = Leader::new(election_client, config, clock)?;
        Led::Elected(Elected::start(leader, metrics.clone(), claims_in))
    } else {
        let sole = Sole::new(election_client, clock, manager_uid, lease_renew)?;
        Led::Alone(lead_alone(sole, metrics.clone(), claims_in))
    };
    let (events_in, events) = mpsc::channel(EVENTS);
    let rim = start_rim(client, clock, namespace, origin.hash, identity, events_in, &metrics);
    tokio::spawn(follow_readiness(rim.readiness(), health.clone()));

    let mut inlets = Inlets { claims, events };
    let mut driver = Driver::new(core, clock, metrics, health.clone());
    let ended = driver.run(&rim, &mut inlets, shutdown).await;

    health.waiting(CORE, "stopping");
    tracing::info!("stopping");
    let drained = driver.drain(&mut inlets, request_timeout + SLACK).await;
    rim.stop(SLACK).await;
    let led = led.stop(drained).await;
    if let Some(admin) = admin {
        admin.stop().await;
    }
    led.and(ended.result())
}

impl Ended {
    fn result(self) -> Result<(), Error> {
        match self {
            Self::Stopped => Ok(()),
            Self::Cut => Err(Error::PartEnded {
                part: "watches of the manager",
            }),
            Self::NoLeadership => Err(Error::PartEnded {
                part: "leader election",
            }),
        }
    }
}

/// Leadership without an election, until the manager turns out to be another cluster: then it is over, and the process with it.
fn lead_alone(sole: Sole, metrics: Metrics, claims: mpsc::UnboundedSender<Event>) -> JoinHandle<()> {
    tokio::spawn(async move {
        let publish = |claim| {
            metrics.leading(true);
            // Without a receiver the process is ending, and with it this task.
            let _ = claims.send(Event::Claim(claim));
        };
        let uid = sole.run(publish).await;
        tracing::error!(uid, "another cluster answers as the manager; nothing is written to it");
        metrics.leading(false);
        let _ = claims.send(Event::ClaimLost);
    })
}

/// Where claims come from.
enum Led {
    /// An election.
    Elected(Elected),
    /// A declaration.
    Alone(JoinHandle<()>),
}

impl Led {
    async fn stop(self, drained: bool) -> Result<(), Error> {
        match self {
            Self::Elected(elected) => elected.stop(drained).await,
            Self::Alone(task) => {
                // Nothing of it is stored anywhere.
                task.abort();
                Ok(())
            }
        }
    }
}

fn start_rim(
    client: Client,
    clock: Clock,
    operator_namespace: String,
    origin_hash: String,
    instance: String,
    events: mpsc::Sender<Event>,
    metrics: &Metrics,
) -> Rim {
    let config = RimConfig {
        operator_namespace,
        origin_hash,
        instance,
        manager_requests: RimConfig::MANAGER_REQUESTS,
        worker_requests: RimConfig::WORKER_REQUESTS,
    };
    Rim::start(config, client, clock, events, Arc::new(metrics.clone()))
}

/// Tells `/readyz` how the watches of the manager fare, until there are none.
async fn follow_readiness(mut readiness: watch::Receiver<Readiness>, health: Health) {
    loop {
        let blocked = readiness.borrow_and_update().blocked();
        match blocked {
            None => health.ready(WATCHES),
            Some(reason) => health.waiting(WATCHES, reason),
        }
        if readiness.changed().await.is_err() {
            return;
        }
    }
}

/// The administrative endpoints as a task.
struct Admin {
    stop: oneshot::Sender<()>,
    task: JoinHandle<std::io::Result<()>>,
}

impl Admin {
    fn start(listener: TcpListener, health: &Health, metrics: &Metrics) -> Self {
        let (stop, stopped) = oneshot::channel::<()>();
        let router = admin::router(health.clone(), metrics.clone());
        // A dropped sender stops it too: no way out of `run` leaves it behind.
        let task = tokio::spawn(admin::serve(listener, router, async { drop(stopped.await) }));
        Self { stop, task }
    }

    async fn stop(self) {
        drop(self.stop);
        // A connection that a scraper keeps open holds up the end no longer than this.
        let abort = self.task.abort_handle();
        match tokio::time::timeout(SLACK, self.task).await {
            Ok(Ok(Ok(()))) => {}
            Ok(failed) => tracing::warn!("the administrative endpoints failed: {failed:?}"),
            Err(_) => abort.abort(),
        }
    }
}

/// A candidate as a task.
struct Elected {
    stop: oneshot::Sender<()>,
    task: JoinHandle<Result<Leader, Error>>,
}

impl Elected {
    fn start(mut leader: Leader, metrics: Metrics, claims: mpsc::UnboundedSender<Event>) -> Self {
        let (stop, stopped) = oneshot::channel::<()>();
        let task = tokio::spawn(async move {
            let publish = |leadership| {
                let event = match leadership {
                    Leadership::Leads(claim) => Event::Claim(claim),
                    Leadership::Lost => Event::ClaimLost,
                };
                metrics.leading(matches!(event, Event::Claim(_)));
                // Without a receiver the process is ending, and with it this task.
                let _ = claims.send(event);
            };
            leader.run(publish, async { drop(stopped.await) }).await?;
            Ok(leader)
        });
        Self { stop, task }
    }

    /// Ends the candidacy, and gives the lease back unless requests under it may still be in flight: then it runs out by itself.
    async fn stop(self, give_back: bool) -> Result<(), Error> {
        drop(self.stop);
        let Ok(leader) = self.task.await else {
            return Err(Error::PartEnded {
                part: "leader election",
            });
        };
        let mut leader = leader?;
        if give_back {
            leader.vacate().await;
        } else {
            tracing::warn!(
                "requests may still be in flight: the leader lease is not given back and runs out by itself"
            );
        }
        Ok(())
    }
}
