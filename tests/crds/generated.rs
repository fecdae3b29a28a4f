//! What can be said of the CRDs without an API server.

use std::fs;
use std::path::Path;

use multikueue::api::crds::{crds, crds_yaml};
use serde_json::Value;

#[test]
fn the_committed_files_are_what_the_types_say() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("crds");
    for (name, text) in crds_yaml().unwrap() {
        let path = directory.join(&name);
        if std::env::var_os("UPDATE_CRDS").is_some() {
            fs::create_dir_all(&directory).unwrap();
            fs::write(&path, &text).unwrap();
        }
        let committed = fs::read_to_string(&path).unwrap_or_default();
        assert!(
            committed == text,
            "crds/{name} is not what the types say: UPDATE_CRDS=1 cargo test --test crds"
        );
    }
}

#[test]
fn a_crd_fits_into_the_annotation_of_a_client_side_apply() {
    for crd in crds() {
        let size = serde_json::to_vec(&crd).unwrap().len();
        assert!(size < 100 * 1024, "{:?} has {size} bytes", crd.metadata.name);
    }
}

/// Calls `visit` with the path and the schema of every property below.
fn properties(path: &str, schema: &Value, visit: &mut impl FnMut(&str, &Value)) {
    if let Some(map) = schema.get("properties").and_then(Value::as_object) {
        for (name, property) in map {
            let path = format!("{path}.{name}");
            visit(&path, property);
            properties(&path, property, visit);
        }
    }
    for inner in ["items", "additionalProperties"] {
        if let Some(schema) = schema.get(inner) {
            properties(&format!("{path}[]"), schema, visit);
        }
    }
}

fn every_property(mut visit: impl FnMut(&str, &Value)) {
    for crd in crds() {
        let schema = serde_json::to_value(&crd.spec.versions[0].schema).unwrap();
        let root = &schema["openAPIV3Schema"];
        visit(&crd.spec.names.kind, root);
        let mut count = 0;
        properties(&crd.spec.names.kind, root, &mut |path, schema| {
            count += 1;
            visit(path, schema);
        });
        assert!(count > 20, "the walk saw {count} properties only");
    }
}

#[test]
fn every_field_is_documented() {
    every_property(|path, schema| {
        let text = schema["description"].as_str().unwrap_or_default();
        assert!(text.len() > 8 && text.ends_with('.'), "{path}: {text:?}");
    });
}

#[test]
fn no_field_is_nullable_but_the_status_as_a_whole() {
    every_property(|path, schema| {
        let whole = path.ends_with(".status") && path.matches('.').count() == 1;
        assert!(whole || schema.get("nullable").is_none(), "{path}");
    });
}
