//! Events for people, `events.k8s.io/v1`.

use http::Request;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::jiff::Timestamp;
use kube::Resource;
use kube::api::PostParams;
use kube::core::{ObjectMeta, Request as Path};

use super::reason::cut;
use super::requests::RequestError;
use crate::api::{MultiKueueJob, WorkerCluster};
use crate::dispatcher::effect::{Notice, Regarding};

/// Who reports.
pub const CONTROLLER: &str = "multikueue.rs/dispatcher";
/// Where the API server wants events about objects without a namespace.
const CLUSTER_SCOPED: &str = "default";

/// The request that creates an event. Each is an object of its own: the core says things only when they change, so there is nothing to count up.
pub fn make(notice: &Notice, instance: &str) -> Result<Request<Vec<u8>>, RequestError> {
    let regarding = regarding(&notice.regarding);
    let now = Timestamp::now();
    let namespace = regarding.namespace.clone().unwrap_or_else(|| CLUSTER_SCOPED.into());
    let subject = regarding.name.clone().unwrap_or_default();
    let event = Event {
        metadata: ObjectMeta {
            // As client-go names them: unique, and short enough whatever the subject is called.
            name: Some(format!(
                "{}.{:x}",
                &subject[..subject.floor_char_boundary(200)],
                now.as_nanosecond()
            )),
            namespace: Some(namespace.clone()),
            ..ObjectMeta::default()
        },
        action: Some(notice.action.into()),
        event_time: Some(MicroTime(now)),
        note: Some(cut(&notice.note, 1_024)),
        reason: Some(notice.reason.into()),
        regarding: Some(regarding),
        reporting_controller: Some(CONTROLLER.into()),
        reporting_instance: Some(instance[..instance.floor_char_boundary(128)].into()),
        type_: Some(if notice.warning { "Warning" } else { "Normal" }.into()),
        ..Event::default()
    };
    Ok(
        Path::new(Event::url_path(&(), Some(&namespace)))
            .create(&PostParams::default(), serde_json::to_vec(&event)?)?,
    )
}

fn regarding(of: &Regarding) -> ObjectReference {
    match of {
        Regarding::Job(key, uid) => ObjectReference {
            api_version: Some(MultiKueueJob::api_version(&()).into()),
            kind: Some(MultiKueueJob::kind(&()).into()),
            namespace: Some(key.namespace.to_string()),
            name: Some(key.name.to_string()),
            uid: Some(uid.to_string()),
            ..ObjectReference::default()
        },
        Regarding::WorkerCluster(name, uid) => ObjectReference {
            api_version: Some(WorkerCluster::api_version(&()).into()),
            kind: Some(WorkerCluster::kind(&()).into()),
            name: Some(name.to_string()),
            uid: Some(uid.to_string()),
            ..ObjectReference::default()
        },
    }
}
