//! YAML onto an API server, as `kubectl apply --server-side` does it.

use std::time::Duration;

use k8s_openapi::api::core::v1::Namespace;
use kube::api::{DynamicObject, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use kube::{Api, Client, discovery};
use serde_json::Value;

use crate::error::{Error, Result};
use crate::wait::eventually;

const MANAGER: &str = "bed";
const ESTABLISHED_TIMEOUT: Duration = Duration::from_secs(20);

/// Applies all documents of a YAML text in their order and returns what the server made of them. Namespaced objects without
/// a namespace go to `default`. After a `CustomResourceDefinition` it waits until the new kind is served.
pub async fn apply_yaml(client: &Client, text: &str) -> Result<Vec<DynamicObject>> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(text).map_err(|error| Error::Yaml {
        index: 1,
        message: error.to_string(),
    })?;
    let mut applied = Vec::new();
    for (index, document) in documents
        .into_iter()
        .enumerate()
        .filter(|(_, document)| !document.is_null())
    {
        let object = serde_json::from_value::<DynamicObject>(document);
        let object = object.map_err(|error| Error::Yaml {
            index: index + 1,
            message: error.to_string(),
        })?;
        applied.push(apply(client, index + 1, object).await?);
    }
    Ok(applied)
}

async fn apply(client: &Client, index: usize, object: DynamicObject) -> Result<DynamicObject> {
    let bad = |message: &str| Error::Yaml {
        index,
        message: message.to_owned(),
    };
    let types = object
        .types
        .as_ref()
        .ok_or_else(|| bad("it has no apiVersion and kind"))?;
    let name = object
        .metadata
        .name
        .as_deref()
        .ok_or_else(|| bad("it has no metadata.name"))?;
    let kind = GroupVersionKind::try_from(types).map_err(|error| bad(&error.to_string()))?;
    let what = format!("{} {name}", kind.kind);
    let (resource, capabilities) = discovery::pinned_kind(client, &kind)
        .await
        .map_err(Error::api(format!("find out how {what} is served")))?;
    let api: Api<DynamicObject> = match (&object.metadata.namespace, capabilities.scope) {
        (_, discovery::Scope::Cluster) => Api::all_with(client.clone(), &resource),
        (Some(namespace), _) => Api::namespaced_with(client.clone(), namespace, &resource),
        (None, _) => Api::namespaced_with(client.clone(), "default", &resource),
    };
    let params = PatchParams::apply(MANAGER).force();
    let applied = api
        .patch(name, &params, &Patch::Apply(&object))
        .await
        .map_err(Error::api(format!("apply {what}")))?;
    if kind.kind == "CustomResourceDefinition" {
        let api = &api;
        eventually(
            ESTABLISHED_TIMEOUT,
            &format!("{what} to be established"),
            || async move {
                let seen = api.get(name).await?;
                let conditions = seen.data["status"]["conditions"].as_array();
                let is_so = |condition: &Value| condition["type"] == "Established" && condition["status"] == "True";
                if conditions.is_some_and(|conditions| conditions.iter().any(is_so)) {
                    Ok(())
                } else {
                    Err(format!("its status is {}", seen.data["status"]).into())
                }
            },
        )
        .await?;
    }
    Ok(applied)
}

/// Creates a namespace, and waits for its default service account if `accounts` says that the control plane makes one.
pub async fn create_namespace(client: &Client, name: &str, accounts: bool) -> Result<()> {
    let mut namespace = Namespace::default();
    namespace.metadata.name = Some(name.to_owned());
    let created = Api::<Namespace>::all(client.clone())
        .create(&PostParams::default(), &namespace)
        .await;
    created.map_err(Error::api(format!("create the namespace {name}")))?;
    if accounts {
        let accounts = &Api::<k8s_openapi::api::core::v1::ServiceAccount>::namespaced(client.clone(), name);
        eventually(
            Duration::from_secs(20),
            &format!("the default service account of {name}"),
            || async move {
                accounts.get("default").await?;
                Ok(())
            },
        )
        .await?;
    }
    Ok(())
}
