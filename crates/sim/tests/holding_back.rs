//! A placement policy that holds commands back delays them, and loses none.

use ropewalk_sim::{Reduction, Scenario, run};
use std::ops::RangeInclusive;
use std::time::Duration;

const SEEDS: RangeInclusive<u64> = 1..=8;
const OPERATIONS: u32 = 200;

/// The time that a seed takes if so many of a hundred placements are held back. Every operation ends, or the run
/// reports that it hangs.
fn time(seed: u64, held_back_percent: u64) -> Duration {
    let reduction = Reduction { operations: OPERATIONS, ..Reduction::default() };
    let mut scenario = Scenario::of(seed, &reduction);
    scenario.faults.clear();
    scenario.hosts.iter_mut().for_each(|host| host.held_back_percent = held_back_percent);
    let outcome = run(scenario, false);
    assert_eq!(outcome.violation, None, "seed {seed}");
    outcome.virtual_time
}

/// In a few seeds one command that waits for its limit takes longer than all that is held back.
#[test]
fn commands_that_are_held_back_are_late_and_not_lost() {
    let later = SEEDS.filter(|seed| time(*seed, 100) > time(*seed, 0)).count();
    assert!(later > SEEDS.count() / 2, "{later} seeds are later");
}
