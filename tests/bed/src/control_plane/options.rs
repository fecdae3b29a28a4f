//! What a control plane consists of.

use std::collections::BTreeSet;

use crate::programs::Program;

/// Which programs a control plane has, and how they run.
#[derive(Clone, Debug)]
pub struct ControlPlaneOptions {
    programs: BTreeSet<Program>,
    pub(super) service_accounts: Option<bool>,
    pub(super) audit: bool,
    pub(super) api_server_args: Vec<String>,
    pub(super) controller_manager_args: Vec<String>,
    pub(super) scheduler_args: Vec<String>,
}

impl ControlPlaneOptions {
    /// An API server alone (280 MB). Namespaces are not emptied when they are deleted, and Jobs stay as they are.
    pub fn bare() -> Self {
        Self {
            programs: BTreeSet::new(),
            service_accounts: None,
            audit: false,
            api_server_args: Vec::new(),
            controller_manager_args: Vec::new(),
            scheduler_args: Vec::new(),
        }
    }

    /// API server and controller manager (400 MB): no pod runs there.
    pub fn manager() -> Self {
        Self::bare().controller_manager(true)
    }

    /// Everything (510 MB): Jobs run to completion on nodes that KWOK plays.
    pub fn worker() -> Self {
        Self::manager().scheduler(true).kwok(true)
    }

    /// Whether there is a controller manager.
    #[must_use]
    pub fn controller_manager(self, controller_manager: bool) -> Self {
        self.program(Program::ControllerManager, controller_manager)
    }

    /// Whether there is a scheduler.
    #[must_use]
    pub fn scheduler(self, scheduler: bool) -> Self {
        self.program(Program::Scheduler, scheduler)
    }

    /// Whether KWOK plays nodes.
    #[must_use]
    pub fn kwok(self, kwok: bool) -> Self {
        self.program(Program::Kwok, kwok)
    }

    /// Whether a pod needs its service account to exist (the admission plugin `ServiceAccount`). By default: if there is a
    /// controller manager, which makes the account `default` in every namespace.
    #[must_use]
    pub fn service_accounts(self, service_accounts: bool) -> Self {
        Self {
            service_accounts: Some(service_accounts),
            ..self
        }
    }

    /// Whether every request is written to an audit log (level `Metadata`).
    #[must_use]
    pub fn audit(self, audit: bool) -> Self {
        Self { audit, ..self }
    }

    /// More arguments for the API server, such as `--feature-gates=X=true`; the last of two equal flags counts.
    #[must_use]
    pub fn api_server_args<S: Into<String>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.api_server_args.extend(args.into_iter().map(Into::into));
        self
    }

    /// More arguments for the controller manager.
    #[must_use]
    pub fn controller_manager_args<S: Into<String>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.controller_manager_args.extend(args.into_iter().map(Into::into));
        self
    }

    /// More arguments for the scheduler.
    #[must_use]
    pub fn scheduler_args<S: Into<String>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.scheduler_args.extend(args.into_iter().map(Into::into));
        self
    }

    fn program(mut self, program: Program, wanted: bool) -> Self {
        if wanted {
            self.programs.insert(program);
        } else {
            self.programs.remove(&program);
        }
        self
    }

    pub(super) fn has(&self, program: Program) -> bool {
        self.programs.contains(&program)
    }

    pub(super) fn needs_service_accounts(&self) -> bool {
        self.service_accounts
            .unwrap_or_else(|| self.has(Program::ControllerManager))
    }
}

impl Default for ControlPlaneOptions {
    fn default() -> Self {
        Self::worker()
    }
}
