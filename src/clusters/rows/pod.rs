//! Pods: the fields that are decoded, and the rows that they become. What is charged for them is the business of `resources::requests`.

use k8s_openapi::api::core::v1::Pod;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use tracing::warn;

use super::Texts;
use crate::api::names;
use crate::capacity::PodRow;
use crate::clusters::slim::{Lite, Meta};
use crate::resources::Amounts;
use crate::resources::requests::{PodSpecLite, PodStatusLite, charged};

/// A pod as a watch decodes it.
#[derive(Debug, Clone)]
pub enum PodLite {
    /// The fields that are read.
    Whole(Box<PodFields>),
    /// Nobody knows what it holds.
    Unreadable(Box<PodPlace>, String),
}

/// The fields of a pod that are read.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct PodFields {
    metadata: Meta,
    spec: PodSpecLite,
    status: PodStatusLite,
}

/// Where a pod is, read by itself when the rest cannot be.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct PodPlace {
    metadata: Meta,
    spec: PlaceSpec,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct PlaceSpec {
    node_name: String,
}

impl Lite for PodLite {
    type Kind = Pod;
}

impl<'de> Deserialize<'de> for PodLite {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <&RawValue>::deserialize(deserializer)?.get();
        match serde_json::from_str(raw) {
            Ok(fields) => Ok(Self::Whole(Box::new(fields))),
            Err(e) => match serde_json::from_str(raw) {
                Ok(place) => Ok(Self::Unreadable(Box::new(place), e.to_string())),
                Err(e) => Err(D::Error::custom(e)),
            },
        }
    }
}

impl PodLite {
    /// The row of this pod. One that cannot be read closes the node that it is on: leaving it out would make the node look free, and calling the capacity
    /// of the whole worker unknown would let one object stop all.
    pub fn row(self, texts: &mut Texts) -> PodRow {
        match self {
            Self::Whole(fields) => fields.row(texts),
            Self::Unreadable(place, message) => {
                warn!(
                    namespace = place.metadata.namespace,
                    name = place.metadata.name,
                    "pod cannot be read, its node is closed: {message}"
                );
                let mut charged = Amounts::default();
                charged.set(texts.shared.intern("pods"), MORE_PODS_THAN_ANY_NODE_TAKES);
                PodRow {
                    namespace: texts.shared.intern(&place.metadata.namespace),
                    name: place.metadata.name.into(),
                    uid: place.metadata.uid.into(),
                    node: texts.shared.intern(&place.spec.node_name),
                    charged,
                    ..PodRow::default()
                }
            }
        }
    }
}

const MORE_PODS_THAN_ANY_NODE_TAKES: i64 = 1 << 32;

impl PodFields {
    fn row(self, texts: &mut Texts) -> PodRow {
        PodRow {
            namespace: texts.shared.intern(&self.metadata.namespace),
            name: self.metadata.name.as_str().into(),
            uid: self.metadata.uid.as_str().into(),
            node: texts.shared.intern(self.spec.node_name.as_deref().unwrap_or_default()),
            charged: charged(&self.spec, &self.status, &mut texts.resources),
            job_uid: self
                .metadata
                .labels
                .get(names::JOB_UID)
                .map(|uid| texts.shared.intern(uid)),
            owner: self
                .metadata
                .owner_references
                .iter()
                .find(|owner| owner.controller && self.metadata.labels.contains_key(names::JOB_UID))
                .map(|owner| texts.shared.intern(&owner.uid)),
            running: self.status.phase.as_deref() == Some("Running"),
            deleting: self.metadata.deletion_timestamp.is_some(),
        }
    }
}
