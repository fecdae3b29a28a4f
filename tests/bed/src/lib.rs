//! Real Kubernetes control planes on one machine, for tests, benches and the demo.
//!
//! There is no fake API server in between and no container runtime: etcd, `kube-apiserver`, `kube-controller-manager` and
//! `kube-scheduler` are built from their sources ([`Program`]) and started as child processes that die with this one
//! ([`Process`]). KWOK plays the nodes and their pods ([`kwok`]); Toxiproxy breaks connections ([`Link`]).
//!
//! ```text
//! Bed ── etcd ◄─┬─ ControlPlane "manager": API server, controller manager
//!     │         ├─ ControlPlane "eu":      ... and scheduler, KWOK
//!     │         └─ ControlPlane "us"            ▲
//!     └─ Toxiproxy ── Link ─────────────────────┘  Kubeconfig::via(&link)
//! ```
//!
//! ```no_run
//! # async fn test() -> Result<(), Box<dyn std::error::Error>> {
//! use std::time::Duration;
//!
//! let bed = bed::Bed::start(bed::BedOptions::new().worker("eu")).await?;
//! let eu = bed.control_plane("eu")?;
//! let client = eu.client().await?;
//! bed::gpu_node("n1").gpus(8).create(&client).await?;
//! bed::job("train").gpus(8).run_seconds(1).create(&client).await?;
//! bed::wait_for_job(&client, "default", "train", "Complete", Duration::from_secs(20)).await?;
//! # Ok(()) }
//! ```
//!
//! Everything listens on 127.0.0.1 only. A bed costs some 5 seconds and, with a manager and two workers, 1.5 GB: tests of
//! one binary share one where they can ([`Shared`]), each in namespaces and with nodes of its own.

mod control_plane;
mod environment;
mod error;
mod etcd;
mod folder;
mod http1;
mod kubeconfig;
pub mod kwok;
mod link;
mod objects;
mod pki;
mod ports;
mod process;
mod programs;
mod tools;
mod wait;

pub use control_plane::{ControlPlane, ControlPlaneOptions};
pub use environment::{Bed, BedOptions, Shared};
pub use error::{Error, Result};
pub use kubeconfig::Kubeconfig;
pub use link::Link;
pub use objects::{
    JobBuilder, NodeBuilder, PodBuilder, apply_yaml, create_namespace, create_nodes, gpu_node, job, node, pod,
    wait_for_job,
};
pub use process::Process;
pub use programs::Program;
pub use tools::Output;
pub use wait::{NotYet, eventually, steadily};
