//! Our kinds, their conditions, and every name that appears in a cluster. Knows nothing of the other modules.

pub mod job;
pub mod names;
pub mod raw;
pub mod time;
pub mod worker_cluster;

pub use job::{MultiKueueJob, MultiKueueJobSpec, MultiKueueJobStatus};
pub use raw::RawJson;
pub use time::Now;
pub use worker_cluster::{WorkerCluster, WorkerClusterSpec, WorkerClusterStatus};

/// The API group of our kinds.
pub const GROUP: &str = "multikueue.rs";
/// The only served version.
pub const VERSION: &str = "v1alpha1";
