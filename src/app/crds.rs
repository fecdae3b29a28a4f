//! `multikueue crd`: the custom resource definitions as YAML.

use std::io::Write;

use kube::CustomResourceExt;

use crate::api::{MultiKueueJob, WorkerCluster};

use super::error::Error;

/// Writes the custom resource definitions as YAML documents, ready for `kubectl apply --server-side -f -`.
pub fn print(mut out: impl Write) -> Result<(), Error> {
    for crd in [MultiKueueJob::crd(), WorkerCluster::crd()] {
        let yaml = serde_saphyr::to_string(&crd).map_err(|error| Error::Yaml(error.into()))?;
        writeln!(out, "---\n{}", yaml.trim_end()).map_err(Error::Crds)?;
    }
    Ok(())
}
