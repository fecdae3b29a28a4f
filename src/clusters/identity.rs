//! Who answers: the first questions on a connection, and the one that is repeated.

use std::time::Duration;

use http::Request;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apimachinery::pkg::version::Info;
use k8s_openapi::jiff::Timestamp;
use kube::api::{GetParams, Request as Path};
use kube::{Client, Resource};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio::time::timeout;
use tracing::warn;

use super::kubeconfig::VettedKubeconfig;
use super::reason::{Reason, Trouble};
use super::slim::Meta;

/// How long a probe may take.
const PROBE_WITHIN: Duration = Duration::from_secs(4);
/// How long the first requests on a connection may take together, opening it included.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);
/// A client certificate that ends within this time is worth a warning, in seconds.
const SOON: i64 = 14 * 86_400;

/// Reads who the worker is: uid of its `kube-system`, and its version.
pub async fn identify(client: &Client) -> Result<(String, String), Trouble> {
    let asked = timeout(CONNECT_WITHIN, identity(client)).await;
    asked.unwrap_or_else(|_| Err(Trouble::new(Reason::Timeout, "the server did not answer in time")))
}

async fn identity(client: &Client) -> Result<(String, String), Trouble> {
    let uid = kube_system(client).await?;
    let version = Request::get("/version").body(Vec::new());
    let version = version.map_err(|e| Trouble::new(Reason::ServerError, e.to_string()))?;
    let info: Info = ask(client, version).await?;
    Ok((uid, info.git_version))
}

async fn kube_system(client: &Client) -> Result<String, Trouble> {
    #[derive(Deserialize)]
    struct Object {
        metadata: Meta,
    }
    let get = Path::new(Namespace::url_path(&(), None)).get("kube-system", &GetParams::default());
    let get = get.map_err(|e| Trouble::new(Reason::ServerError, e.to_string()))?;
    let Object { metadata } = ask(client, get).await?;
    if metadata.uid.is_empty() {
        return Err(Trouble::new(
            Reason::ServerError,
            "the namespace kube-system came without a uid: this is no API server",
        ));
    }
    Ok(metadata.uid)
}

async fn ask<T: DeserializeOwned>(client: &Client, request: Request<Vec<u8>>) -> Result<T, Trouble> {
    let text = client.request_text(request).await.map_err(|e| Trouble::of(&e))?;
    // Not kube's `request`, which logs the whole text of what it cannot read.
    serde_json::from_str(&text).map_err(|e| {
        Trouble::new(
            Reason::ServerError,
            format!("the answer is not that of an API server: {e}"),
        )
    })
}

/// None when the same cluster answers.
pub async fn probe(client: &Client, cluster_uid: &str) -> Option<Trouble> {
    match timeout(PROBE_WITHIN, kube_system(client)).await {
        Ok(Ok(uid)) if uid == cluster_uid => None,
        Ok(Ok(_)) => Some(Trouble::new(
            Reason::ConnectionReset,
            "another cluster answers at this address",
        )),
        // A server that is busy is there.
        Ok(Err(trouble)) if matches!(trouble.reason, Reason::Busy | Reason::ServerError) => None,
        Ok(Err(trouble)) => Some(trouble),
        Err(_) => Some(Trouble::new(
            Reason::Timeout,
            format!("the server did not answer a probe within {} s", PROBE_WITHIN.as_secs()),
        )),
    }
}

/// An API server does not say why it does not accept a client certificate.
pub fn explain(trouble: Trouble, vetted: &VettedKubeconfig) -> Trouble {
    match vetted.client_not_after {
        Some(end) if trouble.reason == Reason::Unauthorized && end <= Timestamp::now() => Trouble::new(
            Reason::CredentialsExpired,
            format!(
                "the client certificate of the kubeconfig has expired at {end}; put a new kubeconfig into the Secret"
            ),
        ),
        _ => trouble,
    }
}

/// Says in the log that a client certificate is about to end.
pub fn warn_of_expiry(worker: &str, vetted: &VettedKubeconfig) {
    if let Some(end) = vetted.client_not_after
        && end.as_second() - Timestamp::now().as_second() < SOON
    {
        warn!(worker, "the client certificate of the kubeconfig expires at {end}");
    }
}
