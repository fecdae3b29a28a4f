//! A walk through a JSON document that knows where it is, so that an error can name the field.

use serde_json::{Map, Value};

use super::error::TemplateError;

/// A field of a document: its path, and what stands there. Null is absent, as it is to the API server.
#[derive(Debug, Clone)]
pub(crate) struct Field<'a> {
    path: String,
    value: Option<&'a Value>,
}

impl<'a> Field<'a> {
    /// The document as a whole.
    pub(crate) fn root(path: &str, value: &'a Value) -> Self {
        Self {
            path: path.to_owned(),
            value: Some(value).filter(|value| !value.is_null()),
        }
    }

    /// What stands there.
    pub(crate) fn value(&self) -> Option<&'a Value> {
        self.value
    }

    /// The field `name` of this object; absent when this is.
    pub(crate) fn get(&self, name: &str) -> Result<Self, TemplateError> {
        Ok(self.child(name, self.object()?.and_then(|map| map.get(name))))
    }

    /// The field at the end of a path of names.
    pub(crate) fn at(&self, names: &[&str]) -> Result<Self, TemplateError> {
        names.iter().try_fold(self.clone(), |field, name| field.get(name))
    }

    fn child(&self, name: &str, value: Option<&'a Value>) -> Self {
        let path = if name.contains(['.', '/']) {
            format!("{}[{name}]", self.path)
        } else {
            format!("{}.{name}", self.path)
        };
        Self {
            path,
            value: value.filter(|value| !value.is_null()),
        }
    }

    fn object(&self) -> Result<Option<&'a Map<String, Value>>, TemplateError> {
        self.typed("an object", Value::as_object)
    }

    /// Names and fields of this object, in its order.
    pub(crate) fn entries(&self) -> Result<Vec<(&'a str, Self)>, TemplateError> {
        let map = self.object()?;
        Ok(map
            .into_iter()
            .flatten()
            .map(|(name, value)| (name.as_str(), self.child(name, Some(value))))
            .collect())
    }

    /// The items of this list.
    pub(crate) fn items(&self) -> Result<Vec<Self>, TemplateError> {
        let list = self.typed("a list", Value::as_array)?;
        Ok(list
            .into_iter()
            .flatten()
            .enumerate()
            .map(|(index, value)| Self::root(&format!("{}[{index}]", self.path), value))
            .collect())
    }

    /// A text.
    pub(crate) fn text(&self) -> Result<Option<&'a str>, TemplateError> {
        self.typed("a string", Value::as_str)
    }

    /// The texts of this list.
    pub(crate) fn texts(&self) -> Result<Vec<&'a str>, TemplateError> {
        self.items()?
            .iter()
            .map(|item| item.text()?.ok_or_else(|| item.invalid("a string")))
            .collect()
    }

    /// A text that must be there.
    pub(crate) fn required_text(&self) -> Result<&'a str, TemplateError> {
        self.text()?.ok_or_else(|| self.invalid("a string"))
    }

    /// A truth value.
    pub(crate) fn flag(&self) -> Result<Option<bool>, TemplateError> {
        self.typed("true or false", Value::as_bool)
    }

    /// A count: a whole number of 0 or more that fits `int32`, as the fields of a Job are.
    pub(crate) fn count(&self) -> Result<Option<i64>, TemplateError> {
        self.typed("a whole number from 0 to 2147483647", |value| {
            value.as_i64().filter(|count| (0..=i64::from(i32::MAX)).contains(count))
        })
    }

    fn typed<T>(&self, right: &str, read: impl Fn(&'a Value) -> Option<T>) -> Result<Option<T>, TemplateError> {
        self.value
            .map(|value| read(value).ok_or_else(|| self.invalid(right)))
            .transpose()
    }

    /// The error that this field is not what it must be.
    pub(crate) fn invalid(&self, right: &str) -> TemplateError {
        let found = self.value.map_or_else(
            || "missing".to_owned(),
            |value| {
                let text = value.to_string();
                match text.char_indices().nth(80) {
                    Some((end, _)) => format!("{}...", &text[..end]),
                    None => text,
                }
            },
        );
        TemplateError::Invalid {
            path: self.path.clone(),
            found,
            right: right.to_owned(),
        }
    }
}
