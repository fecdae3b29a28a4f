//! Our kinds, their conditions, and every name that appears in a cluster. Knows nothing of the other modules.

pub mod conditions;
pub mod crds;
pub mod identity;
pub mod job;
mod job_status;
pub mod names;
pub mod raw;
mod reasons;
mod rules;
mod schema;
pub mod time;
pub mod worker_cluster;

pub use identity::{JobKey, MirrorIdentity, ResourceVersion};
pub use job::{MultiKueueJob, MultiKueueJobSpec, MultiKueueJobStatus};
pub use raw::RawJson;
pub use time::Now;
pub use worker_cluster::{WorkerCluster, WorkerClusterSpec, WorkerClusterStatus};

/// The API group of our kinds.
pub const GROUP: &str = "multikueue.rs";
/// The only served version.
pub const VERSION: &str = "v1alpha1";
