//! Why the process ends, or does not start.

use std::net::SocketAddr;
use std::path::PathBuf;

/// Why the process ends, or does not start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Flags that do not go together.
    #[error(transparent)]
    Args(#[from] super::args::Invalid),
    /// The logs cannot be started.
    #[error("cannot start the logs")]
    Telemetry(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The kubeconfig of the manager cannot be read or used.
    #[error("kubeconfig {path} of the manager cluster cannot be used")]
    Kubeconfig {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: kube::config::KubeconfigError,
    },
    /// The proxy that the kubeconfig of the manager names is no URL.
    #[error("kubeconfig {path} of the manager cluster names the proxy {proxy:?}, which is not a URL")]
    ProxyUrl {
        /// The file.
        path: PathBuf,
        /// What it says.
        proxy: String,
        /// Why.
        #[source]
        source: http::uri::InvalidUri,
    },
    /// Neither a kubeconfig nor a service account.
    #[error("not in a pod with a service account: name the manager cluster with --kubeconfig")]
    NotInCluster(#[source] kube::config::InClusterError),
    /// The client for the manager cannot be built.
    #[error("cannot build a client for the manager cluster")]
    Client(#[source] kube::Error),
    /// The administrative address cannot be bound.
    #[error("cannot listen on {address} (--metrics-bind-address)")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The operating system gives no random numbers.
    #[error("the operating system gives no random numbers")]
    Random(#[source] getrandom::Error),
    /// The output cannot be written.
    #[error("cannot write the custom resource definitions")]
    Write(#[source] std::io::Error),
    /// A custom resource definition has no YAML.
    #[error("cannot print the custom resource definitions")]
    Crd(#[source] crate::api::crds::CrdError),
    /// The runtime cannot be started, or signals cannot be heard.
    #[error("cannot start the process")]
    Process(#[source] std::io::Error),
    /// A part of the process that must run for ever ended: the process cannot go on without it.
    #[error("the {part} ended by itself; see the logs")]
    PartEnded {
        /// Which.
        part: &'static str,
    },
}

/// An error with all that caused it, on one line.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        // Some errors repeat their source in their own message.
        if !text.ends_with(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text
}
