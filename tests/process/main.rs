//! The process, live: leader election against a real API server, and the program as its users start it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on fails"
)]

mod candidate;
mod flags;
mod leader;
mod operator;
mod program;

use bed::{BedOptions, ControlPlaneOptions};

/// `main` is for all tests together; `frozen` is stopped by one of them.
static BED: bed::Shared = bed::Shared::new(|| {
    BedOptions::new()
        .control_plane("main", ControlPlaneOptions::bare())
        .control_plane("frozen", ControlPlaneOptions::bare())
});
