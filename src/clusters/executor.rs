//! Executors: one per API server. They send what the core decided, and decide nothing.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use tokio::sync::{Notify, Semaphore, mpsc, watch};
use tokio::task::{Id, JoinSet};
use tracing::{debug, warn};

use super::answers::Reply;
use super::clock::Clock;
use super::exchange::exchange;
use super::lease::{self, Renewal};
use super::observe::Observe;
use super::requests::{self, RequestError};
use crate::dispatcher::{Answer, Effect, EffectId, Event, Outcome, RefusalKind, Request, Target};

/// A connection that requests can be sent on.
#[derive(Clone)]
pub struct Connection {
    /// Its number; 0 is the manager's, which never changes.
    pub epoch: u64,
    /// Its client.
    pub client: Client,
}

/// What an executor tells the link of its worker.
#[derive(Debug, Default)]
pub struct Signals {
    /// A request got no answer: is the worker still there?
    pub suspicious: Notify,
    /// A request was forbidden: do we still have our rights?
    pub forbidden: Notify,
}

/// What an executor needs.
#[derive(Clone)]
pub struct Executor {
    /// Whose it is.
    pub target: Target,
    /// How many requests may be in flight.
    pub limit: usize,
    /// The clock of deadlines.
    pub clock: Clock,
    /// Who reports events for people.
    pub instance: Arc<str>,
    /// The connection, if there is one.
    pub connection: watch::Receiver<Option<Connection>>,
    /// Of its link.
    pub signals: Arc<Signals>,
    /// Where outcomes go.
    pub events: mpsc::Sender<Event>,
    /// Of metrics.
    pub observe: Observe,
}

impl Executor {
    /// Sends what arrives until the sender is gone, and then waits for what is in flight: each has its deadline.
    pub async fn run(self, mut effects: mpsc::Receiver<Effect>) {
        // The core keeps to the limit; this holds it even when the core is told of a change late.
        let room = Arc::new(Semaphore::new(self.limit));
        let mut tasks = JoinSet::new();
        let mut running: HashMap<Id, EffectId> = HashMap::new();
        loop {
            tokio::select! {
                effect = effects.recv() => {
                    let Some(effect) = effect else { break };
                    let (id, one, room) = (effect.id, self.clone(), room.clone());
                    let task = tasks.spawn(async move {
                        let permit = room.acquire().await;
                        let outcome = one.perform(&effect).await;
                        drop(permit);
                        one.tell(effect.id, outcome).await;
                    });
                    running.insert(task.id(), id);
                }
                Some(ended) = tasks.join_next_with_id(), if !tasks.is_empty() => self.ended(ended, &mut running).await,
            }
        }
        while let Some(ended) = tasks.join_next_with_id().await {
            self.ended(ended, &mut running).await;
        }
    }

    /// A panic in one request is that request's: whether it was sent is not known.
    async fn ended(&self, ended: Result<(Id, ()), tokio::task::JoinError>, running: &mut HashMap<Id, EffectId>) {
        match ended {
            Ok((task, ())) => {
                running.remove(&task);
            }
            Err(error) => {
                if let Some(id) = running.remove(&error.id()) {
                    warn!(effect = id.0, "request ended in a panic: {error}");
                    self.tell(
                        id,
                        Outcome::Unknown {
                            message: "the request ended in a panic".into(),
                        },
                    )
                    .await;
                }
            }
        }
    }

    async fn tell(&self, id: EffectId, outcome: Outcome) {
        // Without a receiver the process is on its way out.
        let _ = self.events.send(Event::Outcome { id, outcome }).await;
    }

    async fn perform(&self, effect: &Effect) -> Outcome {
        let kind = effect.request.kind();
        let start = self.clock.mono();
        let current = self.connection.borrow().clone();
        let outcome = match current {
            Some(connection) if connection.epoch == effect.epoch || self.target == Target::Manager => {
                if start >= effect.deadline {
                    Outcome::NotSent
                } else {
                    self.send(&connection.client, effect).await
                }
            }
            _ => Outcome::NotSent,
        };
        let took = self.clock.mono().saturating_sub(start);
        self.log(effect, &outcome, took);
        self.observe
            .effect_done(&self.target, kind, outcome_name(&outcome), took);
        outcome
    }

    async fn send(&self, client: &Client, effect: &Effect) -> Outcome {
        let request = &effect.request;
        let asked = requests::about(request);
        let deadline = self.clock.instant(effect.deadline);
        let reply = if let Request::RenewLease {
            name,
            holder,
            seconds,
            transitions,
            resource_version,
        } = request
        {
            let renewal = Renewal {
                name,
                holder,
                seconds: *seconds,
                transitions: *transitions,
                version: *resource_version,
            };
            lease::renew(client, asked, renewal, deadline).await
        } else {
            match requests::make(request, &self.instance) {
                Ok(made) => Ok(exchange(client, asked, made, deadline).await),
                Err(e) => Err(e),
            }
        };
        self.outcome(request, reply)
    }

    fn outcome(&self, request: &Request, reply: Result<Reply, RequestError>) -> Outcome {
        match reply {
            Ok(Reply::Done(text)) => {
                let answer = match request {
                    Request::RenewLease { .. } => lease::view(&text).map(Answer::Lease),
                    other => requests::read(other, &text),
                };
                match answer {
                    Ok(answer) => Outcome::Done(answer),
                    // It was done, but what it left cannot be read: the core looks again.
                    Err(e) => Outcome::Unknown {
                        message: format!("the answer cannot be read: {e}"),
                    },
                }
            }
            Ok(Reply::Refused(refusal))
                if refusal.kind == RefusalKind::AlreadyExists && matches!(request, Request::CreateNamespace { .. }) =>
            {
                Outcome::Done(Answer::Accepted)
            }
            Ok(Reply::Refused(refusal)) => {
                if refusal.kind == RefusalKind::Forbidden {
                    self.signals.forbidden.notify_one();
                }
                Outcome::Refused(refusal)
            }
            Ok(Reply::Unknown(message)) => {
                self.signals.suspicious.notify_one();
                Outcome::Unknown { message }
            }
            Err(e) => {
                warn!(kind = request.kind(), "{e}");
                Outcome::NotSent
            }
        }
    }

    fn log(&self, effect: &Effect, outcome: &Outcome, took: Duration) {
        let (id, kind, took) = (effect.id.0, effect.request.kind(), took.as_millis());
        let target = match &self.target {
            Target::Manager => "",
            Target::Worker(name) => name,
        };
        match outcome {
            Outcome::Refused(refusal) if matters(refusal.kind) => {
                warn!(
                    target_cluster = target,
                    effect = id,
                    kind,
                    ms = took,
                    code = refusal.code,
                    "refused: {}",
                    refusal.message
                );
            }
            Outcome::Refused(refusal) => {
                debug!(
                    target_cluster = target,
                    effect = id,
                    kind,
                    ms = took,
                    code = refusal.code,
                    "refused: {}",
                    refusal.message
                );
            }
            Outcome::Unknown { message } => debug!(
                target_cluster = target,
                effect = id,
                kind,
                ms = took,
                "unknown: {message}"
            ),
            Outcome::Done(_) => debug!(target_cluster = target, effect = id, kind, ms = took, "done"),
            Outcome::NotSent => debug!(target_cluster = target, effect = id, kind, "not sent"),
        }
    }
}

/// What is no part of the ordinary course: not a race that was lost, not an object that is gone.
fn matters(kind: RefusalKind) -> bool {
    matches!(
        kind,
        RefusalKind::Invalid | RefusalKind::Forbidden | RefusalKind::Server | RefusalKind::OtherNotFound
    )
}

fn outcome_name(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Done(_) => "done",
        Outcome::Unknown { .. } => "unknown",
        Outcome::NotSent => "not_sent",
        Outcome::Refused(refusal) => match refusal.kind {
            RefusalKind::ObjectNotFound => "object_not_found",
            RefusalKind::NamespaceNotFound => "namespace_not_found",
            RefusalKind::OtherNotFound => "other_not_found",
            RefusalKind::AlreadyExists => "already_exists",
            RefusalKind::Conflict => "conflict",
            RefusalKind::Invalid => "invalid",
            RefusalKind::Forbidden => "forbidden",
            RefusalKind::Busy => "busy",
            RefusalKind::Server => "server",
        },
    }
}
