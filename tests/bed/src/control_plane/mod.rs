//! One Kubernetes control plane: an API server and what works with it.

mod access;
mod options;
mod start;

use std::path::{Path, PathBuf};
use std::time::Duration;

use k8s_openapi::api::core::v1::ServiceAccount;
use kube::Api;

pub use self::options::ControlPlaneOptions;
use crate::error::{Error, Result};
use crate::kubeconfig::Kubeconfig;
use crate::pki::Authority;
use crate::process::Process;
use crate::wait;

const READY_TIMEOUT: Duration = Duration::from_secs(90);

/// A control plane. It has no ties to a runtime: several tests may use it, each with clients of its own.
#[derive(Debug)]
pub struct ControlPlane {
    name: String,
    folder: PathBuf,
    port: u16,
    options: ControlPlaneOptions,
    authority: Authority,
    admin: Kubeconfig,
    api_server: Process,
    controller_manager: Option<Process>,
    scheduler: Option<Process>,
    kwok: Option<Process>,
}

impl ControlPlane {
    /// Its name in the bed.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Port of its API server on 127.0.0.1. It stays the same over a stop and a start.
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// URL of its API server.
    pub fn server(&self) -> String {
        format!("https://127.0.0.1:{}", self.port)
    }

    /// Its folder: certificates, kubeconfigs, logs.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The audit log, if it was asked for: one JSON event a line.
    pub fn audit_log(&self) -> Result<PathBuf> {
        if self.options.audit {
            Ok(self.folder.join("audit.log"))
        } else {
            Err(self.lacks("audit log"))
        }
    }

    /// The API server.
    pub const fn api_server(&self) -> &Process {
        &self.api_server
    }

    /// The controller manager.
    pub fn controller_manager(&self) -> Result<&Process> {
        self.controller_manager
            .as_ref()
            .ok_or_else(|| self.lacks("kube-controller-manager"))
    }

    /// The scheduler.
    pub fn scheduler(&self) -> Result<&Process> {
        self.scheduler.as_ref().ok_or_else(|| self.lacks("kube-scheduler"))
    }

    /// KWOK. Without it running, nodes fall silent and pods stay as they are.
    pub fn kwok(&self) -> Result<&Process> {
        self.kwok.as_ref().ok_or_else(|| self.lacks("kwok"))
    }

    fn lacks(&self, program: &'static str) -> Error {
        Error::NotConfigured {
            control_plane: self.name.clone(),
            program,
        }
    }

    /// Starts a stopped API server on its old port and waits until it is ready.
    pub async fn start_api_server(&self) -> Result<()> {
        self.api_server.start()?;
        self.ready().await
    }

    /// Waits until the API server is ready, as `/readyz` says.
    pub async fn ready(&self) -> Result<()> {
        let client = self.client().await?;
        let client = &client;
        wait::until_ready(&self.api_server, READY_TIMEOUT, || async move {
            client.request_text(get("/readyz")).await?;
            Ok(())
        })
        .await
    }

    /// Waits until pods can be made in the namespace `default`, where a controller manager first has to make an account.
    async fn default_account(&self) -> Result<()> {
        let Some(controller_manager) = &self.controller_manager else {
            return Ok(());
        };
        let accounts = &Api::<ServiceAccount>::namespaced(self.client().await?, "default");
        wait::until_ready(controller_manager, READY_TIMEOUT, || async move {
            accounts.get("default").await?;
            Ok(())
        })
        .await
    }

    /// The API server's metrics, in Prometheus text format.
    pub async fn metrics(&self) -> Result<String> {
        let answer = self.client().await?.request_text(get("/metrics")).await;
        answer.map_err(Error::api(format!("read the metrics of {}", self.name)))
    }

    /// All its programs.
    pub(crate) fn processes(&self) -> impl Iterator<Item = &Process> {
        let others = [&self.kwok, &self.scheduler, &self.controller_manager];
        others.into_iter().flatten().chain([&self.api_server])
    }
}

fn get(path: &'static str) -> http::Request<Vec<u8>> {
    let mut request = http::Request::new(Vec::new());
    *request.uri_mut() = http::Uri::from_static(path);
    request
}
