//! A seed decides everything: what failed once fails again, in the same way.

use ropewalk_sim::{Reduction, Scenario, run};

const SEEDS: std::ops::RangeInclusive<u64> = 1..=3;

#[test]
fn the_same_seed_has_the_same_history() {
    let reduction = Reduction { operations: 300, ..Reduction::default() };
    for seed in SEEDS {
        let [first, second] = [0, 1].map(|_| run(Scenario::of(seed, &reduction), true));
        assert_eq!(first.violation, None, "seed {seed}");
        let lines = first.trace.iter().flatten().zip(second.trace.iter().flatten());
        for (number, (before, after)) in lines.enumerate() {
            assert_eq!(before, after, "seed {seed}, line {number}");
        }
        assert_eq!(first.trace.map(|lines| lines.len()), second.trace.map(|lines| lines.len()));
        assert_eq!((first.tally, first.virtual_time), (second.tally, second.virtual_time));
    }
}
