//! The operator, live: the real binary against real API servers, Job controllers and schedulers; KWOK plays the GPU nodes.
//!
//! One bed serves all tests of this binary (see `fixture`): two workers `eu` and `us`, a manager whose operator most tests share, and
//! two managers for tests that need an operator of their own, to kill, to restart, or to cut off. Each test has a namespace, nodes
//! and an accelerator model of its own, so that tests share no room. Everything the operator does is done with the rights of
//! `deploy/manager-role.yaml` and `deploy/worker-role.yaml`, no more.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test ends where its world is not as it should be; what the fixture unwraps is the test's own failure"
)]

mod fixture;

mod apply;
mod capacity;
mod crashes;
mod deletion;
mod failures;
mod foreign;
mod joining;
mod life;
mod namespaces;
mod outages;
mod placement;
mod process;
mod queue;
mod results;
mod suspension;
mod templates;
mod waiting;
