//! From an effect to its HTTP request, and from the answer to what the core is told.

use std::sync::Arc;

use http::Request as HttpRequest;
use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::Resource;
use kube::api::{DeleteParams, GetParams, ListParams, Patch, PatchParams, PostParams, Preconditions};
use kube::core::{ObjectMeta, Request as Path};
use serde::Deserialize;
use serde_json::{Value, json};

use super::answers::Asked;
use super::mirror::mirror;
use super::notice;
use super::views;
use crate::api::{MultiKueueJob, WorkerCluster, names};
use crate::dispatcher::{Answer, Request};
use crate::lifecycle::view::{JobKey, ResourceVersion};
use crate::workload::{ApiResource, TemplateKind};

/// A request that cannot be made: a name that is no name, a document that is none.
#[derive(Debug, thiserror::Error)]
#[error("the request could not be made: {0}")]
pub struct RequestError(String);

impl From<kube::core::request::Error> for RequestError {
    fn from(e: kube::core::request::Error) -> Self {
        Self(e.to_string())
    }
}

impl From<serde_json::Error> for RequestError {
    fn from(e: serde_json::Error) -> Self {
        Self(e.to_string())
    }
}

type Made = Result<HttpRequest<Vec<u8>>, RequestError>;

fn path<K: Resource<DynamicType = ()>>(namespace: Option<&str>) -> Path {
    Path::new(K::url_path(&(), namespace))
}

/// The path of a mirror's kind in its namespace.
fn mirrors(kind: TemplateKind, key: &JobKey) -> Path {
    let ApiResource {
        group, version, plural, ..
    } = kind.workload().api_resource();
    let base = if group.is_empty() {
        format!("/api/{version}")
    } else {
        format!("/apis/{group}/{version}")
    };
    Path::new(format!("{base}/namespaces/{}/{plural}", key.namespace))
}

fn about_mirror(kind: TemplateKind, key: &JobKey) -> Asked<'_> {
    let ApiResource { group, plural, .. } = kind.workload().api_resource();
    asked(group, plural, &key.name)
}

fn asked<'a>(group: &'a str, plural: &'a str, name: &'a str) -> Asked<'a> {
    Asked {
        group,
        plural,
        name,
        json_patch: false,
        writes: true,
    }
}

/// What a request is about.
pub fn about(request: &Request) -> Asked<'_> {
    const OURS: &str = crate::api::GROUP;
    let reads = |asked| Asked { writes: false, ..asked };
    let patches = |asked| Asked {
        json_patch: true,
        ..asked
    };
    match request {
        Request::GetJob { key } => reads(asked(OURS, "multikueuejobs", &key.name)),
        Request::SetJobFinalizers { key, .. } | Request::WriteJobStatus { key, .. } => {
            patches(asked(OURS, "multikueuejobs", &key.name))
        }
        Request::GetWorkerCluster { name } => reads(asked(OURS, "workerclusters", name)),
        Request::SetWorkerFinalizers { name, .. } | Request::WriteWorkerStatus { name, .. } => {
            patches(asked(OURS, "workerclusters", name))
        }
        Request::PublishEvent(_) => asked("events.k8s.io", "events", ""),
        Request::RenewLease { name, .. } => asked("coordination.k8s.io", "leases", name),
        Request::CreateNamespace { name } => asked("", "namespaces", name),
        Request::CreateMirror { kind: k, key, .. }
        | Request::MergePatchMirror { kind: k, key, .. }
        | Request::DeleteMirror { kind: k, key, .. } => about_mirror(*k, key),
        Request::GetMirror { kind: k, key } => reads(about_mirror(*k, key)),
        Request::JsonPatchMirror { kind: k, key, .. } => patches(about_mirror(*k, key)),
        Request::ListPods { .. } => reads(asked("", "pods", "")),
    }
}

/// The HTTP request of an effect. A lease is more than one, see `lease`.
pub fn make(request: &Request, instance: &str) -> Made {
    const FINALIZERS: &str = "/metadata/finalizers";
    let job = |key: &JobKey| path::<MultiKueueJob>(Some(&key.namespace));
    let worker = || path::<WorkerCluster>(None);
    Ok(match request {
        Request::GetJob { key } => job(key).get(&key.name, &GetParams::default())?,
        Request::GetWorkerCluster { name } => worker().get(name, &GetParams::default())?,
        Request::SetJobFinalizers {
            key,
            uid,
            resource_version,
            finalizers,
        } => {
            let operations = guarded(uid, *resource_version, FINALIZERS, &json!(finalizers));
            json_patch(&job(key), &key.name, operations, None)?
        }
        Request::SetWorkerFinalizers {
            name,
            uid,
            resource_version,
            finalizers,
        } => {
            let operations = guarded(uid, *resource_version, FINALIZERS, &json!(finalizers));
            json_patch(&worker(), name, operations, None)?
        }
        Request::WriteJobStatus {
            key,
            uid,
            resource_version,
            status,
        } => {
            let operations = guarded(uid, *resource_version, "/status", &serde_json::to_value(status)?);
            json_patch(&job(key), &key.name, operations, Some("status"))?
        }
        Request::WriteWorkerStatus {
            name,
            uid,
            resource_version,
            status,
        } => {
            let operations = guarded(uid, *resource_version, "/status", &serde_json::to_value(status)?);
            json_patch(&worker(), name, operations, Some("status"))?
        }
        Request::PublishEvent(published) => notice::make(published, instance)?,
        Request::RenewLease { .. } => return Err(RequestError("a lease takes more than one request".into())),
        Request::CreateNamespace { name } => create_namespace(name)?,
        Request::CreateMirror {
            kind: k,
            key,
            object,
            dry_run,
        } => {
            let params = PostParams {
                dry_run: *dry_run,
                ..creating()
            };
            mirrors(*k, key).create(&params, object.get().as_bytes().to_vec())?
        }
        Request::GetMirror { kind: k, key } => mirrors(*k, key).get(&key.name, &GetParams::default())?,
        Request::JsonPatchMirror { kind: k, key, patch } => {
            json_patch(&mirrors(*k, key), &key.name, patch.clone(), None)?
        }
        Request::MergePatchMirror { kind: k, key, patch } => {
            mirrors(*k, key).patch(&key.name, &patching(), &Patch::Merge(patch))?
        }
        Request::DeleteMirror {
            kind: k,
            key,
            uid,
            resource_version,
        } => {
            let params = DeleteParams::background().preconditions(Preconditions {
                uid: Some(uid.to_string()),
                resource_version: Some(resource_version.to_string()),
            });
            mirrors(*k, key).delete(&key.name, &params)?
        }
        Request::ListPods { namespace, job_uid } => {
            let selected = ListParams::default()
                .labels(&format!("{}={job_uid}", names::JOB_UID))
                .fields("status.phase!=Succeeded,status.phase!=Failed");
            path::<Pod>(Some(namespace)).list(&selected)?
        }
    })
}

fn creating() -> PostParams {
    PostParams {
        field_manager: Some(names::MANAGER.into()),
        ..PostParams::default()
    }
}

fn patching() -> PatchParams {
    PatchParams {
        field_manager: Some(names::MANAGER.into()),
        ..PatchParams::default()
    }
}

fn create_namespace(name: &str) -> Made {
    let namespace = Namespace {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            labels: Some([(names::CREATED_BY.to_owned(), names::MANAGER.to_owned())].into()),
            ..ObjectMeta::default()
        },
        ..Namespace::default()
    };
    Ok(path::<Namespace>(None).create(&creating(), serde_json::to_vec(&namespace)?)?)
}

/// Replaces one field as a whole, of the very object and version that was decided on. `add` also replaces, and works where the field is not there yet.
fn guarded(uid: &Arc<str>, version: ResourceVersion, field: &str, value: &Value) -> Value {
    json!([
        {"op": "test", "path": "/metadata/uid", "value": &**uid},
        {"op": "test", "path": "/metadata/resourceVersion", "value": version.to_string()},
        {"op": "add", "path": field, "value": value},
    ])
}

/// kube's own type of JSON patches is a crate of its own; the operations travel as they are.
fn json_patch(base: &Path, name: &str, operations: Value, subresource: Option<&str>) -> Made {
    // To kube a merge patch differs from a JSON patch in its content type alone.
    let operations = Patch::Merge(operations);
    let mut request = match subresource {
        Some(sub) => base.patch_subresource(sub, name, &patching(), &operations)?,
        None => base.patch(name, &patching(), &operations)?,
    };
    let json_patch = http::HeaderValue::from_static("application/json-patch+json");
    request.headers_mut().insert(http::header::CONTENT_TYPE, json_patch);
    Ok(request)
}

/// What the text of a successful answer holds.
pub fn read(request: &Request, text: &str) -> Result<Answer, views::ViewError> {
    Ok(match request {
        Request::GetJob { .. } | Request::WriteJobStatus { .. } => Answer::Job(Box::new(views::job(text)?)),
        Request::SetJobFinalizers { finalizers, .. } => {
            with_its_last(finalizers, text, |text| Ok(Answer::Job(Box::new(views::job(text)?))))?
        }
        Request::GetWorkerCluster { .. } | Request::WriteWorkerStatus { .. } => {
            Answer::WorkerCluster(Box::new(views::worker_cluster(text)?))
        }
        Request::SetWorkerFinalizers { finalizers, .. } => with_its_last(finalizers, text, |text| {
            Ok(Answer::WorkerCluster(Box::new(views::worker_cluster(text)?)))
        })?,
        Request::CreateMirror {
            kind: k,
            dry_run: false,
            ..
        }
        | Request::GetMirror { kind: k, .. }
        | Request::JsonPatchMirror { kind: k, .. }
        | Request::MergePatchMirror { kind: k, .. } => Answer::Mirror(Box::new(mirror(*k, text)?)),
        Request::ListPods { .. } => {
            #[derive(Deserialize)]
            struct List {
                #[serde(default)]
                items: Option<Vec<serde::de::IgnoredAny>>,
            }
            let list: List = serde_json::from_str(text).map_err(|e| views::ViewError::Form(e.to_string()))?;
            Answer::Pods(list.items.map_or(0, |items| items.len()))
        }
        // What a dry run answers was never stored: it has no resourceVersion, and is no view.
        Request::CreateMirror { dry_run: true, .. }
        | Request::PublishEvent(_)
        | Request::CreateNamespace { .. }
        | Request::DeleteMirror { .. }
        | Request::RenewLease { .. } => Answer::Accepted,
    })
}

/// An object that is being deleted is gone with its last finalizer: the answer still shows it, and a view of it would bring it back to life in the core.
fn with_its_last(
    finalizers: &[String],
    text: &str,
    read: impl FnOnce(&str) -> Result<Answer, views::ViewError>,
) -> Result<Answer, views::ViewError> {
    #[derive(Deserialize)]
    struct Object {
        metadata: super::slim::Meta,
    }
    let object: Object = serde_json::from_str(text).map_err(|e| views::ViewError::Form(e.to_string()))?;
    if finalizers.is_empty() && object.metadata.deletion_timestamp.is_some() {
        return Ok(Answer::Accepted);
    }
    read(text)
}
