//! Placement policies compared: how long the same work takes over connections of unequal rates and delays.

use policy::{PlacementPolicy, Rule};
use ropewalk_sim::{Reduction, Scenario, run};
use std::time::Duration;

const SEEDS: std::ops::RangeInclusive<u64> = 1..=12;
const OPERATIONS: u32 = 300;
const CONNECTIONS: u16 = 8;

/// How long all seeds take, on their own clocks, from login to logout. Nothing fails, the number of connections stays, and
/// their rates differ by up to a hundred. Each connection draws its rate when it is made, so that a policy's seed may have others than the next
/// policy's: the sum over the seeds evens that out.
fn time_under(policy: PlacementPolicy) -> Duration {
    let reduction =
        Reduction { operations: OPERATIONS, placement: Some(policy), hosts_max: 1, ..Reduction::default() };
    let times = SEEDS.map(|seed| {
        let mut scenario = Scenario::of(seed, &reduction);
        scenario.faults.clear();
        scenario.target.offer.max_connections = CONNECTIONS;
        scenario.network.bytes_per_ms_min = 50;
        scenario.network.bytes_per_ms_max = 5000;
        for host in &mut scenario.hosts {
            host.tuner = None;
            (host.astray_percent, host.held_back_percent) = (0, 0);
            host.paths.iter_mut().for_each(|path| path.connections = CONNECTIONS);
        }
        let outcome = run(scenario, false);
        assert_eq!(outcome.violation, None, "seed {seed}");
        outcome.virtual_time
    });
    times.sum()
}

#[test]
fn over_unequal_connections_earliest_delivery_is_done_before_every_plain_rule() {
    let ours = time_under(PlacementPolicy::EarliestDelivery);
    for rule in [Rule::RoundRobin, Rule::LeastOutstanding, Rule::LowestRtt] {
        let theirs = time_under(PlacementPolicy::Plain(rule));
        println!("earliest delivery {ours:?}, {} {theirs:?}", PlacementPolicy::Plain(rule));
        assert!(ours < theirs, "earliest delivery took {ours:?}, {rule:?} {theirs:?}");
    }
}
