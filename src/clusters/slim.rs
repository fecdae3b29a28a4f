//! Objects as watches decode them: the few fields that are read, and an object that cannot be read is an error of that object, not of its stream.
//!
//! kube's `DeserializeGuard` does the latter too, but builds a tree of every object first; here an object's text is borrowed, skipped over once and parsed
//! once into the fields that are used.

use std::collections::BTreeMap;
use std::marker::PhantomData;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kube::Resource;
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use std::borrow::Cow;

/// An object as a watch decodes it.
pub trait Lite: DeserializeOwned + Clone + Send + Sync + 'static {
    /// The type of the API whose paths it has.
    type Kind: Resource<DynamicType = ()>;
}

/// What is read of the metadata of every object.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Meta {
    /// Name.
    pub name: String,
    /// Namespace, empty for what has none.
    pub namespace: String,
    /// Uid.
    pub uid: String,
    /// Version.
    pub resource_version: String,
    /// Generation.
    pub generation: i64,
    /// When it was created.
    pub creation_timestamp: Option<Time>,
    /// When its deletion was asked for.
    pub deletion_timestamp: Option<Time>,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    pub annotations: BTreeMap<String, String>,
    /// Finalizers.
    pub finalizers: Vec<String>,
    /// Owners.
    pub owner_references: Vec<OwnerLite>,
}

/// An owner of an object.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct OwnerLite {
    /// Its uid.
    pub uid: String,
    /// It is the one that manages the object.
    pub controller: bool,
}

/// An object of a watch: its key and version, and what could be read of it.
pub struct Slim<T> {
    meta: ObjectMeta,
    /// The object, or why it cannot be read.
    pub object: Result<T, String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[derive(Default)]
struct Key {
    name: Option<String>,
    namespace: Option<String>,
    uid: Option<String>,
    resource_version: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Keyed {
    metadata: Key,
}

impl<T: Lite> Slim<T> {
    fn parse(text: &str) -> Result<Self, serde_json::Error> {
        let Keyed { metadata: key } = serde_json::from_str(text)?;
        Ok(Self {
            meta: ObjectMeta {
                name: key.name,
                namespace: key.namespace,
                uid: key.uid,
                resource_version: key.resource_version,
                ..ObjectMeta::default()
            },
            object: serde_json::from_str(text).map_err(|e| e.to_string()),
        })
    }
}

impl<'de, T: Lite> Deserialize<'de> for Slim<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <&RawValue>::deserialize(deserializer)?;
        Self::parse(raw.get()).map_err(D::Error::custom)
    }
}

impl<T: Clone> Clone for Slim<T> {
    fn clone(&self) -> Self {
        Self {
            meta: self.meta.clone(),
            object: self.object.clone(),
        }
    }
}

impl<T> std::fmt::Debug for Slim<T> {
    // Some of what is watched are Secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Slim")
            .field("name", &self.meta.name)
            .field("namespace", &self.meta.namespace)
            .field("unreadable", &self.object.as_ref().err())
            .field("of", &PhantomData::<T>)
            .finish_non_exhaustive()
    }
}

impl<T: Lite> Resource for Slim<T> {
    type DynamicType = ();
    type Scope = <T::Kind as Resource>::Scope;

    fn kind((): &()) -> Cow<'_, str> {
        T::Kind::kind(&())
    }
    fn group((): &()) -> Cow<'_, str> {
        T::Kind::group(&())
    }
    fn version((): &()) -> Cow<'_, str> {
        T::Kind::version(&())
    }
    fn plural((): &()) -> Cow<'_, str> {
        T::Kind::plural(&())
    }
    fn meta(&self) -> &ObjectMeta {
        &self.meta
    }
    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.meta
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;
    use kube::core::{ObjectList, WatchEvent};

    use super::*;

    #[derive(Debug, Clone, Deserialize)]
    struct Thing {
        metadata: Meta,
        spec: Spec,
    }
    #[derive(Debug, Clone, Deserialize)]
    struct Spec {
        #[serde(rename = "nodeName")]
        node_name: String,
    }
    impl Lite for Thing {
        type Kind = Pod;
    }

    #[test]
    fn a_bad_object_in_a_list_is_an_error_of_that_object_alone() {
        let list: ObjectList<Slim<Thing>> = serde_json::from_str(
            r#"{"apiVersion":"v1","kind":"PodList","metadata":{"resourceVersion":"7"},"items":[
                {"metadata":{"name":"good","namespace":"a","resourceVersion":"1","managedFields":[{"x":1}]},"spec":{"nodeName":"n1","other":[{}]}},
                {"metadata":{"name":"bad","namespace":"a","resourceVersion":"2"},"spec":{"nodeName":7}}]}"#,
        )
        .unwrap();
        let good = list.items[0].object.as_ref().unwrap();
        assert_eq!(
            (good.metadata.name.as_str(), good.spec.node_name.as_str()),
            ("good", "n1")
        );
        assert_eq!(list.items[1].meta().name.as_deref(), Some("bad"));
        assert!(list.items[1].object.as_ref().unwrap_err().contains("expected a string"));
    }

    #[test]
    fn a_bad_object_in_a_watch_keeps_its_name_and_version() {
        let event: WatchEvent<Slim<Thing>> = serde_json::from_str(
            r#"{"type":"MODIFIED","object":{"kind":"Pod","metadata":{"name":"bad","namespace":"a","resourceVersion":"9"},"spec":null}}"#,
        )
        .unwrap();
        let WatchEvent::Modified(slim) = event else {
            panic!("not a change: {event:?}")
        };
        assert_eq!(slim.meta().resource_version.as_deref(), Some("9"));
        slim.object.unwrap_err();
    }
}
