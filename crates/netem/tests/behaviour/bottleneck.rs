//! The rate, the delay and the queue.

use crate::world::*;
use ropewalk_netem::{CoDel, LinkModel, Packet, PathModel, Rate, Size, Traffic};
use std::time::Duration;

#[test]
fn a_packet_arrives_when_it_has_been_sent_and_its_delay_is_over() {
    let mut world = World::new(&LinkModel { delay: span("20ms"), ..packet_each_millisecond() });
    for number in 0..3 {
        world.send_at(ms(5), Cargo::number(number));
    }
    world.run();
    assert_eq!(world.arrival_times(), [ms(26), ms(27), ms(28)]);
    assert_eq!(world.numbers(), [0, 1, 2]);
}

#[test]
fn a_link_says_exactly_when_to_look_again() {
    let mut world = World::new(&LinkModel { delay: span("20ms"), ..packet_each_millisecond() });
    assert_eq!(world.link.next_event(), None);
    world.link.send(ms(5), Cargo::number(0));
    assert_eq!(world.link.next_event(), Some(ms(26)));
    assert_eq!(world.link.receive(ms(26) - Duration::from_nanos(1)), None);
    assert!(world.link.receive(ms(26)).is_some());
    assert_eq!(world.link.next_event(), None);
}

#[test]
fn the_rate_is_exact_over_a_long_time() {
    // 1000 bytes at 144 Mbit/s are 55555.5… ns.
    let mut world = World::new(&LinkModel::new(Rate::megabits_per_second(144), Duration::ZERO));
    for number in 0..180_000_u64 {
        let queue_is_never_empty = Duration::from_nanos(number * 55_555);
        world.send_at(queue_is_never_empty, Cargo::number(number).of_size(Size::single(982)));
    }
    world.run();
    assert_eq!(world.arrived.last().map(|(at, _)| *at), Some(Duration::from_secs(10)));
}

#[test]
fn framing_counts_in_the_rate() {
    let goodput = |framing| {
        let model = LinkModel { framing, ..LinkModel::new(Rate::megabits_per_second(900), ms(20)) };
        let mut world = World::new(&model);
        for number in 0..1000 {
            world.send_at(Duration::ZERO, Cargo::number(number).of_size(Size::single(1500)));
        }
        world.run();
        let sent = world.arrived.last().unwrap().0 - ms(20);
        1000.0 * 1448.0 * 8.0 / sent.as_secs_f64() / 1e6
    };
    assert_eq!([goodput(0).round(), goodput(18).round(), goodput(38).round()], [869.0, 858.0, 847.0]);
}

#[test]
fn a_full_queue_drops_what_comes_last() {
    let mut world = World::new(&packet_each_millisecond());
    for number in 0..150 {
        world.send_at(Duration::ZERO, Cargo::number(number));
    }
    assert_eq!(world.link.queue_bytes(), 150_000);
    world.run();
    assert_eq!(world.numbers(), (0..100).collect::<Vec<_>>());
    assert_eq!(world.counters().dropped.queue, packets(50));
    assert_eq!(world.counters().queue_bytes_max, 150_000);
}

#[test]
fn a_packet_leaves_the_queue_with_its_last_bit() {
    let mut world = World::new(&packet_each_millisecond());
    world.link.send(Duration::ZERO, Cargo::number(0));
    world.link.receive(ms(1) - Duration::from_nanos(1));
    assert_eq!(world.link.queue_bytes(), 1500);
    world.link.receive(ms(1));
    assert_eq!(world.link.queue_bytes(), 0);
}

#[test]
fn a_queue_of_one_bandwidth_delay_product_holds_a_round_trip() {
    let model = PathModel::symmetric(LinkModel::new(Rate::megabits_per_second(144), ms(20)));
    assert_eq!(model.forward.queue_bytes(model.round_trip()), 720_000);
    let near = LinkModel::new(Rate::megabits_per_second(144), Duration::ZERO);
    assert_eq!(near.queue_bytes(Duration::ZERO), 16 * 1518, "at least 16 packets");
}

#[test]
fn only_the_segments_that_find_no_room_are_cut_off_a_super_packet() {
    let mut world = World::new(&LinkModel { queue: "9kB".parse().unwrap(), ..packet_each_millisecond() });
    world.send_at(Duration::ZERO, Cargo::number(0).segments(4));
    world.send_at(Duration::ZERO, Cargo::number(4).segments(4));
    world.send_at(Duration::ZERO, Cargo::number(8).segments(4));
    world.run();
    assert_eq!(world.numbers(), [0, 1, 2, 3, 4, 5]);
    assert_eq!(world.arrival_times(), [ms(4), ms(6)], "with its last bit");
    assert_eq!(world.counters().dropped.queue, packets(6));
}

#[test]
fn a_packet_that_is_longer_than_the_mtu_is_lost() {
    let mut world = World::new(&packet_each_millisecond());
    for (number, bytes) in [(0, 1500), (1, 1501)] {
        world.send_at(Duration::ZERO, Cargo::number(number).of_size(Size::single(bytes)));
    }
    world.run();
    assert_eq!(world.numbers(), [0]);
    assert_eq!(world.counters().dropped.oversize, Traffic { segments: 1, bytes: 1519 });
}

/// A burst fills the queue, and then as much comes as the line can send. How long the last of it waits.
fn standing_wait(model: &LinkModel) -> Duration {
    let mut world = World::new(model);
    for number in 0..90 {
        world.send_at(Duration::ZERO, Cargo::number(number));
    }
    for number in 90..20_000 {
        world.send_at(ms(number - 90), Cargo::number(number));
    }
    world.run();
    let (arrived, last) = world.arrived.last().unwrap();
    *arrived - ms(last.number - 90)
}

#[test]
fn codel_cuts_a_standing_queue_that_drop_tail_leaves() {
    let drop_tail = packet_each_millisecond();
    let codel = LinkModel { codel: Some(CoDel::default()), ..drop_tail.clone() };
    assert!(standing_wait(&drop_tail) >= ms(90));
    assert!(standing_wait(&codel) <= ms(6));
}

#[test]
fn codel_drops_from_those_that_do_not_yield_as_often_as_its_pseudocode() {
    let model = LinkModel { codel: Some(CoDel::default()), ..packet_each_millisecond() };
    let mut world = World::new(&model);
    world.send_steadily(30_000, Duration::from_micros(900));
    world.run();
    // What RFC 8289's pseudocode does with the same arrivals, written down in another language.
    assert_eq!(world.counters().dropped.codel, packets(2956));
    assert_eq!(world.counters().dropped.queue, packets(26));
}

#[test]
fn codel_lets_a_short_burst_pass() {
    let model = LinkModel { codel: Some(CoDel::default()), ..packet_each_millisecond() };
    let mut world = World::new(&model);
    for number in 0..90 {
        world.send_at(Duration::ZERO, Cargo::number(number));
    }
    world.run();
    assert_eq!(world.numbers().len(), 90);
}

#[test]
fn codel_cuts_one_segment_off_a_super_packet() {
    let model = LinkModel {
        codel: Some(CoDel::default()),
        queue: "15MB".parse().unwrap(),
        ..packet_each_millisecond()
    };
    let mut world = World::new(&model);
    for number in 0..40 {
        world.send_at(Duration::ZERO, Cargo::number(number * 10).segments(10));
    }
    world.run();
    let dropped = world.counters().dropped.codel.segments;
    assert!((2..20).contains(&dropped), "{dropped}");
    assert_eq!(world.numbers().len() as u64, 400 - dropped);
    assert!(world.arrived.iter().all(|(_, packet)| packet.size().segments() >= 9));
}

#[test]
fn codel_marks_those_that_understand_and_drops_only_the_others() {
    let codel = CoDel { ecn: true, ..CoDel::default() };
    let never_full = "15MB".parse().unwrap();
    let model = LinkModel { codel: Some(codel), queue: never_full, ..packet_each_millisecond() };
    let mut world = World::new(&model);
    for number in 0..5000 {
        let packet = Cargo { understands_marks: number % 2 == 0, ..Cargo::number(number) };
        world.send_at(Duration::from_micros(900) * u32::try_from(number).unwrap(), packet);
    }
    world.run();
    let arrived = world.arrived.iter().map(|(_, packet)| packet);
    let (understand, others): (Vec<_>, Vec<_>) = arrived.partition(|packet| packet.understands_marks);
    assert_eq!(understand.len(), 2500, "none of them is lost");
    let marked = understand.iter().filter(|packet| packet.is_marked).count() as u64;
    assert!(marked > 10);
    assert_eq!(world.counters().marked, packets(marked));
    let dropped = 2500 - others.len() as u64;
    assert!(dropped > 10);
    assert_eq!(world.counters().dropped.codel, packets(dropped));
}
