//! `multikueue crd`: the custom resource definitions as YAML.

use std::io::Write;

use crate::api::crds::crds_yaml;

use super::error::Error;

/// Writes the custom resource definitions as YAML documents, ready for `kubectl apply --server-side -f -`.
pub fn print(mut out: impl Write) -> Result<(), Error> {
    for (_, yaml) in crds_yaml().map_err(Error::Crd)? {
        writeln!(out, "---\n{}", yaml.trim_end()).map_err(Error::Write)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

    #[test]
    fn what_is_printed_reads_back_as_every_definition() {
        let mut printed = Vec::new();
        super::print(&mut printed).unwrap();
        let text = String::from_utf8(printed).unwrap();
        let documents: Vec<CustomResourceDefinition> = text
            .split("---\n")
            .skip(1)
            .map(|document| serde_saphyr::from_str(document).unwrap())
            .collect();
        assert_eq!(documents, crate::api::crds::crds());
    }
}
