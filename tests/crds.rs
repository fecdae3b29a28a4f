//! The CRDs: generated files, rules, and how `kubectl` sees them.

#[path = "crds/generated.rs"]
mod generated;
