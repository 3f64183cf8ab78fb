//! What happens behind the bottleneck: loss, outages, damage, doubles, jitter and order.

use crate::world::*;
use ropewalk_netem::{Jitter, LinkModel, Loss, Outages, Packet, Pareto, Probability, Rate, Reordering};
use std::collections::BTreeSet;
use std::time::Duration;

const COUNT: u64 = 100_000;

fn p(fraction: f64) -> Probability {
    Probability::new(fraction).unwrap()
}

/// A gigabit without any delay.
fn fast() -> LinkModel {
    LinkModel {
        queue: "1GB".parse().unwrap(),
        ..LinkModel::new(Rate::megabits_per_second(1000), Duration::ZERO)
    }
}

/// What arrives of `COUNT` segments, in super-packets of so many.
fn sent_over(model: &LinkModel, segments: u32) -> World {
    let mut world = World::new(model);
    for number in (0..COUNT).step_by(segments as usize) {
        world.send_at(Duration::from_micros(number), Cargo::number(number).segments(segments));
    }
    world.run();
    world
}

#[test]
fn loss_is_decided_for_each_segment_of_a_super_packet() {
    let model = LinkModel { loss: Loss::Random(p(0.027)), ..fast() };
    let (single, large) = (sent_over(&model, 1), sent_over(&model, 10));
    let lost = single.counters().dropped.loss.segments;
    assert_binomial(lost, COUNT, 0.027);
    assert_eq!(single.numbers().len() as u64, COUNT - lost);
    assert_eq!(large.numbers(), single.numbers(), "the same seed loses the same segments");
}

#[test]
fn what_was_before_and_behind_a_lost_segment_goes_on_in_one_piece() {
    let world = sent_over(&LinkModel { loss: Loss::Random(p(0.01)), ..fast() }, 10);
    let pieces: Vec<_> = world.arrived.iter().map(|(_, packet)| packet.numbers()).collect();
    // Two pieces of the same super-packet have a lost segment between them.
    let joined =
        |pair: &[std::ops::Range<u64>]| pair[0].end == pair[1].start && !pair[1].start.is_multiple_of(10);
    assert!(!pieces.windows(2).any(joined));
    assert!(pieces.len() > 10_000, "some are cut");
}

#[test]
fn what_is_lost_on_the_line_has_taken_its_time_at_the_bottleneck() {
    let model = LinkModel { loss: Loss::Random(p(0.5)), ..packet_each_millisecond() };
    let mut world = World::new(&model);
    for number in 0..100 {
        world.send_at(Duration::ZERO, Cargo::number(number));
    }
    world.run();
    assert!(world.arrived.iter().all(|(at, packet)| *at == ms(packet.number + 1)));
}

#[test]
fn flipped_bits_and_doubles_are_as_frequent_as_they_should_be_and_are_counted() {
    let world = sent_over(&LinkModel { corruption: p(0.01), duplication: p(0.02), ..fast() }, 10);
    let counters = world.counters();
    assert_binomial(counters.corrupted.segments, COUNT, 0.01);
    assert_binomial(counters.duplicated.segments, COUNT, 0.02);
    let originals = world.arrived.iter().map(|(_, packet)| packet).filter(|packet| !packet.is_copy);
    let damaged = originals.filter(|packet| packet.flipped_bit.is_some()).count() as u64;
    assert_eq!(damaged, counters.corrupted.segments);
    let copies = world.arrived.iter().filter(|(_, packet)| packet.is_copy).count() as u64;
    assert_eq!(copies, counters.duplicated.segments);
    assert_eq!(world.numbers().len() as u64, COUNT + copies);
}

#[test]
fn a_double_comes_right_after_its_original() {
    let world = sent_over(&LinkModel { duplication: p(1.0), ..fast() }, 1);
    let numbers = world.numbers();
    assert!(numbers.chunks(2).zip(0..).all(|(pair, number)| pair == [number, number]));
}

#[test]
fn one_kind_of_fault_leaves_the_decisions_of_the_others_alone() {
    let damaged = |model: &LinkModel| -> BTreeSet<(u64, Option<u64>)> {
        let world = sent_over(model, 10);
        let packets = world.arrived.into_iter().map(|(_, packet)| packet);
        packets
            .filter(|packet| packet.flipped_bit.is_some())
            .map(|packet| (packet.number, packet.flipped_bit))
            .collect()
    };
    let segments =
        |damaged: &BTreeSet<(u64, Option<u64>)>| damaged.iter().map(|one| one.0).collect::<BTreeSet<_>>();
    let alone = damaged(&LinkModel { corruption: p(0.01), ..fast() });
    let with_doubles = damaged(&LinkModel { corruption: p(0.01), duplication: p(0.3), ..fast() });
    assert_eq!(alone, with_doubles);
    let lossy = damaged(&LinkModel { corruption: p(0.01), loss: Loss::Random(p(0.1)), ..fast() });
    assert!(segments(&lossy).is_subset(&segments(&alone)) && lossy.len() < alone.len());
}

#[test]
fn an_outage_loses_everything_while_it_lasts() {
    let length = Pareto { alpha: 1.1, min: span("50ms"), max: span("10s") };
    let outages = Some(Outages { every: span("1s"), length });
    let mut world = World::new(&LinkModel { outages, ..packet_each_millisecond() });
    world.send_steadily(COUNT, ms(1));
    world.run();
    let numbers = world.numbers();
    let gaps: Vec<u64> =
        numbers.windows(2).map(|pair| pair[1] - pair[0] - 1).filter(|gap| *gap > 0).collect();
    assert!(gaps.len() > 20, "{}", gaps.len());
    assert!(gaps.iter().all(|gap| (50..=10_000).contains(gap)), "{gaps:?}");
    assert_eq!(world.counters().dropped.outage, packets(COUNT - numbers.len() as u64));
}

#[test]
fn without_jitter_the_delay_is_exact() {
    let mut world = World::new(&LinkModel { delay: span("20ms"), ..packet_each_millisecond() });
    world.send_steadily(1000, ms(2));
    world.run();
    assert!(world.arrived.iter().all(|(at, packet)| *at == ms(2 * packet.number + 21)));
}

#[test]
fn jitter_lengthens_the_way_and_keeps_the_order() {
    let pareto = Pareto { alpha: 1.5, min: span("10us"), max: span("50ms") };
    let normal = Jitter::Normal { mean: span("5ms"), deviation: span("2ms") };
    for jitter in [Jitter::Uniform(span("10ms")), normal, Jitter::Pareto(pareto)] {
        let mut world = World::new(&LinkModel { delay: span("20ms"), jitter, ..packet_each_millisecond() });
        world.send_steadily(10_000, ms(1));
        world.run();
        assert_eq!(world.numbers(), (0..10_000).collect::<Vec<_>>());
        let ways = world.arrived.iter().map(|(at, packet)| *at - ms(packet.number + 1));
        assert!(ways.clone().min().unwrap() >= ms(20));
        assert!(ways.collect::<BTreeSet<_>>().len() > 100);
        assert_eq!(world.counters().reordered.segments, 0);
    }
}

#[test]
fn late_packets_are_overtaken_and_counted() {
    let reordering = Some(Reordering { probability: p(0.1), late: span("3500us") });
    let mut world = World::new(&LinkModel { delay: span("20ms"), reordering, ..packet_each_millisecond() });
    world.send_steadily(10_000, ms(1));
    world.run();
    let late = world.arrived.iter().filter(|(at, packet)| *at > ms(packet.number + 21)).count() as u64;
    assert_binomial(late, 10_000, 0.1);
    // Some are late together with all that would have overtaken them, and are not reordered.
    let reordered = world.counters().reordered.segments;
    assert!(reordered <= late && reordered > late * 9 / 10, "{reordered} of {late}");
    assert!(world.arrived.iter().all(|(at, packet)| {
        let way = *at - ms(packet.number + 1);
        way == ms(20) || way == Duration::from_micros(23_500)
    }));
}

#[test]
fn a_super_packet_is_late_as_a_whole() {
    let reordering = Some(Reordering { probability: p(0.1), late: span("1ms") });
    let world = sent_over(&LinkModel { reordering, ..fast() }, 10);
    assert!(world.arrived.iter().all(|(_, packet)| packet.size().segments() == 10));
}
