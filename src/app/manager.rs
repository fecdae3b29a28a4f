//! How the manager cluster is reached.

use std::path::Path;
use std::time::Duration;

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

use super::error::Error;

/// The configuration of a client for the manager: this kubeconfig, or the service account of the pod.
///
/// Proxy variables of the environment are not used: they are meant for traffic that leaves the site, and kube would send the manager's
/// own API traffic through such a proxy whatever `NO_PROXY` says. A `proxy-url` in the kubeconfig is used.
pub async fn config(kubeconfig: Option<&Path>, request_timeout: Duration) -> Result<Config, Error> {
    let mut config = match kubeconfig {
        None => Config::incluster().map_err(Error::NotInCluster)?,
        Some(path) => from_file(path).await?,
    };
    config.connect_timeout = Some(request_timeout);
    // The core decides what is sent again and when.
    config.default_retry = false;
    let agent = concat!("multikueue/", env!("CARGO_PKG_VERSION"));
    config
        .headers
        .push((http::header::USER_AGENT, http::HeaderValue::from_static(agent)));
    Ok(config)
}

/// A client of this configuration.
pub fn client(config: Config) -> Result<Client, Error> {
    Client::try_from(config).map_err(Error::Client)
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
