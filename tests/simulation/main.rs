//! The dispatcher against a small model of a manager, its workers, the network between them and their users, all of it a function of a seed.
//!
//! Scenarios are named lives in calm weather; random worlds are storms with invariants checked at every step. A failing seed is printed with what
//! happened last, and `SEED=n cargo test --test simulation replay -- --nocapture` lives through it again (`TRACE=400` shows more of it).

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a simulation ends at the first thing that is wrong; its modules are tests as a whole"
)]
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_possible_wrap,
    reason = "counts and milliseconds of small worlds"
)]
#![allow(
    clippy::struct_excessive_bools,
    clippy::similar_names,
    reason = "facts about a thing are true or not, and a worker's job is no other job"
)]

mod checks;
mod commits;
mod controller;
mod log;
mod manager;
mod mischief;
mod network;
mod object;
mod operator;
mod patch;
mod plan;
mod random;
mod refusal;
mod rng;
mod scenarios;
mod seeds;
mod trace;
mod views;
mod worker;
mod world;

use trace::Trace;

#[test]
fn kept_seeds_hold() {
    for (seed, showed) in seeds::KEPT {
        random::live_through(*seed, Trace::on(format!("SEED={seed}, which showed: {showed}")));
    }
}

/// Lives through the world of `SEED` with its trace; without one there is nothing to replay.
#[test]
fn replay() {
    if let Some(seed) = std::env::var("SEED").ok().and_then(|text| text.parse().ok()) {
        random::live_through(seed, Trace::on(format!("SEED={seed}")));
    }
}
