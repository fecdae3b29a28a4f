//! A rim on a bed: one manager and one worker for all tests, a namespace with kubeconfigs for each.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bed::{ControlPlane, Kubeconfig, apply_yaml, create_namespace};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{ObjectMeta, Patch, PatchParams};
use kube::{Api, Client};
use multikueue::api::{WorkerCluster, crds};
use multikueue::clusters::{Clock, Rim, RimConfig, client};
use multikueue::dispatcher::{Effect, EffectId, Event, LinkEvent, Outcome, Request, Target, WorkerEvent};
use serde_json::json;
use tokio::sync::mpsc;
use tokio::time::timeout;

static BED: bed::Shared = bed::Shared::new(|| bed::BedOptions::new().manager("manager").worker("eu"));

/// The kubeconfig of the service account that the role for workers is for.
pub async fn service_account(world: &World) -> Kubeconfig {
    apply_yaml(&world.worker, include_str!("../../deploy/worker-role.yaml"))
        .await
        .unwrap();
    let account = world
        .eu
        .kubeconfig_service_account("multikueue-system", "multikueue")
        .await;
    account.unwrap()
}

/// The longest that anything here takes, on a machine that is busy.
pub const LONG: Duration = Duration::from_secs(40);
pub const ORIGIN: &str = "0123456789abcdef";

pub struct World {
    pub manager: Arc<ControlPlane>,
    pub eu: Arc<ControlPlane>,
    pub client: Client,
    pub worker: Client,
    pub namespace: String,
    pub rim: Rim,
    pub clock: Clock,
    events: mpsc::Receiver<Event>,
    effects: AtomicU64,
    /// The newest epoch of each worker.
    pub epochs: BTreeMap<String, u64>,
}

pub async fn bed() -> &'static bed::Bed {
    BED.get().await.unwrap()
}

impl World {
    /// A rim whose kubeconfigs are in a namespace of this test.
    pub async fn start(namespace: &str) -> Self {
        let bed = bed().await;
        let (manager, eu) = (bed.control_plane("manager").unwrap(), bed.control_plane("eu").unwrap());
        let client = manager.client().await.unwrap();
        let yaml: Vec<_> = crds::crds_yaml().unwrap().into_iter().map(|(_, text)| text).collect();
        apply_yaml(&client, &yaml.join("---\n")).await.unwrap();
        create_namespace(&client, namespace, false).await.unwrap();
        let (tx, events) = mpsc::channel(256);
        let clock = Clock::start();
        let config = RimConfig {
            operator_namespace: namespace.into(),
            origin_hash: ORIGIN.into(),
            instance: "rim-test".into(),
            manager_requests: RimConfig::MANAGER_REQUESTS,
            worker_requests: RimConfig::WORKER_REQUESTS,
        };
        let ours = client::manager(manager.kubeconfig().config().await.unwrap()).unwrap();
        let rim = Rim::start(config, ours, clock, tx, Arc::new(()));
        Self {
            worker: eu.client().await.unwrap(),
            manager,
            eu,
            client,
            namespace: namespace.into(),
            rim,
            clock,
            events,
            effects: AtomicU64::new(0),
            epochs: BTreeMap::new(),
        }
    }

    /// Writes a Secret with this text under `kubeconfig`.
    pub async fn secret(&self, name: &str, text: &str) {
        let secret = Secret {
            metadata: ObjectMeta {
                name: Some(name.into()),
                ..ObjectMeta::default()
            },
            data: Some([("kubeconfig".to_owned(), ByteString(text.as_bytes().to_vec()))].into()),
            ..Secret::default()
        };
        let secrets = Api::<Secret>::namespaced(self.client.clone(), &self.namespace);
        secrets
            .patch(name, &PatchParams::apply("test").force(), &Patch::Apply(&secret))
            .await
            .unwrap();
    }

    /// Writes a `WorkerCluster` that refers to a Secret.
    pub async fn worker_cluster(&self, name: &str, secret: &str, key: &str) -> WorkerCluster {
        let object = json!({
            "apiVersion": "multikueue.rs/v1alpha1", "kind": "WorkerCluster", "metadata": {"name": name},
            "spec": {"kubeconfig": {"secretRef": {"name": secret, "key": key}}},
        });
        let workers = Api::<WorkerCluster>::all(self.client.clone());
        workers
            .patch(name, &PatchParams::apply("test").force(), &Patch::Apply(&object))
            .await
            .unwrap()
    }

    /// Both, of one name.
    pub async fn add(&self, name: &str, kubeconfig: &str) {
        self.secret(name, kubeconfig).await;
        self.worker_cluster(name, name, "kubeconfig").await;
    }

    /// The next event; what it says of epochs is noted.
    pub async fn next(&mut self) -> Event {
        let event = timeout(LONG, self.events.recv())
            .await
            .expect("an event in time")
            .expect("a rim that runs");
        if let Event::Worker { name, epoch, .. } = &event {
            self.epochs.insert(name.to_string(), *epoch);
        }
        event
    }

    /// Waits for an event that `wanted` makes something of; others pass by.
    pub async fn until<T>(&mut self, mut wanted: impl FnMut(&Event) -> Option<T>) -> T {
        let deadline = tokio::time::Instant::now() + LONG;
        let mut passed = Vec::new();
        while tokio::time::Instant::now() < deadline {
            let event = self.next().await;
            if let Some(found) = wanted(&event) {
                return found;
            }
            passed.push(format!("{event:?}").chars().take(300).collect::<String>());
        }
        panic!("what was waited for did not come; what came: {passed:#?}");
    }

    /// Waits for an event of a worker.
    pub async fn worker_says<T>(&mut self, worker: &str, mut wanted: impl FnMut(&WorkerEvent) -> Option<T>) -> T {
        self.until(|event| match event {
            Event::Worker { name, event, .. } if &**name == worker => wanted(event),
            _ => None,
        })
        .await
    }

    /// Waits for a link to be up, and says the uid of the cluster.
    pub async fn up(&mut self, worker: &str) -> String {
        self.worker_says(worker, |event| match event {
            WorkerEvent::Link(LinkEvent::Up { cluster_uid, .. }) => Some(cluster_uid.to_string()),
            _ => None,
        })
        .await
    }

    /// Waits for a link to be down, and says why.
    pub async fn down(&mut self, worker: &str) -> (String, String) {
        self.worker_says(worker, |event| match event {
            WorkerEvent::Link(LinkEvent::Down { reason, message }) => Some((reason.clone(), message.clone())),
            _ => None,
        })
        .await
    }

    /// An effect that has this long.
    pub fn effect(&self, worker: Option<&str>, request: Request, within: Duration) -> Effect {
        Effect {
            id: EffectId(self.effects.fetch_add(1, Ordering::Relaxed)),
            target: worker.map_or(Target::Manager, |name| Target::Worker(name.into())),
            epoch: worker.map_or(0, |name| self.epochs[name]),
            deadline: self.clock.mono() + within,
            request,
        }
    }

    /// Sends an effect and waits for its outcome.
    pub async fn outcome(&mut self, effect: Effect) -> Outcome {
        let sent = effect.id;
        if let Some(Event::Outcome { outcome, .. }) = self.rim.send(effect) {
            return outcome;
        }
        self.until(|event| match event {
            Event::Outcome { id, outcome } if *id == sent => Some(outcome.clone()),
            _ => None,
        })
        .await
    }

    /// Sends a request and waits for its outcome.
    pub async fn ask(&mut self, worker: Option<&str>, request: Request) -> Outcome {
        let effect = self.effect(worker, request, Duration::from_secs(10));
        self.outcome(effect).await
    }
}
