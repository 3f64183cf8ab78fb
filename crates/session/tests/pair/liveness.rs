//! Pings both ways: who still answers.

use crate::world::device::GOOD;
use crate::world::wire::Path;
use crate::world::{PING_AFTER, PING_TIMEOUT, Settings, World};
use pdu::{Duration, LaneId};
use ropewalk_session::initiator::Event;
use ropewalk_session::parameters::Offer;
use ropewalk_session::seam::Fault;

/// After this time a silent peer is noticed, counted from its last sign of life.
fn noticed_after() -> Duration {
    PING_AFTER + PING_TIMEOUT + PING_TIMEOUT / 4
}

/// A megabit per second.
const SLOW_NANOSECONDS_PER_BYTE: u64 = 8000;

/// A path of this round trip, slow, with a buffer of this length before it.
fn slow_path(round_trip: Duration, buffer_bytes: u64) -> Path {
    Path { delay: round_trip / 2, nanoseconds_per_byte: SLOW_NANOSECONDS_PER_BYTE, buffer_bytes }
}

/// A device and PDUs of nearly 16 MiB, the longest that there are.
fn large() -> Settings {
    let longest = Offer { receive_segment_bytes_max: LARGE_BYTES, ..Offer::default() };
    Settings {
        initiator: longest,
        target: longest,
        budget_bytes: LARGE_BYTES,
        device_bytes: LARGE_BYTES,
        ..Settings::default()
    }
}

const LARGE_BYTES: u32 = (1 << 24) - 1024;

fn is_over(world: &World) -> bool {
    world.events.iter().any(|event| matches!(event, Event::Ended { .. }))
}

#[test]
fn pings_keep_an_idle_session() {
    let mut world = World::with_delays(Settings::default(), &[50, 1]);
    world.run_for(PING_AFTER * 20);
    assert_eq!((world.faults.as_slice(), is_over(&world)), ([].as_slice(), false));
    let pings = world.initiator.session.counters().pings;
    assert!((30..=42).contains(&pings), "{pings} pings");
    let task = world.write(0, &[1; 100]);
    world.run();
    assert_eq!(world.completed[&task].status, GOOD);
}

#[test]
fn a_busy_connection_is_not_pinged() {
    let mut world = World::with_connections(1);
    for _ in 0..50 {
        world.read(0, 512);
        world.run_for(PING_AFTER / 2);
    }
    assert_eq!(world.initiator.session.counters().pings, 0);
}

#[test]
fn a_connection_that_does_not_answer_is_given_up() {
    let mut world = World::with_connections(2);
    let task = world.hang();
    world.run();
    world.silence(LaneId(1));
    world.run_for(PING_AFTER + PING_TIMEOUT + Duration::from_secs(1));
    assert!(world.faults.contains(&Fault::Timeout("a ping")));
    assert!(is_over(&world));
    assert_eq!(world.lost.get(&task), Some(&true));
}

#[test]
fn a_busy_path_of_a_long_round_trip_is_not_given_up() {
    const PART_BYTES: u32 = 128 << 10;
    let mut world = World::log_in(Settings::default(), slow_path(Duration::from_secs(2), 1 << 20));
    world.add_lane(slow_path(Duration::from_secs(2), 1 << 20));
    let hour = world.now + Duration::from_secs(3600);
    let mut begun = Vec::new();
    while world.now < hour {
        // Reads first, so that both ways are full; then only writes, whose answers are few.
        let open = begun.iter().filter(|task| !world.completed.contains_key(task)).count();
        for _ in open..16 {
            begun.push(if world.now.0 < hour.0 / 2 && begun.len() % 2 == 0 {
                world.read(0, PART_BYTES)
            } else {
                world.write(0, &[1; PART_BYTES as usize])
            });
        }
        begun.retain(|task| !world.completed.contains_key(task));
        world.run_for(Duration::from_secs(5));
    }
    assert_eq!((world.faults.as_slice(), is_over(&world)), ([].as_slice(), false));
    assert!(world.completed.len() > 2000, "{} commands", world.completed.len());
}

#[test]
fn a_ping_behind_all_that_a_buffer_holds_is_not_missed() {
    let mut world = World::log_in(large(), slow_path(Duration::from_millis(10), 64 << 20));
    let writes: Vec<_> = (0..4).map(|_| world.write(0, &vec![1; LARGE_BYTES as usize])).collect();
    // What is asked for before the pings leaves at once.
    world.run_for(Duration::from_secs(20));
    world.initiator.session.ping(world.now, LaneId(0));
    world.run_for(Duration::from_secs(600));
    assert_eq!(world.faults, []);
    assert!(writes.iter().all(|task| world.completed[task].status == GOOD));
}

#[test]
fn a_long_segment_on_a_slow_path_is_a_sign_of_life_while_it_arrives() {
    let mut world = World::log_in(large(), slow_path(Duration::from_millis(10), 0));
    let task = world.read(0, LARGE_BYTES);
    world.run_for(Duration::from_secs(160));
    assert_eq!(world.faults, []);
    assert_eq!(world.data[&task].len(), LARGE_BYTES as usize);
}

#[test]
fn an_initiator_notices_silence_within_the_bound_with_megabytes_under_way() {
    let mut world = World::log_in(large(), slow_path(Duration::from_millis(10), 64 << 20));
    world.write(0, &vec![1; LARGE_BYTES as usize]);
    world.run_for(Duration::from_secs(30));
    world.silence(LaneId(0));
    world.run_for(noticed_after());
    assert!(is_over(&world));
}

#[test]
fn a_target_notices_silence_within_the_bound_with_megabytes_under_way() {
    let mut world = World::log_in(large(), slow_path(Duration::from_millis(10), 64 << 20));
    world.read(0, LARGE_BYTES);
    world.run_for(Duration::from_secs(30));
    world.lose_at_initiator(LaneId(0));
    // The target's own time before a ping is twice the initiator's.
    world.run_for(noticed_after() + PING_AFTER);
    assert_eq!(world.target_ended, Some(false));
}
