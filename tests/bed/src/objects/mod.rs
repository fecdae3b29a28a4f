//! Builders of the objects that tests put on a control plane, and ways to put them there.

mod apply;
mod job;
mod node;
mod pod;

pub use self::apply::{apply_yaml, create_namespace};
pub use self::job::{JobBuilder, job, wait_for_job};
pub use self::node::{NodeBuilder, create_nodes, gpu_node, node};
pub use self::pod::{PodBuilder, pod};
