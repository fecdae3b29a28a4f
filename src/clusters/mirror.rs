//! Mirrors: from the JSON of a worker's object to the view that the core sees. What a kind says of itself is read by `workload`.

use serde::Deserialize;
use serde_json::Value;

use super::slim::Meta;
use super::views::{ViewError, version};
use crate::api::{JobKey, MirrorIdentity, names};
use crate::lifecycle::view::MirrorView;
use crate::workload::TemplateKind;

/// A mirror, or a stranger's object of its name, of its JSON.
pub fn mirror(kind: TemplateKind, text: &str) -> Result<MirrorView, ViewError> {
    let form = |e: serde_json::Error| ViewError::Form(e.to_string());
    let object: Value = serde_json::from_str(text).map_err(form)?;
    let metadata = object
        .get("metadata")
        .map_or_else(|| Ok(Meta::default()), Meta::deserialize)
        .map_err(form)?;
    let (state, raw_status) = kind.workload().read(&object).map_err(form)?;
    Ok(MirrorView {
        kind,
        key: JobKey::new(&metadata.namespace, &metadata.name),
        resource_version: version(&metadata.resource_version)?,
        deleting: metadata.deletion_timestamp.is_some(),
        identity: MirrorIdentity::read(&metadata.labels, &metadata.annotations),
        nonce: metadata.annotations.get(names::NONCE).cloned().unwrap_or_default(),
        state,
        raw_status,
        uid: metadata.uid.into(),
    })
}
