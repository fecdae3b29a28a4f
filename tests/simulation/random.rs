//! A world of a seed: some workers, a storm of users and faults, peace, and what must be true then.

use crate::rng::Rng;
use crate::trace::Trace;
use crate::world::{HOUR, MINUTE, Occurrence, SECOND, Weather, World};

/// Lives through the world of a seed; panics at the first invariant that does not hold.
pub fn live_through(seed: u64, trace: Trace) {
    let mut rng = Rng::new(seed ^ 0x5eed);
    let sizes: Vec<Vec<i64>> = (0..rng.between(1, 4))
        .map(|_| (0..rng.between(1, 3)).map(|_| rng.pick(&[1, 2, 4, 8])).collect())
        .collect();
    let workers: Vec<&[i64]> = sizes.iter().map(Vec::as_slice).collect();
    let mut world = World::new(seed, &workers, trace);
    world.truth.room_untrue = rng.chance(600);
    for worker in &mut world.workers {
        worker.fails_early = world.truth.room_untrue && rng.chance(300);
        worker.dying_counts = rng.chance(500);
    }
    world.weather = weather(&mut rng);
    world.claim_length = rng.pick(&[20 * SECOND, 60 * SECOND, 10 * MINUTE]);
    world.turns = rng.between(5, 60) as u32;
    world.at(0, Occurrence::Mischief);

    world.run_until("the storm is over", 4 * HOUR, |world| world.turns == 0);
    world.make_peace();
    world.settle(4 * HOUR, World::unsettled);
    world.assert_foreign_untouched();
    // Retained mirrors go, also those that a clock ten minutes ahead saw finish; then a sweep passes.
    world.run_for(16 * MINUTE);
    world.assert_quiet(25 * MINUTE);

    world.delete_all();
    world.settle(2 * HOUR, World::leftover);
    world.assert_foreign_untouched();
    world.assert_quiet(25 * MINUTE);
}

fn weather(rng: &mut Rng) -> Weather {
    if rng.chance(150) {
        return Weather::calm();
    }
    Weather {
        lost_before: rng.pick(&[0, 10, 50, 150]),
        lost_after: rng.pick(&[0, 10, 50, 150]),
        refused: rng.pick(&[0, 10, 50]),
        not_sent: rng.pick(&[0, 10]),
        slow: rng.pick(&[10, 50, 300]),
        early: rng.pick(&[0, 300]),
        watch_lag: rng.pick(&[20, SECOND, 10 * SECOND, 60 * SECOND]),
        sync_lag: rng.pick(&[50, SECOND, 20 * SECOND]),
        grace: rng.pick(&[100, 5 * SECOND, 40 * SECOND]),
    }
}
