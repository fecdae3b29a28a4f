//! The CRDs: generated files, rules, and how people and their tools see our kinds on a real API server.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on fails"
)]

#[path = "crds/changes.rs"]
mod changes;
#[path = "crds/generated.rs"]
mod generated;
#[path = "crds/people.rs"]
mod people;
#[path = "crds/plane.rs"]
mod plane;
#[path = "crds/roles.rs"]
mod roles;
#[path = "crds/rules.rs"]
mod rules;
