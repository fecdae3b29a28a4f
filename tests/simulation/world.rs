//! The world of a simulation: a manager, workers, an operator, users, and an agenda of what happens when.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::jiff::Timestamp;
use multikueue::api::Now;
use multikueue::api::job::Phase;
use multikueue::api::worker_cluster::{KubeconfigSource, Namespaces, SecretRef};
use multikueue::api::{MultiKueueJobStatus, WorkerClusterSpec};
use multikueue::dispatcher::{Config, Effect, Event};
use multikueue::lifecycle::view::JobKey;

use crate::checks::Truth;
use crate::controller::{PodStep, Snapshot};
use crate::manager::Manager;
use crate::network::{Flight, Way};
use crate::operator::Operator;
use crate::plan::Plan;
use crate::rng::Rng;
use crate::trace::Trace;
use crate::worker::Worker;

/// Milliseconds since the world began.
pub type Ms = u64;

pub const SECOND: Ms = 1000;
pub const MINUTE: Ms = 60 * SECOND;
pub const HOUR: Ms = 60 * MINUTE;

/// Time of day when the world begins.
const DAWN: i64 = 1_800_000_000_000;

/// What happens at some time.
#[derive(Debug, Clone)]
pub enum Occurrence {
    /// A process of the operator becomes leader.
    Start,
    /// Its leadership is renewed.
    RenewClaim { generation: u32 },
    /// The time that `next_wakeup` named.
    Wake { generation: u32, token: u64 },
    /// A watch has something to say.
    Watch { generation: u32, channel: u64 },
    /// The rim looks at a connection.
    Link { generation: u32, worker: usize },
    /// An event of a connection that is gone arrives all the same.
    Stray { generation: u32, event: Box<Event> },
    /// A request reaches its server.
    Arrive(u64),
    /// Its answer reaches the operator.
    Answer(u64),
    /// Its connection breaks.
    Break(u64),
    /// Its deadline has come.
    Expire(u64),
    /// The Job controller of a worker looks at an object.
    Sync { worker: usize, key: JobKey, uid: Arc<str> },
    /// It acts on what it saw.
    Act { worker: usize, key: JobKey, saw: Snapshot },
    /// Something happens to a pod.
    Pod {
        worker: usize,
        uid: Arc<str>,
        step: PodStep,
    },
    /// The garbage collector looks at an owner.
    Collect {
        worker: usize,
        key: JobKey,
        owner: Arc<str>,
    },
    /// Users and faults have their turn.
    Mischief,
}

/// How bad the network is, in thousandths, and how slow everything.
#[derive(Debug, Clone, Copy, Default)]
pub struct Weather {
    pub lost_before: u64,
    pub lost_after: u64,
    pub refused: u64,
    pub not_sent: u64,
    pub slow: u64,
    pub early: u64,
    /// Longest delay of a watch event.
    pub watch_lag: Ms,
    /// Longest delay of controllers.
    pub sync_lag: Ms,
    /// Longest time that a stopped pod takes to die.
    pub grace: Ms,
}

impl Weather {
    pub fn calm() -> Self {
        Self {
            watch_lag: 20,
            sync_lag: 100,
            grace: 2 * SECOND,
            ..Self::default()
        }
    }
}

type Blow = Box<dyn FnOnce(&mut World)>;
type Oracle = Box<dyn FnMut(u64, &Effect) -> Option<Way>>;

pub struct World {
    pub rng: Rng,
    pub now: Ms,
    /// What an administrator did to the operator's clock.
    pub wall_skew: i64,
    agenda: BTreeMap<(Ms, u64), Occurrence>,
    sequence: u64,
    pub manager: Manager,
    pub workers: Vec<Worker>,
    pub operator: Option<Operator>,
    /// Number of the last process of the operator.
    pub generation: u32,
    pub flights: BTreeMap<u64, Flight>,
    pub weather: Weather,
    /// Nothing reaches the manager.
    pub manager_away: bool,
    pub claim_length: Ms,
    pub config: Config,
    pub truth: Truth,
    pub trace: Trace,
    /// Requests sent, worker leases apart.
    pub sent: u64,
    /// Writes by job: on the manager and on workers.
    pub writes: BTreeMap<JobKey, (u32, u32)>,
    /// When the last write was sent, worker leases apart.
    pub last_write: Ms,
    /// Done right after the request of that number was sent.
    pub after_sent: Option<(u64, Blow)>,
    /// Decides the way of each request by its number, where it has an opinion.
    pub oracle: Option<Oracle>,
    /// Turns of users and faults that are left.
    pub turns: u32,
}

impl World {
    /// Workers by the devices of their nodes, and calm weather.
    pub fn new(seed: u64, workers: &[&[i64]], trace: Trace) -> Self {
        let config = Config {
            origin: "manager-kube-system/multikueue".into(),
            origin_hash: "0123456789abcdef".into(),
            manager_uid: "manager-kube-system".into(),
            operator_namespace: "multikueue".into(),
            worker_lease: Duration::from_mins(3),
            worker_lease_renew: Duration::from_mins(1),
            request_timeout: Duration::from_secs(10),
            orphan_grace: Duration::from_mins(30),
            sweep_interval: Duration::from_mins(10),
            backfill_reserve_after: Duration::from_mins(10),
        };
        let mut world = Self {
            rng: Rng::new(seed),
            now: 0,
            wall_skew: 0,
            agenda: BTreeMap::new(),
            sequence: 0,
            manager: Manager::new(),
            workers: Vec::new(),
            operator: None,
            generation: 0,
            flights: BTreeMap::new(),
            weather: Weather::calm(),
            manager_away: false,
            claim_length: 3 * MINUTE,
            config,
            truth: Truth::default(),
            trace,
            sent: 0,
            writes: BTreeMap::new(),
            last_write: 0,
            after_sent: None,
            oracle: None,
            turns: 0,
        };
        for (index, nodes) in workers.iter().enumerate() {
            let name = format!("w{index}");
            world.workers.push(Worker::new(&name, &world.config.origin_hash, nodes));
            let labels = [("region".to_owned(), format!("r{}", index % 2))].into();
            let now = world.wall();
            world.manager.create_cluster(&name, labels, cluster_spec(&name), now);
        }
        world.at(0, Occurrence::Start);
        world
    }

    // --- time ---

    /// The true time of day, which the API servers write.
    pub fn wall(&self) -> Timestamp {
        Timestamp::from_millisecond(DAWN + self.now as i64).expect("a time of this century")
    }

    /// The clocks of the operator.
    pub fn clock(&self) -> Now {
        Now {
            mono: self
                .operator
                .as_ref()
                .map_or(Duration::ZERO, |operator| operator.mono(self.now)),
            wall: Timestamp::from_millisecond(DAWN + self.now as i64 + self.wall_skew).expect("a time of this century"),
        }
    }

    pub fn at(&mut self, when: Ms, what: Occurrence) {
        self.sequence += 1;
        self.agenda.insert((when.max(self.now), self.sequence), what);
    }

    pub fn after(&mut self, delay: Ms, what: Occurrence) {
        self.at(self.now + delay, what);
    }

    /// Lets the next thing happen, unless that is later than `until`.
    fn step(&mut self, until: Ms) -> bool {
        let Some(entry) = self.agenda.first_entry() else {
            return false;
        };
        if entry.key().0 > until {
            return false;
        }
        let ((when, _), what) = entry.remove_entry();
        self.now = when;
        self.perform(what);
        self.pump();
        self.kick();
        self.check();
        true
    }

    pub fn run_for(&mut self, span: Ms) {
        let until = self.now + span;
        while self.step(until) {}
        self.now = until;
    }

    /// Runs until `done` holds, at most `limit`.
    pub fn run_until(&mut self, what: &str, limit: Ms, mut done: impl FnMut(&Self) -> bool) {
        let until = self.now + limit;
        while !done(self) {
            if !self.step(until) {
                let jobs: Vec<_> = self
                    .manager
                    .jobs
                    .values()
                    .map(|job| format!("{} {:?} {:?}", job.key, job.status.phase, job.status.assignment))
                    .collect();
                panic!(
                    "within {} s it did not come true that {what}: {jobs:#?}",
                    limit / SECOND
                );
            }
        }
    }

    fn perform(&mut self, what: Occurrence) {
        match what {
            Occurrence::Start => self.start_operator(),
            Occurrence::RenewClaim { generation } if self.leads(generation) => self.renew_claim(),
            Occurrence::Wake { generation, token } if self.leads(generation) => self.wake(token),
            Occurrence::Watch { generation, channel } if self.leads(generation) => self.watch(channel),
            Occurrence::Link { generation, worker } if self.leads(generation) => self.link(worker),
            Occurrence::Stray { generation, event } if self.leads(generation) => self.tell(*event),
            Occurrence::RenewClaim { .. }
            | Occurrence::Wake { .. }
            | Occurrence::Watch { .. }
            | Occurrence::Link { .. }
            | Occurrence::Stray { .. } => {}
            Occurrence::Arrive(id) => self.arrive(id),
            Occurrence::Answer(id) => self.answer(id),
            Occurrence::Break(id) => self.break_off(id),
            Occurrence::Expire(id) => self.expire(id),
            Occurrence::Sync { worker, key, uid } => self.sync(worker, key, &uid),
            Occurrence::Act { worker, key, saw } => self.act(worker, &key, &saw),
            Occurrence::Pod { worker, uid, step } => self.pod_step(worker, &uid, step),
            Occurrence::Collect { worker, key, owner } => self.collect(worker, key, owner),
            Occurrence::Mischief => self.mischief(),
        }
    }

    fn leads(&self, generation: u32) -> bool {
        self.operator
            .as_ref()
            .is_some_and(|operator| operator.generation == generation)
    }

    /// A delay of up to `longest`, mostly short.
    pub fn lag(&mut self, longest: Ms) -> Ms {
        match self.rng.below(10) {
            0 => self.rng.between(1, longest.max(1)),
            1..=3 => self.rng.between(1, (longest / 10).max(1)),
            _ => self.rng.between(1, (longest / 100).max(1)),
        }
    }

    // --- what users do and see ---

    pub fn create(&mut self, plan: &Plan) -> JobKey {
        let key = JobKey::new("team", plan.name);
        let now = self.wall();
        let uid = self.manager.create_job(&key, plan.spec(), Vec::new(), now);
        self.truth.job_created(&uid, &self.manager.jobs[&key]);
        self.trace
            .note(self.now, || format!("user creates {key} ({uid}): {plan:?}"));
        key
    }

    pub fn delete(&mut self, key: &JobKey) {
        let now = self.wall();
        self.trace.note(self.now, || format!("user deletes {key}"));
        self.manager.delete_job(key, now);
    }

    pub fn suspend(&mut self, key: &JobKey, suspend: bool) {
        self.trace
            .note(self.now, || format!("user sets suspend of {key} to {suspend}"));
        self.manager.edit_job(key, |spec| spec.suspend = suspend);
    }

    /// Gone, or its status.
    pub fn status(&self, key: &JobKey) -> Option<&MultiKueueJobStatus> {
        self.manager.jobs.get(key).map(|job| &job.status)
    }

    pub fn is(&self, key: &JobKey, phase: Phase) -> bool {
        self.status(key).is_some_and(|status| status.phase == phase)
    }

    /// Writes for a job on the manager and on workers.
    pub fn writes_of(&self, key: &JobKey) -> (u32, u32) {
        self.writes.get(key).copied().unwrap_or_default()
    }

    /// Number of the worker that a job is assigned to.
    pub fn place(&self, key: &JobKey) -> Option<usize> {
        let assignment = self.status(key)?.assignment.as_ref()?;
        self.workers
            .iter()
            .position(|worker| *worker.name == *assignment.cluster)
    }
}

pub fn cluster_spec(name: &str) -> WorkerClusterSpec {
    WorkerClusterSpec {
        kubeconfig: KubeconfigSource {
            secret_ref: SecretRef {
                name: name.into(),
                key: "kubeconfig".into(),
            },
        },
        taints: Vec::new(),
        cordoned: false,
        namespaces: Namespaces::default(),
        force_detach: false,
    }
}
