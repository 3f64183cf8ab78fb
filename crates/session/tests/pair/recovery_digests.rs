//! At error recovery level 1 a PDU that is damaged on its way costs time and nothing else.

use crate::world::device::GOOD;
use crate::world::{Damage, Direction, Part, Settings, World};
use pdu::Duration;
use proptest::prelude::*;
use ropewalk_session::parameters::{DigestPreference, Offer};

const BYTES: usize = 20_000;

fn settings(level: u8) -> Settings {
    let offer = Offer {
        error_recovery_level: level,
        header_digest: DigestPreference::Required,
        data_digest: DigestPreference::Required,
        first_burst_bytes: 6000,
        max_burst_bytes: 8000,
        receive_segment_bytes_max: 2048,
        default_time2retain_s: 20,
        ..Offer::default()
    };
    Settings { initiator: offer, target: offer, ..Settings::default() }
}

fn pattern(seed: u8) -> Vec<u8> {
    (0..BYTES).map(|index| (index % 251) as u8 ^ seed).collect()
}

/// A write and a read of other data, with a PDU damaged; `false` if there was no such PDU.
fn survives(mut world: World, damage: Damage) -> bool {
    world.damage = Some(damage);
    world.device.content[BYTES..2 * BYTES].copy_from_slice(&pattern(7));
    let write = world.write(0, &pattern(3));
    let read = world.read(BYTES as u32, BYTES as u32);
    world.run_until(|world| world.completed.len() + world.lost.len() == 2);
    assert_eq!(world.lost.len(), 0, "{damage:?}");
    for task in [write, read] {
        assert_eq!(world.completed[&task].status, GOOD, "{damage:?} {:?}", world.completed);
    }
    assert_eq!(world.completed[&write].data_out_bytes, BYTES as u32, "{damage:?}");
    assert_eq!(world.device.content[..BYTES], pattern(3), "{damage:?}");
    assert_eq!(world.data[&read], pattern(7), "{damage:?}");
    assert!(world.faults.is_empty(), "{damage:?} {:?}", world.faults);
    // The session is as good as new.
    let last = world.read(0, 100);
    world.run_until(|world| world.completed.contains_key(&last));
    world.run_for(Duration::from_secs(30));
    assert!(world.faults.is_empty(), "{damage:?} {:?}", world.faults);
    assert!(world.is_clean(), "{damage:?}");
    world.sent_pdus[damage.direction as usize] > damage.pdu
}

fn each_pdu_in_turn(direction: Direction, part: Part) {
    let mut pdus = 0;
    while survives(World::with_delays(settings(1), &[5]), Damage { direction, pdu: pdus, part }) {
        pdus += 1;
    }
    assert!(pdus > 10, "{pdus}");
}

#[test]
fn a_damaged_header_of_any_pdu_to_the_target_costs_no_task() {
    each_pdu_in_turn(Direction::ToTarget, Part::Header);
}

#[test]
fn damaged_data_of_any_pdu_to_the_target_costs_no_task() {
    each_pdu_in_turn(Direction::ToTarget, Part::Data);
}

#[test]
fn a_damaged_header_of_any_pdu_to_the_initiator_costs_no_task() {
    each_pdu_in_turn(Direction::ToInitiator, Part::Header);
}

#[test]
fn damaged_data_of_any_pdu_to_the_initiator_costs_no_task() {
    each_pdu_in_turn(Direction::ToInitiator, Part::Data);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn connections_that_damage_one_pdu_in_twenty_cost_no_task(
        seed in any::<u64>(),
        level in 1_u8..3,
        delays_ms in proptest::collection::vec(0_u64..30, 1..5),
    ) {
        let mut world = World::with_delays(Settings { seed, ..settings(level) }, &delays_ms);
        world.damaged_permille = 50;
        world.device.content[5 * BYTES..10 * BYTES].copy_from_slice(&pattern(7).repeat(5));
        for piece in 0..5 {
            world.write((piece * BYTES) as u32, &pattern(3));
            world.read(((piece + 5) * BYTES) as u32, BYTES as u32);
        }
        world.run_until(|world| world.completed.len() + world.lost.len() == 10);
        prop_assert!(world.lost.is_empty() && world.faults.is_empty(), "{:?}", world.faults);
        prop_assert!(world.completed.values().all(|completion| completion.status == GOOD));
        prop_assert_eq!(&world.device.content[..5 * BYTES], pattern(3).repeat(5));
        for (task, completion) in &world.completed {
            prop_assert!(completion.data_in_bytes == 0 || world.data[task] == pattern(7));
        }
    }
}
