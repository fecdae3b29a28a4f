//! Whether the rim sees all of the manager that the core needs.

use std::collections::BTreeMap;

/// What of the manager is watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// The jobs.
    Jobs,
    /// The workers.
    WorkerClusters,
    /// The priority classes.
    PriorityClasses,
    /// The Secrets of the operator's namespace.
    Secrets,
}

impl Part {
    const ALL: [Self; 4] = [Self::Jobs, Self::WorkerClusters, Self::PriorityClasses, Self::Secrets];

    fn as_str(self) -> &'static str {
        match self {
            Self::Jobs => "multikueuejobs.multikueue.rs",
            Self::WorkerClusters => "workerclusters.multikueue.rs",
            Self::PriorityClasses => "priorityclasses.scheduling.k8s.io",
            Self::Secrets => "secrets of the operator's namespace",
        }
    }
}

/// Whether every watch of the manager has listed, and what keeps those that have not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Readiness {
    parts: BTreeMap<Part, Result<(), String>>,
}

impl Readiness {
    /// None when everything is listed and watched; else one sentence about what is not.
    pub fn blocked(&self) -> Option<String> {
        Part::ALL.iter().find_map(|part| match self.parts.get(part) {
            Some(Ok(())) => None,
            Some(Err(message)) => Some(format!("{} cannot be watched: {message}", part.as_str())),
            None => Some(format!("{} are not listed yet", part.as_str())),
        })
    }

    /// Notes the state of a part; true when that is new.
    pub fn set(&mut self, part: Part, state: Result<(), String>) -> bool {
        if self.parts.get(&part) == Some(&state) {
            return false;
        }
        self.parts.insert(part, state);
        true
    }
}
