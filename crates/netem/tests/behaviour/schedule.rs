//! What changes while time goes by.

use crate::world::*;
use ropewalk_netem::{Change, CrossTraffic, Jitter, LinkModel, Loss, Probability, Rate};
use std::time::Duration;

/// A packet each millisecond for a second, with this change at 500 ms.
fn changed(change: Change) -> World {
    let schedule = vec![Change { at: span("500ms"), ..change }];
    let mut world = World::new(&LinkModel { delay: span("20ms"), schedule, ..packet_each_millisecond() });
    world.send_steadily(1000, ms(1));
    world.run();
    world
}

#[test]
fn a_new_rate_holds_for_what_is_sent_after_it() {
    let world = changed(Change { rate: Some(Rate::megabits_per_second(6)), ..Change::default() });
    let times = world.arrival_times();
    assert_eq!(times[499], ms(520));
    assert_eq!(times[509] - times[499], ms(20), "now a packet takes two milliseconds");
    assert!(world.counters().dropped.queue.segments > 100);
}

#[test]
fn a_longer_delay_holds_for_what_is_sent_after_it() {
    let world = changed(Change { delay: Some(span("50ms")), ..Change::default() });
    let times = world.arrival_times();
    assert_eq!([times[498], times[499], times[500]], [ms(519), ms(520), ms(551)]);
}

#[test]
fn a_shorter_delay_does_not_change_the_order() {
    let world = changed(Change { delay: Some(span("5ms")), ..Change::default() });
    assert!(world.numbers().is_sorted());
    let times = world.arrival_times();
    assert_eq!([times[499], times[500], times[514], times[515]], [ms(520), ms(520), ms(520), ms(521)]);
}

#[test]
fn a_shorter_delay_is_noticed_by_one_that_sleeps() {
    let schedule = vec![Change { at: span("1500us"), delay: Some(span("5ms")), ..Change::default() }];
    let mut world = World::new(&LinkModel { delay: span("20ms"), schedule, ..packet_each_millisecond() });
    world.send_at(ms(1), Cargo::number(0));
    world.run();
    assert_eq!(world.arrival_times(), [ms(7)]);
}

#[test]
fn loss_and_jitter_begin_when_they_should() {
    let loss = Some(Loss::Random(Probability::new(0.5).unwrap()));
    let world = changed(Change { loss, jitter: Some(Jitter::Uniform(span("10ms"))), ..Change::default() });
    let numbers = world.numbers();
    assert_eq!(numbers[..499], (0..499).collect::<Vec<_>>());
    assert_binomial(1000 - numbers.len() as u64, 501, 0.5);
    assert_ne!(world.arrival_times().last(), Some(&ms(1020)));
}

#[test]
fn a_line_that_is_down_loses_what_is_sent_and_brings_what_is_under_way() {
    let down = Change { at: span("100ms"), up: Some(false), ..Change::default() };
    let up = Change { at: span("200ms"), up: Some(true), ..Change::default() };
    let schedule = vec![down, up];
    let mut world = World::new(&LinkModel { delay: span("20ms"), schedule, ..packet_each_millisecond() });
    world.send_steadily(300, ms(1));
    world.run();
    let numbers: Vec<u64> = (0..100).chain(200..300).collect();
    assert_eq!(world.numbers(), numbers);
    assert_eq!(world.counters().dropped.down, packets(100));
}

#[test]
fn what_is_lost_while_a_line_is_down_is_not_put_down_to_loss() {
    let schedule = vec![Change { up: Some(false), ..Change::default() }];
    let loss = Loss::Random(Probability::new(0.5).unwrap());
    let mut world = World::new(&LinkModel { loss, schedule, ..packet_each_millisecond() });
    world.send_steadily(100, ms(1));
    world.run();
    assert_eq!(world.counters().dropped.down, packets(100));
}

#[test]
fn one_parallel_path_may_fail_alone() {
    let schedule = vec![Change { path: Some(1), up: Some(false), ..Change::default() }];
    let mut world = World::new(&LinkModel { parallel: 2, schedule, ..packet_each_millisecond() });
    for number in 0..100 {
        world.send_at(ms(number), Cargo::number(number).of_flow(number));
    }
    world.run();
    let lost: Vec<u64> = world.link.path_counters().map(|path| path.dropped.down.segments).collect();
    assert_eq!(lost[0], 0);
    assert_eq!(lost[1], 100 - world.numbers().len() as u64);
    assert!(lost[1] > 20);
}

#[test]
fn cross_traffic_may_come_and_go() {
    let cross_traffic =
        |at, cross_traffic| Change { at, cross_traffic: Some(cross_traffic), ..Change::default() };
    let comes = cross_traffic(span("1s"), CrossTraffic::Constant(Rate::megabits_per_second(6)));
    let goes = cross_traffic(span("3s"), CrossTraffic::None);
    let mut world =
        World::new(&LinkModel { mtu: 1482, schedule: vec![comes, goes], ..packet_each_millisecond() });
    assert_eq!(world.link.receive(Duration::from_secs(10)), None);
    world.run();
    assert_eq!(world.counters().cross_traffic.carried, packets(1000));
}
