//! The worker lease: how one renewal is one to three requests.

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::jiff::Timestamp;
use kube::api::{GetParams, PostParams};
use kube::core::{ObjectMeta, Request as Path};
use kube::{Client, Resource};
use serde::Deserialize;
use tokio::time::Instant;

use super::answers::{Asked, Reply};
use super::exchange::exchange;
use super::requests::RequestError;
use super::slim::Meta;
use super::views::{ViewError, version};
use crate::api::names;
use crate::dispatcher::RefusalKind;
use crate::lifecycle::view::{LeaseView, ResourceVersion};

/// What is to be written.
#[derive(Debug, Clone, Copy)]
pub struct Renewal<'a> {
    /// Name of the lease.
    pub name: &'a str,
    /// Holder.
    pub holder: &'a str,
    /// Duration in seconds.
    pub seconds: i32,
    /// Transitions.
    pub transitions: i32,
    /// The version to replace; none: look first.
    pub version: Option<ResourceVersion>,
}

/// Renews the lease. With a version: one PUT. Without: a GET first, so that a foreign holder is seen and not overwritten: its lease is the answer, unwritten. A
/// lease that is there and ours is replaced by the version just read, and one that is not there is created.
///
/// So an answer with our holder is always that of a write. A GET of it alone would say only that we held the lease at some time, while a renewal must prove
/// that the worker took a write after it was sent: proofs of absence rest on that.
///
/// An API server makes a lease anew for a PUT of one that is gone, whatever version it names (leases allow creation on update): no other holder is lost.
pub async fn renew(
    client: &Client,
    asked: Asked<'_>,
    renewal: Renewal<'_>,
    deadline: Instant,
) -> Result<Reply, RequestError> {
    let path = Path::new(Lease::url_path(&(), Some(names::WORKER_LEASE_NAMESPACE)));
    let params = PostParams {
        field_manager: Some(names::MANAGER.into()),
        ..PostParams::default()
    };
    let reads = Asked { writes: false, ..asked };
    let renewal = if renewal.version.is_some() {
        renewal
    } else {
        let get = path.get(renewal.name, &GetParams::default())?;
        match exchange(client, reads, get, deadline).await {
            Reply::Refused(refusal) if refusal.kind == RefusalKind::ObjectNotFound => {
                let create = path.create(&params, body(renewal)?)?;
                return Ok(exchange(client, asked, create, deadline).await);
            }
            Reply::Done(text) => match view(&text) {
                Ok(found) if found.holder == renewal.holder => Renewal {
                    version: Some(found.resource_version),
                    ..renewal
                },
                // Another's, or unreadable: what that means is for the reader of the answer to say.
                _ => return Ok(Reply::Done(text)),
            },
            reply => return Ok(reply),
        }
    };
    let put = path.replace(renewal.name, &params, body(renewal)?)?;
    Ok(exchange(client, asked, put, deadline).await)
}

/// The fence reads `renewTime` by its own wall clock, so it is ours at the time of sending.
fn body(renewal: Renewal<'_>) -> Result<Vec<u8>, RequestError> {
    let lease = Lease {
        metadata: ObjectMeta {
            name: Some(renewal.name.to_owned()),
            namespace: Some(names::WORKER_LEASE_NAMESPACE.into()),
            resource_version: renewal.version.map(|version| version.to_string()),
            ..ObjectMeta::default()
        },
        spec: Some(LeaseSpec {
            holder_identity: Some(renewal.holder.to_owned()),
            lease_duration_seconds: Some(renewal.seconds),
            lease_transitions: Some(renewal.transitions),
            renew_time: Some(MicroTime(Timestamp::now())),
            ..LeaseSpec::default()
        }),
    };
    Ok(serde_json::to_vec(&lease)?)
}

/// The lease of its JSON.
pub fn view(text: &str) -> Result<LeaseView, ViewError> {
    #[derive(Deserialize)]
    struct Object {
        metadata: Meta,
        #[serde(default)]
        spec: LeaseSpec,
    }
    let object: Object = serde_json::from_str(text).map_err(|e| ViewError::Form(e.to_string()))?;
    Ok(LeaseView {
        holder: object.spec.holder_identity.unwrap_or_default(),
        resource_version: version(&object.metadata.resource_version)?,
    })
}
