//! Several flows: parallel paths, tunnels, and traffic of others.

use crate::world::*;
use ropewalk_netem::{CrossTraffic, LinkModel, Rate, Traffic};
use std::time::Duration;

fn four_paths() -> LinkModel {
    LinkModel { parallel: 4, ..packet_each_millisecond() }
}

/// Sends a packet of each flow, `rounds` times.
fn sent_in_turn(model: &LinkModel, seed: u64, flows: u64, rounds: u64) -> World {
    let mut world = World::seeded(model, seed);
    for number in 0..rounds * flows {
        world.send_at(ms(number / flows), Cargo::number(number).of_flow(number % flows));
    }
    world
}

#[test]
fn flows_spread_evenly_over_parallel_paths() {
    let flows = 4000;
    let world = sent_in_turn(&four_paths(), 1, flows, 1);
    assert_eq!(world.link.path_counters().count(), 4);
    for path in world.link.path_counters() {
        assert_binomial(path.sent.segments, flows, 0.25);
    }
}

#[test]
fn a_flow_stays_on_its_path() {
    let world = sent_in_turn(&four_paths(), 1, 1, 1000);
    let mut used: Vec<u64> = world.link.path_counters().map(|path| path.sent.segments).collect();
    used.sort_unstable();
    assert_eq!(used, [0, 0, 0, 1000]);
}

#[test]
fn another_seed_gives_flows_other_paths() {
    let used = |seed| -> Vec<u64> {
        sent_in_turn(&four_paths(), seed, 100, 1)
            .link
            .path_counters()
            .map(|path| path.sent.segments)
            .collect()
    };
    assert_ne!(used(1), used(2));
    assert_eq!(used(1), used(1));
}

#[test]
fn each_parallel_path_has_the_whole_rate_and_a_queue_of_its_own() {
    let mut world = sent_in_turn(&four_paths(), 1, 64, 1000);
    world.run_until(ms(1000));
    assert_eq!(world.numbers().len(), 4000);
    assert!(world.link.path_counters().all(|path| path.queue_bytes_max == 150_000));
    assert_eq!(world.counters().queue_bytes_max, 150_000);
}

#[test]
fn packets_of_a_flow_keep_their_order_between_those_of_others() {
    let mut world = sent_in_turn(&four_paths(), 1, 3, 1000);
    world.run();
    for flow in 0..3 {
        let numbers: Vec<u64> = world
            .arrived
            .iter()
            .filter(|(_, packet)| packet.flow == flow)
            .map(|(_, packet)| packet.number)
            .collect();
        assert!(numbers.is_sorted());
    }
    assert!(world.arrival_times().is_sorted());
}

#[test]
fn in_a_tunnel_all_flows_take_one_path() {
    let mut world = sent_in_turn(&LinkModel { tunnel: true, ..four_paths() }, 1, 64, 100);
    world.run_until(ms(100));
    assert_eq!(world.link.path_counters().filter(|path| path.sent.segments > 0).count(), 1);
    assert_eq!(world.numbers().len(), 100);
}

#[test]
fn cross_traffic_takes_its_share_of_the_line() {
    let cross_traffic = CrossTraffic::Constant(Rate::megabits_per_second(3));
    let mut world = World::new(&LinkModel { cross_traffic, mtu: 1482, ..packet_each_millisecond() });
    // Three quarters of the line are left, and that is what is sent.
    for number in 0..7500 {
        world.send_at(Duration::from_nanos(number * 4_000_000 / 3), Cargo::number(number));
    }
    world.run_until(Duration::from_secs(10));
    let counters = world.counters();
    assert_eq!(counters.dropped.queue, Traffic::default());
    assert!(world.numbers().len() >= 7498);
    assert!(counters.cross_traffic.carried.segments.abs_diff(2500) <= 2);
}

#[test]
fn a_packet_that_comes_as_another_has_been_sent_finds_its_room() {
    let cross_traffic = CrossTraffic::Constant(Rate::megabits_per_second(12));
    let queue = "1500B".parse().unwrap();
    let mut world = World::new(&LinkModel { cross_traffic, queue, mtu: 1482, ..packet_each_millisecond() });
    assert_eq!(world.link.receive(ms(1000)), None);
    assert_eq!(world.counters().cross_traffic.dropped, Traffic::default());
}

#[test]
fn cross_traffic_that_does_not_yield_leaves_a_full_queue_to_all() {
    let cross_traffic = CrossTraffic::Constant(Rate::megabits_per_second(12));
    let mut world = World::new(&LinkModel { cross_traffic, mtu: 1482, ..packet_each_millisecond() });
    world.send_steadily(10_000, ms(1));
    world.run();
    let counters = world.counters();
    assert_eq!(counters.queue_bytes_max, 150_000);
    let lost = counters.dropped.queue.segments + counters.cross_traffic.dropped.segments;
    assert!((9800..=10_000).contains(&lost), "{lost}: half of what was sent");
}

#[test]
fn bursts_of_cross_traffic_carry_their_mean_rate() {
    let (mean, peak) = (Rate::megabits_per_second(3), Rate::megabits_per_second(12));
    let cross_traffic = CrossTraffic::OnOff { mean, peak, alpha: 3.0, burst: span("20ms") };
    let mut world = World::new(&LinkModel { cross_traffic, mtu: 1482, ..packet_each_millisecond() });
    world.run_until(Duration::ZERO);
    assert_eq!(world.link.receive(Duration::from_secs(1000)), None);
    let carried = world.counters().cross_traffic.carried.segments;
    // 12500 bursts of 20 ms with a deviation of 1/√3 of that, and as many pauses.
    let sigma = 250_000.0 * (2.0 / 3.0 / 12_500.0_f64).sqrt();
    assert!((carried as f64 - 250_000.0).abs() < 6.0 * sigma, "{carried}");
}
