//! A worker: its API server with Jobs, pods, nodes and the lease, and what of them a watch shows.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use multikueue::api::names;
use multikueue::capacity::{NodeRow, PodRow};
use multikueue::lifecycle::view::{JobKey, LeaseView, MirrorView, ResourceVersion};
use multikueue::resources::Amounts;
use serde_json::{Value, json};

use crate::log::Log;
use crate::object::{Object, Status};
use crate::plan::{Fate, GPU, Workload};
use crate::world::Ms;

/// How packets fare between the operator and a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Road {
    Open,
    /// Connections break and new ones are refused.
    Cut,
    /// Packets vanish; nobody is told.
    BlackHole,
}

#[derive(Debug, Clone)]
pub struct Node {
    pub name: Arc<str>,
    pub gpus: i64,
    pub ready: bool,
    pub cordoned: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    Pending,
    Running,
    Succeeded,
    Failed,
}

#[derive(Debug, Clone)]
pub struct Pod {
    pub namespace: Arc<str>,
    pub name: Arc<str>,
    /// Key and uid of the Job that it belongs to.
    pub owner: Option<(JobKey, Arc<str>)>,
    pub job_uid: Option<Arc<str>>,
    pub gpus: i64,
    pub node: Option<usize>,
    pub phase: Phase,
    pub deleting: bool,
    /// The Job controller has added it to its counts.
    pub counted: bool,
    pub millis: Ms,
    pub fate: Fate,
}

impl Pod {
    /// It may run, now or later.
    pub fn live(&self) -> bool {
        matches!(self.phase, Phase::Pending | Phase::Running)
    }
}

pub struct Worker {
    pub name: Arc<str>,
    pub cluster_uid: Arc<str>,
    version: u64,
    uids: u64,
    pub namespaces: BTreeSet<Arc<str>>,
    pub nodes: Vec<Node>,
    pub jobs: BTreeMap<JobKey, Object>,
    /// By uid.
    pub pods: BTreeMap<Arc<str>, Pod>,
    pub lease: Option<LeaseView>,
    pub node_log: Log<Arc<str>, NodeRow>,
    pub pod_log: Log<(Arc<str>, Arc<str>), PodRow>,
    pub mirror_log: Log<JobKey, MirrorView>,
    pub road: Road,
    /// Objects are refused by a webhook or a quota.
    pub denies: bool,
    /// A webhook wakes what is created asleep.
    pub wakes: bool,
    /// The Job controller says `Failed` at once and not when the last pod is gone (before 1.31).
    pub fails_early: bool,
    /// Pods that die of a stop count as failures.
    pub dying_counts: bool,
    origin: String,
}

impl Worker {
    pub fn new(name: &str, origin: &str, nodes: &[i64]) -> Self {
        let mut worker = Self {
            name: name.into(),
            cluster_uid: format!("cluster-{name}").into(),
            version: 5000,
            uids: 0,
            namespaces: [Arc::from("team"), Arc::from(names::WORKER_LEASE_NAMESPACE)].into(),
            nodes: Vec::new(),
            jobs: BTreeMap::new(),
            pods: BTreeMap::new(),
            lease: None,
            node_log: Log::new(),
            pod_log: Log::new(),
            mirror_log: Log::new(),
            road: Road::Open,
            denies: false,
            wakes: false,
            fails_early: false,
            dying_counts: false,
            origin: origin.to_owned(),
        };
        for (index, gpus) in nodes.iter().enumerate() {
            worker.nodes.push(Node {
                name: format!("{name}-node{index}").into(),
                gpus: *gpus,
                ready: true,
                cordoned: false,
            });
            worker.changed_node(index);
        }
        worker
    }

    pub fn bump(&mut self) -> ResourceVersion {
        self.version += 1;
        ResourceVersion(self.version)
    }

    pub fn uid(&mut self, prefix: &str) -> Arc<str> {
        self.uids += 1;
        format!("{}-{prefix}-{}", self.name, self.uids).into()
    }

    // --- nodes and pods ---

    pub fn changed_node(&mut self, index: usize) {
        self.bump();
        let node = &self.nodes[index];
        let mut allocatable = Amounts::default();
        allocatable.set(GPU.into(), node.gpus);
        let mut capacity = allocatable.clone();
        capacity.set(GPU.into(), node.gpus);
        allocatable.set("pods".into(), 110);
        allocatable.set("cpu".into(), 64_000);
        allocatable.set("memory".into(), 1 << 40);
        let row = NodeRow {
            name: Arc::clone(&node.name),
            unschedulable: node.cordoned,
            ready: node.ready,
            allocatable,
            capacity,
            ..NodeRow::default()
        };
        self.node_log.set(Arc::clone(&node.name), row);
    }

    /// Devices that no pod holds on a node.
    pub fn free(&self, index: usize) -> i64 {
        let used: i64 = self
            .pods
            .values()
            .filter(|pod| pod.node == Some(index) && pod.live())
            .map(|pod| pod.gpus)
            .sum();
        self.nodes[index].gpus - used
    }

    /// Members of `gpus` devices each that fit when nothing else is here.
    pub fn slots(&self, gpus: i64) -> i64 {
        self.nodes
            .iter()
            .map(|node| node.gpus.checked_div(gpus).unwrap_or(110))
            .sum()
    }

    /// Pods of a Job.
    pub fn owned(&self, owner: &str) -> Vec<Arc<str>> {
        self.pods
            .iter()
            .filter(|(_, pod)| pod.owner.as_ref().is_some_and(|(_, uid)| **uid == *owner))
            .map(|(uid, _)| Arc::clone(uid))
            .collect()
    }

    pub fn live_pods(&self, owner: &str) -> usize {
        self.pods
            .values()
            .filter(|pod| pod.live() && pod.owner.as_ref().is_some_and(|(_, uid)| **uid == *owner))
            .count()
    }

    /// A watch of bound pods that are not finished sees what became of one.
    pub fn changed_pod(&mut self, uid: &Arc<str>) {
        self.bump();
        let Some(pod) = self.pods.get(uid) else { return };
        let key = (Arc::clone(&pod.namespace), Arc::clone(&pod.name));
        match pod.node {
            Some(node) if pod.live() => {
                let mut charged = Amounts::default();
                charged.set(GPU.into(), pod.gpus);
                let row = PodRow {
                    namespace: Arc::clone(&pod.namespace),
                    name: Arc::clone(&pod.name),
                    uid: Arc::clone(uid),
                    node: Arc::clone(&self.nodes[node].name),
                    charged,
                    job_uid: pod.job_uid.clone(),
                    owner: pod.owner.as_ref().map(|(_, uid)| Arc::clone(uid)),
                    running: pod.phase == Phase::Running,
                    deleting: pod.deleting,
                };
                self.pod_log.set(key, row);
            }
            Some(_) => self.pod_log.remove(key),
            None => {}
        }
    }

    pub fn remove_pod(&mut self, uid: &Arc<str>) {
        self.bump();
        let Some(pod) = self.pods.remove(uid) else { return };
        if pod.node.is_some() && pod.live() {
            self.pod_log.remove((pod.namespace, pod.name));
        }
    }

    // --- Jobs ---

    /// Writes a change of an object down, for the watch too if it bears our label.
    pub fn changed_job(&mut self, key: &JobKey) {
        let version = self.bump();
        let Some(object) = self.jobs.get_mut(key) else { return };
        object.set_version(version);
        if object.label(names::ORIGIN) == self.origin {
            let view = object.view(key);
            self.mirror_log.set(key.clone(), view);
        }
    }

    /// An object as the API server would store it.
    pub fn draft(&self, mut document: Value) -> Object {
        document["metadata"]["uid"] = json!("");
        if self.wakes {
            document["spec"]["suspend"] = json!(false);
        }
        Object {
            uid: "".into(),
            version: ResourceVersion(0),
            workload: Workload::read(&document),
            document,
            status: Status::default(),
            uncounted_failures: 0,
            syncing: false,
            dirty: false,
        }
    }

    pub fn create(&mut self, key: &JobKey, document: Value) -> Arc<str> {
        let uid = self.uid("job");
        let mut object = self.draft(document);
        object.document["metadata"]["uid"] = json!(&*uid);
        object.uid = Arc::clone(&uid);
        self.jobs.insert(key.clone(), object);
        self.changed_job(key);
        uid
    }

    pub fn remove_job(&mut self, key: &JobKey) -> Option<Object> {
        let object = self.jobs.remove(key)?;
        self.bump();
        if object.label(names::ORIGIN) == self.origin {
            self.mirror_log.remove(key.clone());
        }
        Some(object)
    }
}
