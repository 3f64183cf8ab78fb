//! What each flow may send: policers and shapers.

use crate::world::*;
use ropewalk_netem::{Bytes, Cap, LinkModel, Rate};
use std::time::Duration;

/// 12 Mbit/s: one packet each millisecond, and ten at once.
fn policed() -> LinkModel {
    capped(Cap::Police { rate: Rate::megabits_per_second(12), burst: Bytes(15_000) })
}

/// The same, and fifty may wait.
fn shaped() -> LinkModel {
    capped(Cap::Shape { rate: Rate::megabits_per_second(12), burst: Bytes(15_000), queue: Bytes(75_000) })
}

/// A link that is much faster than the cap: a packet takes 1.2 µs.
fn capped(cap: Cap) -> LinkModel {
    LinkModel {
        cap,
        queue: "1MB".parse().unwrap(),
        ..LinkModel::new(Rate::megabits_per_second(10_000), Duration::ZERO)
    }
}

#[test]
fn a_policer_passes_a_burst_and_drops_the_rest() {
    let mut world = World::new(&policed());
    for number in 0..15 {
        world.send_at(Duration::ZERO, Cargo::number(number));
    }
    world.run();
    assert_eq!(world.numbers(), (0..10).collect::<Vec<_>>());
    assert_eq!(world.counters().dropped.policer, packets(5));
}

#[test]
fn a_policer_saves_up_no_more_than_a_burst() {
    let mut world = World::new(&policed());
    for number in 0..15 {
        world.send_at(Duration::from_secs(3600), Cargo::number(number));
    }
    world.run();
    assert_eq!(world.numbers().len(), 10);
}

#[test]
fn a_policer_passes_exactly_its_rate_in_the_long_run() {
    let mut world = World::new(&policed());
    world.send_steadily(100_000, Duration::from_micros(100));
    world.run();
    // Ten seconds at one each millisecond, and the burst.
    let passed = world.numbers().len();
    assert!((10_009..=10_010).contains(&passed), "{passed}");
}

#[test]
fn a_policer_cuts_a_super_packet_where_the_burst_ends() {
    let mut world = World::new(&policed());
    world.send_at(Duration::ZERO, Cargo::number(0).segments(8));
    world.send_at(Duration::ZERO, Cargo::number(8).segments(8));
    world.send_at(ms(3), Cargo::number(16).segments(8));
    world.run();
    assert_eq!(world.numbers(), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 17, 18]);
}

#[test]
fn a_shaper_passes_a_burst_and_lets_the_rest_wait() {
    let mut world = World::new(&shaped());
    for number in 0..70 {
        world.send_at(Duration::ZERO, Cargo::number(number));
    }
    assert_eq!(world.counters().in_flight, packets(60), "ten in the link's queue, fifty in the shaper's");
    world.run();
    assert_eq!(world.numbers(), (0..60).collect::<Vec<_>>());
    assert_eq!(world.counters().dropped.shaper, packets(10));
    let times = world.arrival_times();
    let on_the_line = Duration::from_nanos(1200);
    assert_eq!(times[9], on_the_line * 10);
    assert!(times[10..].iter().zip(1..).all(|(at, waited)| *at == ms(waited) + on_the_line));
}

#[test]
fn a_shaper_passes_exactly_its_rate_in_the_long_run() {
    let mut world = World::new(&shaped());
    world.send_steadily(100_000, Duration::from_micros(100));
    world.run_until(Duration::from_secs(10));
    let passed = world.numbers().len();
    assert!((10_009..=10_010).contains(&passed), "{passed}");
}

#[test]
fn every_flow_has_a_cap_of_its_own() {
    for model in [policed(), shaped()] {
        let mut world = World::new(&model);
        for number in 0..40_000 {
            let at = Duration::from_micros(100) * u32::try_from(number).unwrap();
            world.send_at(at, Cargo::number(number).of_flow(number % 4));
        }
        world.run_until(Duration::from_secs(4));
        // Each flow sends 2.5 packets a millisecond, and one of them passes.
        let by_flow = world.segments_by_flow(4);
        assert!(by_flow.iter().all(|passed| (4008..=4011).contains(passed)), "{by_flow:?}");
    }
}

#[test]
fn flows_in_a_tunnel_share_one_cap() {
    let mut world = World::new(&LinkModel { tunnel: true, ..policed() });
    for number in 0..40 {
        world.send_at(Duration::ZERO, Cargo::number(number).of_flow(number % 4));
    }
    world.run();
    assert_eq!(world.numbers().len(), 10);
}

#[test]
fn flows_that_come_and_go_do_not_help_each_other() {
    // Ten thousand flows of one packet each are forgotten meanwhile, the one that is at its limit is not.
    let mut world = World::new(&policed());
    for number in 0..10_000 {
        let at = Duration::from_micros(100) * u32::try_from(number).unwrap();
        world.send_at(at, Cargo::number(number).of_flow(0));
        world.send_at(at, Cargo::number(number).of_flow(number + 1));
    }
    world.run();
    let by_flow = world.segments_by_flow(10_001);
    assert!((1009..=1010).contains(&by_flow[0]), "{}", by_flow[0]);
    assert!(by_flow[1..].iter().all(|passed| *passed == 1));
}
