//! JSON that travels unread.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

/// A JSON document kept as the bytes it came in, so that fields newer than our types survive (`kube.md`: typed structs drop them).
///
/// A `serde_json::Value` would do the same at five to ten times the memory; queued templates are the bulk of what a manager holds.
/// Cloning shares the bytes. Equality compares text.
#[derive(Clone)]
pub struct RawJson(Arc<RawValue>);

impl RawJson {
    /// The JSON text.
    pub fn get(&self) -> &str {
        self.0.get()
    }

    /// The document as a tree.
    pub fn to_value(&self) -> Value {
        // A RawValue is valid JSON by construction; a depth beyond serde_json's limit is the one way to fail.
        serde_json::from_str(self.0.get()).unwrap_or(Value::Null)
    }

    /// True when two documents say the same, however they are spelled: an API server returns custom objects with sorted keys and its own escapes, so
    /// the text that was written is not the text that comes back.
    pub fn says_the_same(&self, other: &Self) -> bool {
        self == other || self.to_value() == other.to_value()
    }

    /// The document of a tree.
    pub fn from_value(value: &Value) -> Self {
        // Serialising a Value to a string cannot fail: its keys are strings.
        let text = value.to_string();
        RawValue::from_string(text).map_or_else(|_| Self::default(), |raw| Self(Arc::from(raw)))
    }
}

impl Default for RawJson {
    fn default() -> Self {
        Self(Arc::from(RawValue::NULL.to_owned()))
    }
}

impl PartialEq for RawJson {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.get() == other.get()
    }
}

impl Eq for RawJson {}

impl fmt::Debug for RawJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.get())
    }
}

impl Serialize for RawJson {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for RawJson {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Box::<RawValue>::deserialize(deserializer).map(|raw| Self(Arc::from(raw)))
    }
}

impl JsonSchema for RawJson {
    fn schema_name() -> Cow<'static, str> {
        "RawJson".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_fields_order_and_spelling_survive() {
        let text = r#"{"z":1.0,"a":{"futureKnob":"1000m"}}"#;
        let raw: RawJson = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&raw).unwrap(), text);
    }

    #[test]
    fn order_and_escapes_do_not_change_what_a_document_says() {
        let raw = |text: &str| serde_json::from_str::<RawJson>(text).unwrap();
        let (sent, returned) = (raw(r#"{"b":"x<y","a":1}"#), raw(r#"{"a":1,"b":"x\u003cy"}"#));
        assert_ne!(sent, returned);
        assert!(sent.says_the_same(&returned));
        assert!(!sent.says_the_same(&raw(r#"{"a":2,"b":"x<y"}"#)));
    }

    #[test]
    fn a_tree_and_back_is_the_same_document() {
        let value = serde_json::json!({"a": [1, 2, {"b": null}]});
        assert_eq!(RawJson::from_value(&value).to_value(), value);
    }
}
