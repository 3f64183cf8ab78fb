//! What holds for every model, whatever is sent over it and however it is driven.

use crate::world::*;
use proptest::prelude::*;
use ropewalk_netem::*;
use std::time::Duration;

prop_compose! {
    fn pareto()(alpha in 1.1..3.0_f64, min in 1..1000_u64, more in 0..100_000_u64) -> Pareto {
        let micros = |number| Span(Duration::from_micros(number));
        Pareto { alpha, min: micros(min), max: micros(min + more) }
    }
}

fn probability() -> impl Strategy<Value = Probability> {
    prop_oneof![Just(0.0), 0.0..0.3, Just(1.0)].prop_map(|fraction| Probability::new(fraction).unwrap())
}

fn some_of(nanoseconds: u64) -> impl Strategy<Value = Span> {
    prop_oneof![Just(0), 0..nanoseconds].prop_map(|number| Span(Duration::from_nanos(number)))
}

fn rate() -> impl Strategy<Value = Rate> {
    (100_000..2_000_000_000_u64).prop_map(Rate::bits_per_second)
}

fn jitter() -> impl Strategy<Value = Jitter> {
    let normal = (some_of(5_000_000), some_of(5_000_000))
        .prop_map(|(mean, deviation)| Jitter::Normal { mean, deviation });
    prop_oneof![
        Just(Jitter::None),
        some_of(10_000_000).prop_map(Jitter::Uniform),
        normal,
        pareto().prop_map(Jitter::Pareto)
    ]
}

fn loss() -> impl Strategy<Value = Loss> {
    let bursts = (0.0..0.3_f64, 1.0..5.0_f64)
        .prop_map(|(rate, length)| Loss::Bursts { rate: Probability::new(rate).unwrap(), length });
    prop_oneof![Just(Loss::None), probability().prop_map(Loss::Random), bursts]
}

fn cap() -> impl Strategy<Value = Cap> {
    let bytes = || (1518..100_000_u64).prop_map(Bytes);
    prop_oneof![
        Just(Cap::None),
        (rate(), bytes()).prop_map(|(rate, burst)| Cap::Police { rate, burst }),
        (rate(), bytes(), bytes()).prop_map(|(rate, burst, queue)| Cap::Shape { rate, burst, queue })
    ]
}

fn cross_traffic() -> impl Strategy<Value = CrossTraffic> {
    let mean = || (1000..10_000_000_u64).prop_map(Rate::bits_per_second);
    let bursts = (mean(), 1.1..3.0_f64).prop_map(|(mean, alpha)| {
        let burst = Span(Duration::from_millis(20));
        CrossTraffic::OnOff { mean, peak: Rate::megabits_per_second(20), alpha, burst }
    });
    prop_oneof![Just(CrossTraffic::None), mean().prop_map(CrossTraffic::Constant), bursts]
}

fn schedule() -> impl Strategy<Value = Vec<Change>> {
    let options = (
        prop::option::of(rate()),
        prop::option::of(some_of(50_000_000)),
        prop::option::of(loss()),
        prop::option::of(cross_traffic()),
        any::<Option<bool>>(),
        prop::option::of(Just(0)),
    );
    let change =
        (some_of(200_000_000), options).prop_map(|(at, (rate, delay, loss, cross_traffic, up, path))| {
            Change { at, path, rate, delay, jitter: None, loss, cross_traffic, up }
        });
    prop::collection::vec(change, 0..4).prop_map(|mut changes| {
        changes.sort_by_key(|change| change.at);
        changes
    })
}

prop_compose! {
    fn faults()(
        loss in loss(),
        outages in prop::option::of(pareto()),
        corruption in probability(),
        duplication in probability(),
        reordering in prop::option::of((probability(), some_of(10_000_000))),
        jitter in jitter(),
    ) -> LinkModel {
        let every = Span(Duration::from_millis(50));
        LinkModel {
            loss,
            outages: outages.map(|length| Outages { every, length }),
            corruption,
            duplication,
            reordering: reordering.map(|(probability, late)| Reordering { probability, late }),
            jitter,
            ..LinkModel::new(Rate::MAX, Duration::ZERO)
        }
    }
}

prop_compose! {
    fn model()(
        faults in faults(),
        rate in rate(),
        delay in some_of(50_000_000),
        framing in 0..40_u32,
        queue in prop_oneof![
            (1540..200_000_u64).prop_map(|bytes| QueueSize::Bytes(Bytes(bytes))),
            (0.1..2.0_f64).prop_map(QueueSize::Bdp)
        ],
        codel in prop::option::of(any::<bool>()),
        cap in cap(),
        parallel in 1..4_u16,
        tunnel in any::<bool>(),
        cross_traffic in cross_traffic(),
        schedule in schedule(),
    ) -> LinkModel {
        // The caps' bursts hold a packet with this framing at least.
        let framing = if cap == Cap::None { framing } else { framing.min(18) };
        let codel = codel.map(|ecn| CoDel { ecn, ..CoDel::default() });
        LinkModel { rate, delay, framing, queue, codel, cap, parallel, tunnel, cross_traffic, schedule, ..faults }
    }
}

/// What is sent, and how long after the last one.
fn sends() -> impl Strategy<Value = Vec<(Duration, Cargo)>> {
    let size = (1..12_u32, 28..1510_u32, 28..1510_u32);
    let packet =
        (0..5_u64, size, any::<bool>()).prop_map(|(flow, (segments, bytes, last), understands_marks)| {
            let size = Size::super_packet(segments, bytes, last);
            Cargo { understands_marks, ..Cargo::number(0).of_flow(flow).of_size(size) }
        });
    let pause = prop_oneof![Just(0), 0..5_000_000_u64].prop_map(Duration::from_nanos);
    prop::collection::vec((pause, packet), 1..200).prop_map(|sends| {
        let (mut now, mut number) = (Duration::ZERO, 0);
        let at_its_time = |(pause, packet): (Duration, Cargo)| {
            now += pause;
            let packet = Cargo { number, ..packet };
            number += u64::from(packet.size().segments());
            (now, packet)
        };
        sends.into_iter().map(at_its_time).collect()
    })
}

fn assert_nothing_is_missing(counters: &Counters) {
    assert_eq!(
        counters.sent + counters.duplicated,
        counters.received + counters.dropped.total() + counters.in_flight
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn whatever_goes_in_comes_out_or_is_counted_as_lost(model in model(), sends in sends(), seed in any::<u64>()) {
        let mut world = World::seeded(&model, seed);
        let limit = model.queue_bytes(model.delay.0 * 2);
        let mut sent = 0;
        for (at, packet) in sends {
            sent += packet.numbers().count() as u64;
            world.send_at(at, packet);
            assert_nothing_is_missing(&world.counters());
            prop_assert!(world.link.queue_bytes() <= limit * u64::from(model.parallel));
        }
        world.run();
        let counters = world.counters();
        assert_nothing_is_missing(&counters);
        world.link.path_counters().for_each(|path| assert_nothing_is_missing(&path));
        prop_assert_eq!(counters.sent.segments, sent);
        prop_assert_eq!(counters.in_flight, Traffic::default());
        prop_assert_eq!(counters.received.segments, world.numbers().len() as u64);
        prop_assert!(counters.queue_bytes_max <= limit);
        let mut originals: Vec<u64> =
            world.arrived.iter().filter(|(_, packet)| !packet.is_copy).flat_map(|(_, packet)| packet.numbers()).collect();
        originals.sort_unstable();
        prop_assert!(originals.is_sorted_by(|one, next| one < next), "something arrived twice");
    }

    #[test]
    fn the_same_seed_gives_the_same_world(model in model(), sends in sends(), seed in any::<u64>()) {
        let run = || {
            let mut world = World::seeded(&model, seed);
            sends.iter().for_each(|(at, packet)| world.send_at(*at, packet.clone()));
            world.run();
            (world.arrived, world.link.counters())
        };
        prop_assert_eq!(run(), run());
    }

    #[test]
    fn what_arrives_when_does_not_depend_on_how_often_one_looks(
        model in model(),
        sends in sends(),
        seed in any::<u64>(),
    ) {
        let mut punctual = World::seeded(&model, seed);
        sends.iter().for_each(|(at, packet)| punctual.send_at(*at, packet.clone()));
        punctual.run();
        let mut late = World::seeded(&model, seed).link;
        sends.iter().for_each(|(at, packet)| late.send(*at, packet.clone()));
        let at_last = std::iter::from_fn(|| late.receive(Duration::from_secs(60)));
        let in_time = punctual.arrived.into_iter().map(|(_, packet)| packet);
        prop_assert_eq!(in_time.collect::<Vec<_>>(), at_last.collect::<Vec<_>>());
    }

    #[test]
    fn a_link_that_does_not_reorder_keeps_the_order_of_each_flow(model in model(), sends in sends()) {
        let mut world = World::new(&LinkModel { reordering: None, ..model });
        sends.into_iter().for_each(|(at, packet)| world.send_at(at, packet));
        world.run();
        for flow in 0..5 {
            let of_flow = world.arrived.iter().filter(|(_, packet)| packet.flow == flow);
            let numbers: Vec<u64> = of_flow.flat_map(|(_, packet)| packet.numbers()).collect();
            prop_assert!(numbers.is_sorted(), "{:?}", numbers);
        }
        prop_assert_eq!(world.counters().reordered, Traffic::default());
    }
}
