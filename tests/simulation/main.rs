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
mod deeds;
mod hands;
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
mod serving;
mod trace;
mod views;
mod watches;
mod worker;
mod world;

use std::panic::catch_unwind;
use std::sync::atomic::{AtomicU64, Ordering};

use trace::Trace;

#[test]
fn kept_seeds_hold() {
    for (seed, showed) in seeds::KEPT {
        random::live_through(*seed, Trace::on(format!("SEED={seed}, which showed: {showed}")));
    }
}

/// `SIM_SEEDS` worlds (2,000), from `SIM_FIRST` (0) on.
#[test]
fn random_worlds_hold() {
    let number = |name: &str, default: u64| {
        std::env::var(name)
            .ok()
            .and_then(|text| text.parse().ok())
            .unwrap_or(default)
    };
    let first = number("SIM_FIRST", 0);
    let next = AtomicU64::new(first);
    let last = first + number("SIM_SEEDS", 2000);
    let live = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= last {
                return;
            }
            if catch_unwind(|| random::live_through(seed, Trace::off())).is_err() {
                eprintln!("SEED={seed} failed; once more with its trace");
                random::live_through(seed, Trace::on(format!("SEED={seed}")));
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(live);
        }
    });
}

/// Lives through the world of `SEED` with its trace; without one there is nothing to replay.
#[test]
fn replay() {
    if let Some(seed) = std::env::var("SEED").ok().and_then(|text| text.parse().ok()) {
        random::live_through(seed, Trace::on(format!("SEED={seed}")));
    }
}
