//! The rim: everything that talks to API servers. Watches become events, effects become requests, and nothing about jobs is decided here.
//!
//! ```text
//!  Rim ── Supervisor ┬─ watches of the manager: jobs, WorkerClusters, PriorityClasses, Secrets   (feed, manager_feeds)
//!                    ├─ executor of the manager                                                 (executor, requests, lease, answers)
//!                    └─ per WorkerCluster ┬─ link: vet → client → uid and version → Up → watches (kubeconfig, client, link, worker_feeds)
//!                                         └─ executor
//! ```
//!
//! * No watch waits for the core, and no change is lost: see [`feed`].
//! * An executor's request has one deadline, one outcome, one log line and one observation: see [`executor`] and [`exchange`].
//! * Only a failed probe says that a worker is down: see [`link`].
//! * What a refusal means is read off the fields of its Status: see [`answers`].

pub mod access;
pub mod answers;
pub mod backoff;
pub mod client;
pub mod clock;
pub mod exchange;
pub mod executor;
pub mod feed;
pub mod identity;
pub mod interner;
pub mod kubeconfig;
pub mod lease;
pub mod link;
pub mod manager_feeds;
pub mod mirror;
pub mod notice;
pub mod observe;
pub mod readiness;
pub mod reason;
pub mod requests;
pub mod rim;
pub mod rows;
pub mod slim;
pub mod views;
pub mod worker_feeds;
pub mod x509;

pub use clock::Clock;
pub use observe::{Observe, Observer};
pub use readiness::Readiness;
pub use rim::{Rim, RimConfig};
