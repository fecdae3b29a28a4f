//! Which resources are accelerators, which model a node has, and how many of each are free.

use std::collections::BTreeMap;

use crate::api::worker_cluster::Devices;

/// Accelerators of a worker, for its status.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeviceReport {
    /// By model.
    pub by_model: BTreeMap<String, Devices>,
    /// Free devices of all models together.
    pub free: i64,
    /// The most free devices on one node.
    pub largest_free_block: i64,
}
