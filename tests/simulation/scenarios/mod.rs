//! Named lives in calm weather: what a user sees, step by step, and the same with one blow after every step.

mod blows;
mod lives;
mod workers;

use crate::trace::Trace;
use crate::world::World;

/// Two workers with one node of eight devices each.
fn two_workers(name: &str) -> World {
    World::new(1, &[&[8], &[8]], Trace::on(name))
}

fn one_worker(name: &str) -> World {
    World::new(1, &[&[8]], Trace::on(name))
}
