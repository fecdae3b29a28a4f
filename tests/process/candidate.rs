//! A candidate for leadership in this process, and what it published.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bed::{NotYet, eventually};
use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, Client};
use multikueue::app::leader::election::Timing;
use multikueue::app::leader::{Leader, LeaderConfig, Leadership};
use multikueue::clusters::Clock;
use multikueue::dispatcher::event::Claim;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// The shortest lease that leaves room for an API server on a busy machine.
pub const TIMING: Timing = Timing {
    duration: Duration::from_secs(3),
    renew: Duration::from_millis(600),
};

/// A publication and when it came, on the clock of the candidate.
pub type Published = (Duration, Leadership);

pub struct Candidate {
    clock: Clock,
    published: Arc<Mutex<Vec<Published>>>,
    stop: oneshot::Sender<()>,
    task: JoinHandle<Leader>,
}

impl Candidate {
    /// Starts a candidate for the lease `name`. All of one test share a clock.
    pub fn start(client: Client, name: &str, identity: &str, clock: Clock) -> Self {
        let config = LeaderConfig {
            namespace: "default".into(),
            name: name.into(),
            identity: identity.into(),
            timing: TIMING,
        };
        let mut leader = Leader::new(client, config, clock).unwrap();
        let published = Arc::new(Mutex::new(Vec::new()));
        let (stop, stopped) = oneshot::channel::<()>();
        let record = published.clone();
        let task = tokio::spawn(async move {
            let publish = |leadership| record.lock().unwrap().push((clock.mono(), leadership));
            leader.run(publish, async { drop(stopped.await) }).await.unwrap();
            leader
        });
        Self {
            clock,
            published,
            stop,
            task,
        }
    }

    pub fn published(&self) -> Vec<Published> {
        self.published.lock().unwrap().clone()
    }

    /// The claim that holds now, as a reader of the publications knows it.
    pub fn claim(&self) -> Option<Claim> {
        match self.published().pop() {
            Some((_, Leadership::Leads(claim))) if self.clock.mono() < claim.expires => Some(claim),
            _ => None,
        }
    }

    /// Waits until it leads.
    pub async fn leads(&self, timeout: Duration) -> Claim {
        let look = async || {
            self.claim()
                .ok_or_else(|| NotYet::from(format!("{:?}", self.published())))
        };
        eventually(timeout, "a candidate to lead", look).await.unwrap()
    }

    /// Crashes: it neither renews nor gives the lease back.
    pub fn crash(self) {
        self.task.abort();
    }

    /// Ends as a process does that was told to.
    pub async fn end(self) {
        drop(self.stop);
        self.task.await.unwrap().vacate().await;
    }
}

/// The lease as it is stored.
pub async fn lease(client: &Client, namespace: &str, name: &str) -> Lease {
    Api::namespaced(client.clone(), namespace).get(name).await.unwrap()
}
