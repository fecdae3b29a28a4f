//! What a control plane consists of.

/// Which programs a control plane has, and how they run.
#[derive(Clone, Debug)]
pub struct ControlPlaneOptions {
    pub(super) controller_manager: bool,
    pub(super) scheduler: bool,
    pub(super) kwok: bool,
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
            controller_manager: false,
            scheduler: false,
            kwok: false,
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
        Self {
            controller_manager,
            ..self
        }
    }

    /// Whether there is a scheduler.
    #[must_use]
    pub fn scheduler(self, scheduler: bool) -> Self {
        Self { scheduler, ..self }
    }

    /// Whether KWOK plays nodes.
    #[must_use]
    pub fn kwok(self, kwok: bool) -> Self {
        Self { kwok, ..self }
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

    pub(super) fn needs_service_accounts(&self) -> bool {
        self.service_accounts.unwrap_or(self.controller_manager)
    }
}

impl Default for ControlPlaneOptions {
    fn default() -> Self {
        Self::worker()
    }
}
