//! What is known of each template kind: its pod sets, what to strip for the mirror, how it sleeps, how to read its status.

pub mod state;

pub use state::{Terminal, WorkloadState};

use std::fmt;

/// The template kinds that the operator knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TemplateKind {
    /// `batch/v1` Job.
    Job,
}

impl TemplateKind {
    /// `group/version/Kind`, as in `WorkerCluster.status.kinds`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Job => "batch/v1/Job",
        }
    }
}

impl fmt::Display for TemplateKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
