//! On a slow path with a deep queue nothing is lost that only waits for its turn (error recovery level 1).

use crate::world::device::GOOD;
use crate::world::wire::Path;
use crate::world::{Damage, Direction, Part, Settings, World};
use pdu::Duration;
use ropewalk_session::parameters::{DigestPreference, Offer};

/// Nanoseconds that a byte takes.
const ONE_MEGABIT: u64 = 8000;
const TEN_MEGABITS: u64 = 800;

/// A path, with what the buffers before it hold.
fn path(nanoseconds_per_byte: u64, buffer_bytes: u64) -> Path {
    Path { delay: Duration::from_millis(50), nanoseconds_per_byte, buffer_bytes }
}

fn offer() -> Offer {
    Offer {
        error_recovery_level: 1,
        header_digest: DigestPreference::Required,
        data_digest: DigestPreference::Required,
        ..Offer::default()
    }
}

const SHORT_BUFFER_BYTES: u64 = 128 << 10;
const LONG_BUFFER_BYTES: u64 = 4 << 20;

/// A world with room for as many commands of this length as are outstanding at a time.
fn world(offer: Offer, nanoseconds_per_byte: u64, commands: u32, bytes: u32) -> World {
    world_on(path(nanoseconds_per_byte, SHORT_BUFFER_BYTES), offer, commands, bytes)
}

fn world_on(path: Path, offer: Offer, commands: u32, bytes: u32) -> World {
    let settings = Settings {
        initiator: offer,
        target: offer,
        window_commands: commands,
        device_bytes: commands * bytes,
        budget_bytes: 16 << 20,
        ..Settings::default()
    };
    World::log_in(settings, path)
}

/// Submits so many writes at once and waits for all of them.
fn write_all(world: &mut World, commands: u32, bytes: u32) {
    for command in 0..commands {
        world.write(command * bytes, &vec![command as u8; bytes as usize]);
    }
    finish(world, commands);
}

fn finish(world: &mut World, commands: u32) {
    world.run_until(|world| world.completed.len() + world.lost.len() == commands as usize);
    assert_eq!((world.lost.len(), world.faults.as_slice()), (0, [].as_slice()));
    assert!(world.completed.values().all(|completion| completion.status == GOOD));
}

/// What was asked for again: by R2Ts, by SNACKs and retries.
fn asked_again(world: &World) -> (u64, u64) {
    let initiator = world.initiator.session.counters();
    (world.target.session.counters().recovery_r2ts, initiator.retransmissions + initiator.retries)
}

#[test]
fn data_that_is_queued_behind_that_of_other_writes_is_not_asked_for_twice() {
    const COMMANDS: u32 = 128;
    const BYTES: u32 = 256 << 10;
    let solicited = Offer { initial_r2t: true, immediate_data: false, ..offer() };
    let unsolicited = Offer { immediate_data: false, ..offer() };
    let mixed = Offer { first_burst_bytes: 64 << 10, receive_segment_bytes_max: 32 << 10, ..offer() };
    for offer in [solicited, unsolicited, mixed] {
        let mut world = world(offer, TEN_MEGABITS, COMMANDS, BYTES);
        write_all(&mut world, COMMANDS, BYTES);
        assert_eq!(asked_again(&world), (0, 0), "{offer:?}");
    }
}

#[test]
fn a_write_on_a_one_megabit_path_takes_minutes_and_succeeds() {
    const COMMANDS: u32 = 16;
    const BYTES: u32 = 2 << 20;
    let solicited = Offer { initial_r2t: true, immediate_data: false, ..offer() };
    for receive_segment_bytes_max in [256 << 10, BYTES] {
        let offer = Offer { receive_segment_bytes_max, ..solicited };
        let mut world = world(offer, ONE_MEGABIT, COMMANDS, BYTES);
        write_all(&mut world, COMMANDS, BYTES);
        assert_eq!(asked_again(&world), (0, 0), "{receive_segment_bytes_max}");
    }
}

#[test]
fn a_single_long_segment_takes_longer_than_any_patience() {
    let bytes = (16 << 20) - 1024;
    let longest =
        Offer { receive_segment_bytes_max: bytes, initial_r2t: true, immediate_data: false, ..offer() };
    let mut world = world(longest, ONE_MEGABIT, 1, bytes);
    write_all(&mut world, 1, bytes);
    assert_eq!(asked_again(&world), (0, 0));
}

#[test]
fn data_of_reads_that_waits_for_its_turn_is_not_asked_for_again() {
    const COMMANDS: u32 = 64;
    const BYTES: u32 = 128 << 10;
    for buffer_bytes in [SHORT_BUFFER_BYTES, LONG_BUFFER_BYTES] {
        let offer = Offer { receive_segment_bytes_max: 32 << 10, ..offer() };
        let mut world = world_on(path(ONE_MEGABIT, buffer_bytes), offer, COMMANDS, BYTES);
        for command in 0..COMMANDS / 2 {
            world.read(command * BYTES, BYTES);
            world.write((command + COMMANDS / 2) * BYTES, &vec![command as u8; BYTES as usize]);
        }
        finish(&mut world, COMMANDS);
        assert_eq!(asked_again(&world), (0, 0), "{buffer_bytes}");
        assert_eq!(world.target.session.counters().snacks, 0);
    }
}

#[test]
fn what_was_lost_behind_a_long_buffer_is_sent_again_once() {
    const COMMANDS: u32 = 64;
    const BYTES: u32 = 128 << 10;
    for part in [Part::Header, Part::Data] {
        let offer = Offer { receive_segment_bytes_max: 32 << 10, ..offer() };
        let mut world = world_on(path(ONE_MEGABIT, LONG_BUFFER_BYTES), offer, COMMANDS, BYTES);
        world.damage = Some(Damage { direction: Direction::ToInitiator, pdu: 40, part });
        for command in 0..COMMANDS {
            world.read(command * BYTES, BYTES);
        }
        finish(&mut world, COMMANDS);
        assert_eq!(world.target.session.counters().retransmitted_pdus, 1, "{part:?}");
    }
}
