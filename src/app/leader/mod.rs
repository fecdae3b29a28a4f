//! Leader election by a `Lease`: the rim of [`election`].
//!
//! Of the crates for it, none says that leadership is over while the API server is unreachable; here the end of a claim is an instant that
//! is known beforehand, and it is published when it comes, whatever the network does.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client};

use crate::clusters::Clock;
use crate::dispatcher::event::Claim;

use super::error::{Error, chain};
use super::identity::random_id;

pub mod election;
pub mod sole;

use election::{Answer, Election, LeaseRecord, LeaseWrite, Request, Step, Timing};

/// How often giving the lease back is tried when it is written at the same moment.
const VACATE_TRIES: usize = 3;

/// What is published of leadership.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Leadership {
    /// Acquired or renewed.
    Leads(Claim),
    /// Over.
    Lost,
}

/// Where the lease is and who the candidate is.
#[derive(Debug, Clone)]
pub struct LeaderConfig {
    /// Namespace of the lease.
    pub namespace: String,
    /// Name of the lease.
    pub name: String,
    /// Name of this process; something random is added.
    pub identity: String,
    /// How long and how often.
    pub timing: Timing,
}

/// A candidate at an API server.
#[derive(Debug)]
pub struct Leader {
    api: Api<Lease>,
    config: LeaderConfig,
    clock: Clock,
    election: Election,
    /// What was published last.
    published: Option<Claim>,
    /// The last failure that was logged, so that an outage is one line and not one a second.
    complaint: Option<String>,
}

impl Leader {
    /// A candidate. `client` should carry nothing else: a renewal must not wait behind other requests.
    pub fn new(client: Client, config: LeaderConfig, clock: Clock) -> Result<Self, Error> {
        let identity = format!("{}_{}", config.identity, random_id()?);
        Ok(Self {
            api: Api::namespaced(client, &config.namespace),
            election: Election::new(identity, config.timing),
            config,
            clock,
            published: None,
            complaint: None,
        })
    }

    /// Takes part in the election until `stop`, and hands every change and renewal to `publish`. The lease is still held at the end:
    /// [`Self::vacate`] gives it back, once nothing is in flight any more.
    pub async fn run(
        &mut self,
        mut publish: impl FnMut(Leadership),
        stop: impl Future<Output = ()>,
    ) -> Result<(), Error> {
        let mut stop = std::pin::pin!(stop);
        loop {
            self.publish(&mut publish);
            let now = self.clock.now();
            match self.election.step(now, &random_id()?) {
                Step::Wait(until) => tokio::select! {
                    () = self.clock.sleep_until(until) => {}
                    () = &mut stop => return Ok(()),
                },
                Step::Send(request) => {
                    let ends = self.published.as_ref().map_or(Duration::MAX, |claim| claim.expires);
                    let (answer, complaint) = tokio::select! {
                        answered = self.request(request) => answered,
                        () = &mut stop => return Ok(()),
                        // The end of the claim is published on time, although a request hangs.
                        () = self.clock.sleep_until(ends) => (Answer::Failed, Some("no answer before leadership ended".into())),
                    };
                    self.complain(complaint);
                    self.election.answer(now.mono, self.clock.now().mono, answer);
                }
            }
        }
    }

    /// Gives the lease back if it is ours, so that a standby need not wait its duration out. Only for when nothing of ours is in flight.
    pub async fn vacate(&mut self) {
        for _ in 0..VACATE_TRIES {
            let (Answer::Found(record), _) = self.request(Request::Read).await else {
                tracing::warn!("the leader lease cannot be read to give it back; it runs out by itself");
                return;
            };
            let Some(write) = self.election.vacate(&record, self.clock.now().wall) else {
                return;
            };
            match self.request(Request::Write(write)).await {
                (Answer::Written(_), _) => {
                    tracing::info!("gave the leader lease back");
                    return;
                }
                // A renewal that was under way came first.
                (Answer::Conflict, _) => {}
                (_, complaint) => {
                    tracing::warn!(
                        complaint,
                        "the leader lease cannot be given back; it runs out by itself"
                    );
                    return;
                }
            }
        }
    }

    fn publish(&mut self, publish: &mut impl FnMut(Leadership)) {
        let claim = self.election.claim(self.clock.now().mono);
        if claim == self.published.as_ref() {
            return;
        }
        match (claim, &self.published) {
            (Some(claim), Some(last)) if last.id == claim.id => {}
            (Some(claim), _) => {
                tracing::info!(claim = &*claim.id, transitions = claim.transitions, "leading");
            }
            (None, _) => tracing::warn!(holder = self.election.holder(), "leadership lost"),
        }
        self.published = claim.cloned();
        publish(self.published.clone().map_or(Leadership::Lost, Leadership::Leads));
    }

    /// Logs a failure once, and that it is over.
    fn complain(&mut self, complaint: Option<String>) {
        if complaint == self.complaint {
            return;
        }
        if let Some(complaint) = &complaint {
            tracing::warn!(complaint, lease = self.config.name, "the leader lease cannot be used");
        } else {
            tracing::info!(lease = self.config.name, "the leader lease can be used again");
        }
        self.complaint = complaint;
    }

    /// One request: its answer, and what failed.
    async fn request(&self, request: Request) -> (Answer, Option<String>) {
        // Two failures in a row fit into a claim.
        let limit = self.config.timing.duration / 3;
        match tokio::time::timeout(limit, self.send(request)).await {
            Ok(Ok(answer)) => (answer, None),
            Ok(Err(error)) => (Answer::Failed, Some(chain(&error))),
            Err(_) => (Answer::Failed, Some(format!("no answer within {limit:?}"))),
        }
    }

    async fn send(&self, request: Request) -> Result<Answer, kube::Error> {
        let name = &self.config.name;
        let params = PostParams {
            field_manager: Some(crate::api::names::MANAGER.into()),
            ..PostParams::default()
        };
        match request {
            Request::Read => Ok(self
                .api
                .get_opt(name)
                .await?
                .map_or(Answer::Absent, |lease| Answer::Found(record(lease)))),
            Request::Write(write) if write.replaces.is_none() => {
                match self.api.create(&params, &self.lease(write)).await {
                    Ok(lease) => Ok(Answer::Written(record(lease))),
                    Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(Answer::Conflict),
                    Err(error) => Err(error),
                }
            }
            Request::Write(write) => match self.api.replace(name, &params, &self.lease(write)).await {
                Ok(lease) => Ok(Answer::Written(record(lease))),
                // Another version by now, or deleted since it was read.
                Err(kube::Error::Api(status)) if status.is_conflict() || status.is_not_found() => Ok(Answer::Conflict),
                Err(error) => Err(error),
            },
        }
    }

    fn lease(&self, write: LeaseWrite) -> Lease {
        let LeaseWrite {
            replaces,
            holder,
            duration,
            transitions,
            acquired,
            renewed,
        } = write;
        Lease {
            metadata: ObjectMeta {
                name: Some(self.config.name.clone()),
                namespace: Some(self.config.namespace.clone()),
                resource_version: replaces,
                ..ObjectMeta::default()
            },
            spec: Some(LeaseSpec {
                holder_identity: holder,
                lease_duration_seconds: Some(i32::try_from(duration.as_secs()).unwrap_or(i32::MAX)),
                lease_transitions: Some(transitions),
                acquire_time: Some(MicroTime(acquired)),
                renew_time: Some(MicroTime(renewed)),
                ..LeaseSpec::default()
            }),
        }
    }
}

fn record(lease: Lease) -> LeaseRecord {
    let spec = lease.spec.unwrap_or_default();
    let seconds = spec
        .lease_duration_seconds
        .and_then(|seconds| u64::try_from(seconds).ok())
        .filter(|seconds| *seconds > 0);
    LeaseRecord {
        version: lease.metadata.resource_version.unwrap_or_default(),
        holder: spec.holder_identity.filter(|holder| !holder.is_empty()),
        duration: seconds.map(Duration::from_secs),
        transitions: spec.lease_transitions.unwrap_or(0),
        acquired: spec.acquire_time.map(|time| time.0),
        renewed: spec.renew_time.map(|time| time.0),
    }
}
