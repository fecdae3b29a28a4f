//! Ways into a control plane: kubeconfigs of several identities, and `kubectl`.

use std::path::PathBuf;
use std::time::Duration;

use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::Api;
use kube::api::PostParams;

use super::ControlPlane;
use crate::error::{Error, Result};
use crate::kubeconfig::{Credentials, Kubeconfig};
use crate::programs::Program;
use crate::tools::{self, Output};

const TOKEN_SECONDS: i64 = 365 * 24 * 3600;

impl ControlPlane {
    /// A client that may do everything. It belongs to the runtime in which it is made.
    pub async fn client(&self) -> Result<kube::Client> {
        self.admin.client().await
    }

    /// The kubeconfig of somebody who may do everything.
    pub const fn kubeconfig(&self) -> &Kubeconfig {
        &self.admin
    }

    /// The certificate authority that signs the serving certificate and client certificates, PEM.
    pub fn ca_pem(&self) -> String {
        self.authority.pem()
    }

    /// A kubeconfig with a token for a service account that exists, valid for a year.
    pub async fn kubeconfig_service_account(&self, namespace: &str, name: &str) -> Result<Kubeconfig> {
        let accounts = Api::<ServiceAccount>::namespaced(self.client().await?, namespace);
        let spec = TokenRequestSpec {
            expiration_seconds: Some(TOKEN_SECONDS),
            ..TokenRequestSpec::default()
        };
        let request = TokenRequest {
            spec: Some(spec),
            ..TokenRequest::default()
        };
        let answer: TokenRequest = accounts
            .create_subresource("token", name, &PostParams::default(), &request)
            .await
            .map_err(Error::api(format!(
                "get a token for the service account {namespace}/{name} of {}",
                self.name
            )))?;
        let token = answer
            .status
            .and_then(|status| status.token)
            .ok_or_else(|| Error::Client {
                server: self.server(),
                message: format!("the answer to the token request for {namespace}/{name} holds no token"),
            })?;
        Ok(self.admin.clone().with_credentials(Credentials::Token(token)))
    }

    /// A kubeconfig with a client certificate for a user and, if wanted, a group.
    pub fn kubeconfig_client_certificate(
        &self,
        user: &str,
        group: Option<&str>,
        valid_for: Duration,
    ) -> Result<Kubeconfig> {
        let certificate = self.authority.client(user, group, valid_for)?;
        Ok(self
            .admin
            .clone()
            .with_credentials(Credentials::Certificate(certificate)))
    }

    /// Writes a kubeconfig to a file of this name in the control plane's folder, and says where it is.
    pub fn write_kubeconfig(&self, file: &str, kubeconfig: &Kubeconfig) -> Result<PathBuf> {
        let path = self.folder.join(file);
        kubeconfig.write_to(&path)?;
        Ok(path)
    }

    /// Runs `kubectl` with these arguments as one who may do everything. A non-zero exit is an answer, not an error.
    pub async fn kubectl(&self, args: &[&str]) -> Result<Output> {
        self.kubectl_with_input(args, "").await
    }

    /// [`ControlPlane::kubectl`] with text on its standard input, for `apply -f -`.
    pub async fn kubectl_with_input(&self, args: &[&str], input: &str) -> Result<Output> {
        tools::run(Program::Kubectl, &self.folder, args, input).await
    }

    /// Runs `helm` (built at its first use) with these arguments as one who may do everything.
    pub async fn helm(&self, args: &[&str]) -> Result<Output> {
        tools::run(Program::Helm, &self.folder, args, "").await
    }
}
