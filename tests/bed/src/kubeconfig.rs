//! Kubeconfigs as values: where the API server is, how to verify it, who one is there.

use std::fmt;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kube::config::KubeConfigOptions;

use crate::error::{Error, Result};
use crate::link::Link;
use crate::pki::Certificate;

/// A kubeconfig with one context; `to_string()` is its YAML, with everything inline.
#[derive(Clone, Debug)]
pub struct Kubeconfig {
    name: String,
    server: String,
    tls_server_name: Option<String>,
    certificate_authority: String,
    namespace: Option<String>,
    credentials: Credentials,
}

#[derive(Clone, Debug)]
pub(crate) enum Credentials {
    Certificate(Certificate),
    Token(String),
}

impl Kubeconfig {
    pub(crate) fn new(name: &str, server: String, certificate_authority: String, credentials: Credentials) -> Self {
        Self {
            name: name.to_owned(),
            server,
            tls_server_name: None,
            certificate_authority,
            namespace: None,
            credentials,
        }
    }

    pub(crate) fn with_credentials(self, credentials: Credentials) -> Self {
        Self { credentials, ..self }
    }

    /// URL of the API server.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// The same with another server URL.
    #[must_use]
    pub fn with_server(self, url: impl Into<String>) -> Self {
        Self {
            server: url.into(),
            ..self
        }
    }

    /// The same, expecting this name in the server's certificate instead of the URL's host.
    #[must_use]
    pub fn with_tls_server_name(self, name: impl Into<String>) -> Self {
        Self {
            tls_server_name: Some(name.into()),
            ..self
        }
    }

    /// The same with a default namespace.
    #[must_use]
    pub fn with_namespace(self, namespace: impl Into<String>) -> Self {
        Self {
            namespace: Some(namespace.into()),
            ..self
        }
    }

    /// The same through a link that can be broken.
    #[must_use]
    pub fn via(self, link: &Link) -> Self {
        self.with_server(link.server()).with_tls_server_name(SERVER_NAME)
    }

    /// Writes the YAML to a file.
    pub fn write_to(&self, path: &Path) -> Result<()> {
        std::fs::write(path, self.to_string()).map_err(Error::io("write the kubeconfig", path))
    }

    /// The client configuration. It never goes through a proxy of the environment: everything is on 127.0.0.1.
    pub async fn config(&self) -> Result<kube::Config> {
        let failed = |error: kube::config::KubeconfigError| Error::Client {
            server: self.server.clone(),
            message: error.to_string(),
        };
        let parsed = kube::config::Kubeconfig::from_yaml(&self.to_string()).map_err(failed)?;
        let config = kube::Config::from_custom_kubeconfig(parsed, &KubeConfigOptions::default()).await;
        let mut config = config.map_err(failed)?;
        config.proxy_url = None;
        Ok(config)
    }

    /// A client. It belongs to the runtime in which it is made: each test makes its own.
    pub async fn client(&self) -> Result<kube::Client> {
        kube::Client::try_from(self.config().await?).map_err(|error| Error::Client {
            server: self.server.clone(),
            message: error.to_string(),
        })
    }
}

/// A name that every API server's certificate carries, for connections that go to another address.
pub(crate) const SERVER_NAME: &str = "kubernetes.default.svc";

impl fmt::Display for Kubeconfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            name,
            server,
            tls_server_name,
            certificate_authority,
            namespace,
            credentials,
        } = self;
        let ca = STANDARD.encode(certificate_authority);
        write!(
            f,
            "apiVersion: v1\nkind: Config\ncurrent-context: {name}\ncontexts:\n- name: {name}\n  context:\n    cluster: \
             {name}\n    user: {name}\n"
        )?;
        if let Some(namespace) = namespace {
            writeln!(f, "    namespace: {namespace}")?;
        }
        write!(
            f,
            "clusters:\n- name: {name}\n  cluster:\n    server: {server}\n    certificate-authority-data: {ca}\n"
        )?;
        if let Some(tls_server_name) = tls_server_name {
            writeln!(f, "    tls-server-name: {tls_server_name}")?;
        }
        write!(f, "users:\n- name: {name}\n  user:\n")?;
        match credentials {
            Credentials::Token(token) => writeln!(f, "    token: {token}"),
            Credentials::Certificate(Certificate { certificate, key }) => {
                let (certificate, key) = (STANDARD.encode(certificate), STANDARD.encode(key));
                write!(
                    f,
                    "    client-certificate-data: {certificate}\n    client-key-data: {key}\n"
                )
            }
        }
    }
}
