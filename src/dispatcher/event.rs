//! What the rim tells the core.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use crate::capacity::{NodeRow, PodRow, RuntimeClassRow, Watched};
use crate::lifecycle::view::{JobKey, JobView, LeaseView, MirrorView, WorkerView};

use super::effect::{EffectId, Target};

/// What the rim tells the core.
#[derive(Debug, Clone)]
pub enum Event {
    /// Leadership was acquired or renewed. Nothing is sent without an unexpired claim.
    Claim(Claim),
    /// Leadership is over.
    ClaimLost,
    /// An executor can have this many requests in flight. The core counts what it handed out and what came back itself: a count of free slots would be
    /// old by the time it is read. Sent at the start and when the limit changes; 0 pauses the executor.
    Slots {
        /// The executor.
        target: Target,
        /// How many requests may be in flight at once.
        limit: usize,
    },
    /// A job as a watch or a list of the manager shows it.
    Job(Box<JobView>),
    /// A watch of the manager says that a job is gone. It is forgotten; what its mirrors deserve is decided after a GET.
    JobDeleted {
        /// Its key.
        key: JobKey,
        /// Its uid: a job of that name may exist again by now.
        uid: Arc<str>,
    },
    /// A list of the jobs of the manager is complete; these are all that it held.
    JobsListed(BTreeSet<JobKey>),
    /// An object of our kind that could not be decoded.
    JobUnreadable {
        /// Its key.
        key: JobKey,
        /// What is wrong with it.
        message: String,
    },
    /// A `WorkerCluster` as a watch or a list shows it.
    WorkerCluster(Box<WorkerView>),
    /// A watch says that a `WorkerCluster` is gone.
    WorkerClusterDeleted(Arc<str>),
    /// A list of the `WorkerCluster` objects is complete; these are all that it held.
    WorkerClustersListed(BTreeSet<Arc<str>>),
    /// All priority classes of the manager: value by name, and the value of the global default.
    PriorityClasses {
        /// Value by name.
        values: BTreeMap<String, i32>,
        /// Value for jobs that name none.
        default: i32,
    },
    /// Something of one worker.
    Worker {
        /// Name of the `WorkerCluster`.
        name: Arc<str>,
        /// The connection it belongs to; what comes from an older one is dropped.
        epoch: u64,
        /// What.
        event: WorkerEvent,
    },
    /// How an effect ended.
    Outcome {
        /// The effect.
        id: EffectId,
        /// How.
        outcome: Outcome,
    },
}

/// Leadership with an expiry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// A random id, made at the rim at every acquisition.
    pub id: Arc<str>,
    /// `leaseTransitions` of the leader lease.
    pub transitions: i32,
    /// Monotonic time at which the request was *sent* whose answer acquired or renewed it. Whatever the manager answered before may be of a time when
    /// another led; proofs that rest on its answers ask for a renewal sent later.
    pub renewed: Duration,
    /// Monotonic time at which it ends unless renewed.
    pub expires: Duration,
}

/// Something of one worker.
#[derive(Debug, Clone)]
pub enum WorkerEvent {
    /// The state of the connection.
    Link(LinkEvent),
    /// Rights and kinds, as `SelfSubjectAccessReview` and discovery say; sent after each connect and from time to time.
    Access(Access),
    /// A node.
    Node(NodeRow),
    /// A node is gone.
    NodeDeleted(Arc<str>),
    /// All nodes.
    NodesListed(Vec<NodeRow>),
    /// A bound, live pod.
    Pod(PodRow),
    /// A pod is finished or gone (namespace, name).
    PodDeleted(Arc<str>, Arc<str>),
    /// All bound, live pods.
    PodsListed(Vec<PodRow>),
    /// All runtime classes.
    RuntimeClasses(BTreeMap<Arc<str>, RuntimeClassRow>),
    /// A watch that the counting rests on is not running: nodes or pods. Capacity is unknown until it is listed again.
    CapacityLost {
        /// Which.
        watched: Watched,
        /// Why, in a sentence.
        message: String,
    },
    /// A mirror of our origin as a watch or a list shows it.
    Mirror(Box<MirrorView>),
    /// A watch says that a mirror is gone. A hint.
    MirrorDeleted {
        /// Namespace and name.
        key: JobKey,
        /// Its uid: another object may have the name by now.
        uid: Arc<str>,
    },
    /// A list of the mirrors is complete; these are all that it held.
    MirrorsListed(BTreeSet<JobKey>),
    /// The watch of the mirrors is not running. What they do is unknown until they are listed again.
    MirrorsLost {
        /// Why, in a sentence.
        message: String,
    },
}

/// The state of the connection to a worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LinkEvent {
    /// A first request was answered; `clusterUID` was read on this connection before any list is believed.
    Up {
        /// Uid of the worker's `kube-system`.
        cluster_uid: Arc<str>,
        /// Kubernetes version.
        version: String,
    },
    /// The worker cannot be reached or refuses us. Reason is the condition's, from a closed set (see `clusters::reason`).
    Down {
        /// Reason of the condition `Connected`.
        reason: String,
        /// One sentence.
        message: String,
    },
}

/// What we may do on a worker.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Access {
    /// Template kinds that the worker serves and that we may create, as `group/version/Kind`.
    pub kinds: BTreeSet<String>,
    /// Rights without which nothing can be sent there, as `verb resource`.
    pub missing: Vec<String>,
    /// Rights without which one capability is lost, as `verb resource`.
    pub degraded: Vec<String>,
}

/// How an effect ended.
#[derive(Debug, Clone)]
pub enum Outcome {
    /// The API server answered with success.
    Done(Answer),
    /// The API server answered that it did not do it.
    Refused(Refusal),
    /// No answer within the deadline, or a broken connection: it may have happened, or may still happen until the deadline.
    Unknown {
        /// One sentence.
        message: String,
    },
    /// It was never sent: the claim had run out, or the executor was gone.
    NotSent,
}

/// What a successful request returned.
#[derive(Debug, Clone)]
pub enum Answer {
    /// A job.
    Job(Box<JobView>),
    /// A `WorkerCluster`.
    WorkerCluster(Box<WorkerView>),
    /// A mirror, or a stranger's object of its name.
    Mirror(Box<MirrorView>),
    /// Number of live pods that the list held.
    Pods(usize),
    /// The worker lease.
    Lease(LeaseView),
    /// Nothing that matters: an event, a namespace, a delete that the API server accepted.
    Accepted,
}

/// A request that the API server did not do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// What a caller does about it.
    pub kind: RefusalKind,
    /// HTTP status.
    pub code: u16,
    /// `reason` of the Status.
    pub reason: String,
    /// `message` of the Status, at most 1 KiB.
    pub message: String,
    /// `details.retryAfterSeconds` or the header.
    pub retry_after: Option<Duration>,
}

/// What a caller does about a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RefusalKind {
    /// A Status `NotFound` whose details name the group, kind and name that were asked for: the object is not there.
    ObjectNotFound,
    /// A Status `NotFound` that names a namespace: it is missing.
    NamespaceNotFound,
    /// Any other 404: a missing kind, or something in between. Proves nothing.
    OtherNotFound,
    /// 409 `AlreadyExists`.
    AlreadyExists,
    /// 409 otherwise, 412, 422 of a JSON patch test: what we knew is old.
    Conflict,
    /// 422, 400, 413 otherwise: the object is not acceptable.
    Invalid,
    /// 401, 403.
    Forbidden,
    /// 429, 503 with an intact answer: try again later.
    Busy,
    /// Anything else that the API server answered itself.
    Server,
}
