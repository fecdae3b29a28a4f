//! Clients: one of the manager, one per worker, all with the same deadlines and the same name.

use std::time::Duration;

use http::{HeaderValue, header};
use kube::client::ClientBuilder;
use kube::{Client, Config};
use tower::timeout::TimeoutLayer;

use super::kubeconfig::VettedKubeconfig;

/// How we name ourselves to API servers, for their audit logs.
pub const USER_AGENT: &str = concat!("multikueue/", env!("CARGO_PKG_VERSION"));

/// Time to open a connection, TLS included.
const CONNECT: Duration = Duration::from_secs(5);
/// Time until the headers of an answer are there. It ends with them and so does not cut a watch; without it the first list of a watch hangs for ever when
/// a server accepts the connection and stays silent.
const HEADERS: Duration = Duration::from_secs(15);
/// Time without a byte on a connection on which an answer is awaited; longer than a watch may be silent, since a server ends each after 60 s.
const READ: Duration = Duration::from_secs(75);

/// A client of a worker. Nothing but the vetted kubeconfig decides where it connects to: no variable of the environment does.
pub fn worker(vetted: &VettedKubeconfig) -> Result<Client, kube::Error> {
    let mut config = Config::new(vetted.server.clone());
    config.root_cert = Some(vetted.roots.clone());
    config.auth_info = vetted.auth.clone();
    config.tls_server_name.clone_from(&vetted.tls_server_name);
    config.proxy_url.clone_from(&vetted.proxy);
    build(config)
}

/// A client of the manager, from a configuration that the process was started with.
pub fn manager(config: Config) -> Result<Client, kube::Error> {
    build(config)
}

fn build(mut config: Config) -> Result<Client, kube::Error> {
    config.connect_timeout = Some(CONNECT);
    config.read_timeout = Some(READ);
    config.write_timeout = Some(HEADERS);
    config.reset_reader_on_write = true;
    // The core decides on retries, and an effect is one request.
    config.default_retry = false;
    config
        .headers
        .push((header::USER_AGENT, HeaderValue::from_static(USER_AGENT)));
    Ok(ClientBuilder::try_from(config)?
        .with_layer(&TimeoutLayer::new(HEADERS))
        .build())
}
