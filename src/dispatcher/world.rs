//! What the core knows: jobs, workers, and the objects of jobs' names on workers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::jiff::Timestamp;

use crate::api::job::{Phase, Placement, Waiting};
use crate::api::names::FINALIZER;
use crate::api::worker_cluster::Debt;
use crate::api::{MirrorIdentity, RawJson};
use crate::lifecycle::absence::Absence;
use crate::lifecycle::view::Plan;
use crate::lifecycle::view::{JobKey, JobView, MirrorView, ResourceVersion, WorkerView};
use crate::resources::PodSet;
use crate::workload::{MirrorInput, TemplateKind};

use super::event::Access;
use super::traffic::Side;

/// A template, understood.
#[derive(Debug, Clone)]
pub(super) struct Template {
    pub kind: TemplateKind,
    pub pod_sets: Arc<[PodSet]>,
}

/// Why a worker is not used for a job for a while.
#[derive(Debug, Clone)]
pub(super) struct Shunned {
    pub reason: &'static str,
    pub message: String,
    /// When a dry run may ask again, monotonic.
    pub probe_at: Duration,
    pub failures: u32,
    /// A dry run said that it would take the job: it may be tried, and if it refuses again the wait goes on where it was.
    pub forgiven: bool,
}

/// A job of the manager.
#[derive(Debug)]
pub(super) struct Job {
    pub view: JobView,
    pub template: Result<Template, String>,
    /// The placement as the scheduler shares it.
    pub placement: Arc<Placement>,
    pub side: Side,
    pub plan: Option<Plan>,
    /// Workers that refused this job, by clusterUID.
    pub shunned: BTreeMap<Arc<str>, Shunned>,
    /// What the scheduler says to write about why it waits.
    pub waiting: Option<Waiting>,
    /// Not before this monotonic time is a change of the raw status alone written.
    pub follow_at: Duration,
    /// The list of debts took this job's mirror, or can't.
    pub owed: bool,
    /// The worker whose ledger holds the job's promise, by name of the `WorkerCluster`.
    pub promised_on: Option<Arc<str>>,
    /// The worker that the job's assignment names, by name of the `WorkerCluster` in use for it.
    pub bound_to: Option<Arc<str>>,
}

impl Job {
    pub fn new(view: JobView) -> Self {
        let template = Template::read(&view.spec.template);
        let placement = Arc::new(view.spec.placement.clone());
        Self {
            view,
            template,
            placement,
            side: Side::default(),
            plan: None,
            shunned: BTreeMap::new(),
            waiting: None,
            follow_at: Duration::ZERO,
            owed: false,
            promised_on: None,
            bound_to: None,
        }
    }

    /// Takes a newer view of the same job and returns the old one.
    pub fn replace_view(&mut self, view: JobView) -> JobView {
        if view.spec.template != self.view.spec.template {
            self.template = Template::read(&view.spec.template);
            // What a worker refused was another object.
            self.shunned.clear();
        }
        if let Some(taken) = view.status.assignment.as_ref().filter(|a| a.mirror_uid.is_some()) {
            self.shunned.remove(&*taken.cluster_uid);
        }
        if view.spec.placement != *self.placement {
            self.placement = Arc::new(view.spec.placement.clone());
        }
        std::mem::replace(&mut self.view, view)
    }

    /// Waits for a worker: not placed, not suspended, not ended, not on its way out.
    pub fn is_queued(&self) -> bool {
        let (spec, status) = (&self.view.spec, &self.view.status);
        let ended = status.phase.is_terminal() || status.phase == Phase::Suspended;
        self.view.deleted.is_none() && !spec.suspend && !ended && status.assignment.is_none()
    }
}

impl Template {
    fn read(raw: &RawJson) -> Result<Self, String> {
        let kind = TemplateKind::of(raw).map_err(|e| e.to_string())?;
        let pod_sets = kind.workload().pod_sets(raw).map_err(|e| e.to_string())?;
        // A mirror made for nothing: a template that makes none must say so here and not when a worker is waiting for it.
        let trial = MirrorInput {
            template: raw,
            key: &JobKey::new("namespace", "name"),
            identity: &MirrorIdentity::default(),
            origin_name: "",
            nonce: "",
        };
        kind.workload().mirror(&trial).map_err(|e| e.to_string())?;
        Ok(Self {
            kind,
            pod_sets: pod_sets.into(),
        })
    }
}

/// An object of a job's name on a worker, and what is under way with it.
#[derive(Debug, Default)]
pub(super) struct Mirror {
    pub view: Option<MirrorView>,
    /// The uid that all else here is about.
    pub uid: Option<Arc<str>>,
    /// When the request was sent, or the event was taken, that the view is from.
    pub read_at: Duration,
    /// When a watch said that it is gone, or the GET was sent that found nothing.
    pub vanished: Duration,
    pub side: Side,
    pub absence: Absence,
    /// The worker refused the mirror of the attempt of this number.
    pub refused: Option<(i64, String)>,
    /// The namespace is missing, and may be created.
    pub needs_namespace: bool,
    /// Members that were Running once, by the uids of their mirror and their own: pods of an earlier attempt may be shown late, and start nothing.
    pub ran: BTreeSet<(Arc<str>, Arc<str>)>,
    /// The GET of the job that this mirror names.
    pub owner: OwnerProof,
    /// Since when it is an orphan.
    pub orphan_since: Option<Duration>,
}

impl Mirror {
    /// Takes a view; of another object than before, what was known of that one is forgotten.
    pub fn see(&mut self, view: MirrorView, read_at: Duration) {
        if self.uid.as_ref().is_some_and(|known| *known != view.uid) {
            self.ran.retain(|(mirror, _)| *mirror == view.uid);
            self.owner = OwnerProof::Unasked;
            self.orphan_since = None;
        }
        self.uid = Some(view.uid.clone());
        self.view = Some(view);
        self.read_at = read_at;
        self.absence = Absence::Unproven;
    }

    /// It is not there as of `at`, as far as somebody says.
    pub fn vanish(&mut self, at: Duration) {
        self.view = None;
        self.vanished = self.vanished.max(at);
    }

    /// True for an answer that was asked for before the object was said to be gone.
    pub fn outlived(&self, view: &MirrorView, read_at: Duration) -> bool {
        self.view.is_none() && self.uid.as_ref() == Some(&view.uid) && read_at <= self.vanished
    }

    /// The pods themselves showed that every member has been Running once.
    pub fn pods_started(&self) -> bool {
        let gang = self.view.as_ref().map_or(0, |v| v.state.gang);
        let own = self.ran.iter().filter(|(mirror, _)| self.uid.as_ref() == Some(mirror));
        gang > 0 && i64::try_from(own.count()).is_ok_and(|ran| ran >= gang)
    }

    /// Nothing is there and nothing is under way.
    pub fn is_idle(&self) -> bool {
        self.view.is_none() && self.side.inflight.is_none() && !self.side.verify
    }
}

/// How far the absence of a stray's job is proven.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum OwnerProof {
    /// Nothing asked.
    #[default]
    Unasked,
    /// A GET sent at this time answered that the job is not there.
    NotFound(Duration),
}

/// The connection to a worker.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) enum Link {
    /// Nothing heard yet.
    #[default]
    Connecting,
    /// Answers.
    Up { cluster_uid: Arc<str>, version: String },
    /// Does not.
    Down { reason: String, message: String },
}

/// Our lease on a worker.
#[derive(Debug, Clone, Default)]
pub(super) struct WorkerLease {
    /// The version to replace, once read.
    pub version: Option<ResourceVersion>,
    pub side: Side,
    /// When the first renewal under this claim and connection was sent.
    pub held_since: Option<Duration>,
    /// When the last renewal that succeeded was sent.
    pub renewed: Option<Duration>,
    /// A proof waits for a renewal.
    pub wanted: bool,
    /// The version of a later term's lease, and since when it has stood still, monotonic.
    pub later_term: Option<(ResourceVersion, Duration)>,
    /// Why the lease can't be ours.
    pub obstacle: Option<(&'static str, String)>,
    pub needs_namespace: bool,
}

impl WorkerLease {
    /// True when a lease of a later term has not been renewed for `patience`, by our own observation.
    pub fn stands_still(&mut self, version: ResourceVersion, now: Duration, patience: Duration) -> bool {
        match self.later_term {
            Some((seen, since)) if seen == version => now >= since + patience,
            _ => {
                self.later_term = Some((version, now));
                false
            }
        }
    }

    /// When it expires, monotonic.
    pub fn expires(&self, duration: Duration) -> Option<Duration> {
        self.held_since?;
        self.renewed.map(|sent| sent + duration)
    }
}

/// A worker.
#[derive(Debug)]
pub(super) struct Worker {
    pub view: WorkerView,
    pub side: Side,
    pub epoch: u64,
    pub link: Link,
    pub access: Option<Access>,
    pub mirrors_listed: bool,
    pub lease: WorkerLease,
    /// Since when it has not answered, time of day.
    pub lost_since: Option<Timestamp>,
    pub mirrors: BTreeMap<JobKey, Mirror>,
    /// Another `WorkerCluster`, which is older, has the same cluster.
    pub duplicate_of: Option<Arc<str>>,
    /// Kinds that this worker could not keep asleep.
    pub sleepless: BTreeSet<TemplateKind>,
    pub sweep_at: Duration,
    /// Not before this monotonic time are numbers alone written to its status.
    pub report_at: Duration,
    /// Debts that its status must list.
    pub debts: Vec<Debt>,
    /// Jobs bound to it, by phase reached: promised and running.
    pub bound: BTreeSet<JobKey>,
}

impl Worker {
    pub fn new(view: WorkerView) -> Self {
        let (lost_since, debts) = (view.status.lost_since.as_ref().map(|t| t.0), view.status.debts.clone());
        Self {
            view,
            side: Side::default(),
            epoch: 0,
            link: Link::default(),
            access: None,
            mirrors_listed: false,
            lease: WorkerLease::default(),
            lost_since,
            mirrors: BTreeMap::new(),
            duplicate_of: None,
            sleepless: BTreeSet::new(),
            sweep_at: Duration::ZERO,
            report_at: Duration::ZERO,
            debts,
            bound: BTreeSet::new(),
        }
    }

    /// The debts of a newer view of its object. A leader writes them, and takes on only those that another leader has written meanwhile; whoever does not
    /// lead follows.
    pub fn take_debts(&mut self, written: &[Debt], leads: bool) {
        if !leads {
            self.debts = written.to_vec();
            return;
        }
        for debt in written {
            let known = |d: &Debt| d.job_uid == debt.job_uid;
            if !self.view.status.debts.iter().any(known) && !self.debts.iter().any(known) {
                self.debts.push(debt.clone());
            }
        }
    }

    /// Events of its connection are about the cluster that its jobs are bound to.
    pub fn is_heard(&self) -> bool {
        match (self.linked_uid(), self.pinned_uid()) {
            (Some(linked), Some(pinned)) => **linked == *pinned,
            _ => true,
        }
    }

    /// What was known by the connection is not known any more.
    pub fn disconnect(&mut self) {
        let side = std::mem::take(&mut self.lease.side);
        self.lease = WorkerLease {
            side,
            ..WorkerLease::default()
        };
        self.access = None;
        self.mirrors_listed = false;
        for mirror in self.mirrors.values_mut() {
            mirror.absence = Absence::Unproven;
        }
    }

    /// The uid of the cluster behind the connection.
    pub fn linked_uid(&self) -> Option<&Arc<str>> {
        match &self.link {
            Link::Up { cluster_uid, .. } => Some(cluster_uid),
            _ => None,
        }
    }

    /// The uid that jobs bind to: pinned at first contact.
    pub fn pinned_uid(&self) -> Option<&str> {
        self.view.status.cluster_uid.as_deref()
    }

    /// Connected to the cluster that was pinned, and the only one in use with it.
    pub fn is_itself(&self) -> bool {
        self.duplicate_of.is_none() && self.linked_uid().is_some_and(|uid| Some(&**uid) == self.pinned_uid())
    }

    /// It carries our finalizer.
    pub fn is_held(&self) -> bool {
        self.view.finalizers.iter().any(|f| f == FINALIZER)
    }

    /// Its mirrors can be believed.
    pub fn readable(&self) -> bool {
        self.is_itself() && self.mirrors_listed
    }
}
