//! The CRDs as files, generated from the types.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt as _;

use super::{MultiKueueJob, WorkerCluster};

/// A CRD could not be written as YAML.
#[derive(Debug, thiserror::Error)]
#[error("custom resource definition {name} cannot be written as YAML")]
pub struct CrdError {
    name: String,
    #[source]
    source: serde_saphyr::ser::Error,
}

/// Every CRD of the group.
pub fn crds() -> Vec<CustomResourceDefinition> {
    vec![MultiKueueJob::crd(), WorkerCluster::crd()]
}

/// File name below `crds/` and text of every CRD, as `multikueue crd` prints them and the repository holds them.
pub fn crds_yaml() -> Result<Vec<(String, String)>, CrdError> {
    crds()
        .iter()
        .map(|crd| {
            let text = serde_saphyr::to_string(crd).map_err(|source| CrdError {
                name: crd.metadata.name.clone().unwrap_or_default(),
                source,
            })?;
            Ok((format!("{}.yaml", crd.spec.names.plural), text))
        })
        .collect()
}
