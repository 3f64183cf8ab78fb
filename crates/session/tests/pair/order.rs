//! Commands over connections of different delay.

use crate::world::device::{CHECK_CONDITION, SENSE};
use crate::world::{DEVICE_BYTES, Settings, World};
use pdu::LaneId;

#[test]
fn commands_over_four_connections_of_different_delay_are_executed_in_the_order_of_their_submission() {
    let mut world = World::with_delays(Settings::default(), &[80, 3, 40, 11]);
    let offsets: Vec<u32> = (0..200).map(|index| index * 512).collect();
    for offset in &offsets {
        if offset.is_multiple_of(1024) {
            world.write(*offset, &[1; 512]);
        } else {
            world.read(*offset, 512);
        }
    }
    world.run();
    assert_eq!(world.device.executed, offsets);
    assert_eq!(world.completed.len(), offsets.len());
}

#[test]
fn a_read_sees_the_write_before_it_on_a_slower_connection() {
    let mut world = World::with_delays(Settings::default(), &[100, 1]);
    world.preferred = vec![LaneId(0)];
    world.write(0, &[7; 9000]);
    world.run_until(|world| world.initiator.session.counters().queued_commands == 0);
    world.preferred = vec![LaneId(1)];
    let read = world.read(0, 9000);
    world.run();
    assert_eq!(world.device.executed, [0, 0]);
    assert_eq!(world.completed[&read].data_in_bytes, 9000);
}

#[test]
fn a_small_write_does_not_wait_for_a_large_one_on_the_same_connection() {
    let mut world = World::with_connections(1);
    let large = world.write(0, &vec![1; DEVICE_BYTES as usize - 512]);
    let small = world.write(DEVICE_BYTES - 512, &[2; 512]);
    world.run_until(|world| world.completed.contains_key(&small));
    assert!(!world.completed.contains_key(&large));
    world.run();
    assert!(world.completed.contains_key(&large));
}

#[test]
fn a_refused_command_completes_with_its_sense_data_and_the_data_that_did_not_move() {
    let mut world = World::with_connections(1);
    let refused = world.write(DEVICE_BYTES, &[1; 300_000]);
    world.run();
    let completion = &world.completed[&refused];
    assert_eq!((completion.status, completion.sense.as_slice()), (CHECK_CONDITION, SENSE));
    assert_eq!(completion.underflow_bytes, 300_000);
    assert!(world.is_clean());
}

#[test]
fn a_read_beyond_the_end_says_how_much_is_missing() {
    let mut world = World::with_connections(1);
    let read = world.read(DEVICE_BYTES - 100, 4096);
    world.run();
    let completion = &world.completed[&read];
    assert_eq!((completion.data_in_bytes, completion.underflow_bytes), (100, 3996));
    assert!(world.data[&read][100..].iter().all(|byte| *byte == 0xee));
}
