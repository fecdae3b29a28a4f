//! How the manager cluster is reached.

use std::path::Path;
use std::time::Duration;

use k8s_openapi::api::core::v1::Namespace;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};

use crate::clusters::backoff::Backoff;

use super::error::{Error, chain};
use super::health::{Health, MANAGER};

/// The configuration of a client for the manager: this kubeconfig, or the service account of the pod.
///
/// Proxy variables of the environment are not used: they are meant for traffic that leaves the site, and kube would send the manager's
/// own API traffic through such a proxy whatever `NO_PROXY` says. A `proxy-url` in the kubeconfig is used.
pub async fn config(kubeconfig: Option<&Path>) -> Result<Config, Error> {
    match kubeconfig {
        // Its certificate authority and its token are read anew when they change.
        None => Config::incluster().map_err(Error::NotInCluster),
        Some(path) => from_file(path).await,
    }
}

/// The uid of the manager's `kube-system` namespace, asked for until it is answered: an operator may start before its API server does,
/// or before its rights are there. `/readyz` says what it waits for.
pub async fn uid(client: &Client, health: &Health) -> String {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let mut backoff = Backoff::new(Duration::from_millis(500), Duration::from_secs(15));
    let mut last = String::new();
    loop {
        let trouble = match namespaces.get_metadata("kube-system").await {
            Ok(namespace) => match namespace.metadata.uid {
                Some(uid) => {
                    health.ready(MANAGER);
                    return uid;
                }
                None => "the namespace kube-system has no uid".to_owned(),
            },
            Err(error) => format!("the namespace kube-system cannot be read: {}", chain(&error)),
        };
        if trouble != last {
            tracing::warn!("{trouble}");
            health.waiting(MANAGER, trouble.as_str());
            last = trouble;
        }
        tokio::time::sleep(backoff.pause()).await;
    }
}

async fn from_file(path: &Path) -> Result<Config, Error> {
    let unusable = |source| Error::Kubeconfig {
        path: path.into(),
        source,
    };
    let kubeconfig = Kubeconfig::read_from(path).map_err(unusable)?;
    let proxy = own_proxy(&kubeconfig).map(str::to_owned);
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
        .await
        .map_err(unusable)?;
    config.proxy_url = match proxy {
        None => None,
        Some(proxy) => Some(match proxy.parse() {
            Ok(url) => url,
            Err(source) => {
                return Err(Error::ProxyUrl {
                    path: path.into(),
                    proxy,
                    source,
                });
            }
        }),
    };
    Ok(config)
}

/// The `proxy-url` of the cluster of the current context.
fn own_proxy(kubeconfig: &Kubeconfig) -> Option<&str> {
    let current = kubeconfig.current_context.as_ref()?;
    let context = kubeconfig
        .contexts
        .iter()
        .find(|context| context.name == *current)?
        .context
        .as_ref()?;
    let cluster = kubeconfig
        .clusters
        .iter()
        .find(|cluster| cluster.name == context.cluster)?
        .cluster
        .as_ref()?;
    cluster.proxy_url.as_deref().filter(|proxy| !proxy.is_empty())
}

#[cfg(test)]
mod tests;
