//! JSON patch (RFC 6902, the operations that the protocol uses) and merge patch (RFC 7396) as an API server applies them.

use serde_json::{Map, Value};

/// Applies `operations` in order to a copy; the document changes only if all succeed.
pub fn json_patch(document: &mut Value, operations: &Value) -> Result<(), String> {
    let mut copy = document.clone();
    for operation in operations.as_array().ok_or("a JSON patch is an array")? {
        let path = operation["path"].as_str().ok_or("an operation needs a path")?;
        let value = &operation["value"];
        match operation["op"].as_str() {
            // The API server's library takes a member that is not there for null, unlike the RFC.
            Some("test") if copy.pointer(path).unwrap_or(&Value::Null) == value => {}
            Some("test") => return Err(format!("the server rejected our request: test of {path} failed")),
            Some("replace") if copy.pointer(path).is_none() => return Err(format!("replace of missing {path}")),
            Some("add" | "replace") => *member(&mut copy, path)? = value.clone(),
            other => return Err(format!("operation {other:?} is not modelled")),
        }
    }
    *document = copy;
    Ok(())
}

fn member<'a>(document: &'a mut Value, path: &str) -> Result<&'a mut Value, String> {
    let (parent, name) = path.rsplit_once('/').ok_or("a path begins with /")?;
    let name = name.replace("~1", "/").replace("~0", "~");
    document
        .pointer_mut(parent)
        .and_then(Value::as_object_mut)
        .map(|object| object.entry(name).or_insert(Value::Null))
        .ok_or_else(|| format!("no object at {parent}"))
}

/// Merges `patch` into `target`; null removes.
pub fn merge_patch(target: &mut Value, patch: &Value) {
    let Some(patch) = patch.as_object() else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Some(object) = target.as_object_mut() else { return };
    for (name, value) in patch {
        if value.is_null() {
            object.remove(name);
        } else {
            merge_patch(object.entry(name).or_insert(Value::Null), value);
        }
    }
}
