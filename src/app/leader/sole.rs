//! Leadership of a process that is alone by declaration (`--leader-elect=false`).
//!
//! Its claim never ends, but it is renewed like an elected one: proofs of absence ask whether the manager still answers as itself *after* something was read
//! there, and a claim that is sent once can never say so. Without a lease to write, the renewal is a read of the manager's identity.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, Client};

use crate::clusters::Clock;
use crate::dispatcher::event::Claim;

use super::super::error::{Error, chain};
use super::super::identity::random_id;

/// 136 years: added to any time of this process it still fits.
const FOR_EVER: Duration = Duration::from_secs(u32::MAX as u64);

/// The only leader there is.
#[derive(Debug)]
pub struct Sole {
    namespaces: Api<Namespace>,
    clock: Clock,
    /// Uid of the manager's `kube-system` namespace, as it was at the start.
    manager_uid: String,
    /// How often the claim is renewed.
    renew: Duration,
    id: Arc<str>,
}

impl Sole {
    /// The leader of the manager whose `kube-system` namespace has this uid. `client` should carry nothing else.
    pub fn new(client: Client, clock: Clock, manager_uid: String, renew: Duration) -> Result<Self, Error> {
        Ok(Self {
            namespaces: Api::all(client),
            clock,
            manager_uid,
            renew,
            id: random_id()?.into(),
        })
    }

    /// Hands the claim to `publish`, now and at each renewal, until another cluster answers as the manager; says the uid of that one.
    pub async fn run(&self, mut publish: impl FnMut(Claim)) -> String {
        publish(self.claim(self.clock.mono()));
        let mut last = None;
        loop {
            self.clock.sleep_until(self.clock.mono() + self.renew).await;
            let sent = self.clock.mono();
            let trouble = match tokio::time::timeout(self.renew, self.namespaces.get_metadata("kube-system")).await {
                Ok(Ok(namespace)) => match namespace.metadata.uid {
                    Some(uid) if uid == self.manager_uid => {
                        publish(self.claim(sent));
                        None
                    }
                    Some(uid) => return uid,
                    None => Some("the namespace kube-system has no uid".to_owned()),
                },
                Ok(Err(error)) => Some(format!("the namespace kube-system cannot be read: {}", chain(&error))),
                Err(_) => Some(format!("no answer within {:?}", self.renew)),
            };
            if trouble != last {
                if let Some(trouble) = &trouble {
                    tracing::warn!(trouble, "the claim of leadership cannot be renewed");
                } else {
                    tracing::info!("the claim of leadership is renewed again");
                }
                last = trouble;
            }
        }
    }

    fn claim(&self, renewed: Duration) -> Claim {
        Claim {
            id: self.id.clone(),
            transitions: 0,
            renewed,
            expires: FOR_EVER,
        }
    }
}
