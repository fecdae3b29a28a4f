//! The CRDs: generated files, rules, and how `kubectl` sees them.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on fails"
)]

#[path = "crds/generated.rs"]
mod generated;
