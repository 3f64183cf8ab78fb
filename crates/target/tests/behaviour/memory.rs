//! The buffer budget is a bound, and never a dead end.

use crate::world::*;
use pdu::{InitiatorPdu, ScsiCommand, TargetPdu};
use ropewalk_target::{ByteSize, Config, Limits};

const BUDGET_BYTES: u64 = 64 << 20;
const LONG_BYTES: usize = 32 << 20;

/// What a connection has pulled for its socket is part of one piece that its session counts no more.
const PULLED_BYTES_MAX: u64 = 1 << 20;

fn small_world() -> World {
    world_with(BUDGET_BYTES)
}

fn world_with(buffer_bytes: u64) -> World {
    let limits = Limits { buffer_bytes: ByteSize(buffer_bytes), ..Limits::default() };
    World::with_config(Config { limits, ..config(vec![target(TARGET, &["0=ram:256M"])]) })
}

/// READ (16) or WRITE (16) of 32 MiB.
fn long(peer: &mut Peer, code: u8) -> ScsiCommand {
    let mut cdb = [0; 16];
    cdb[0] = code;
    cdb[10..14].copy_from_slice(&u32::try_from(LONG_BYTES / BLOCK).unwrap().to_be_bytes());
    let (out_bytes, in_bytes) = if code == 0x8a { (LONG_BYTES, 0) } else { (0, LONG_BYTES) };
    peer.next_command(0, &cdb, out_bytes, in_bytes)
}

#[test]
fn writes_that_do_not_fit_together_take_turns() {
    let world = small_world();
    let mut peers: Vec<_> = (1..=4).map(|isid| world.initiator(isid)).collect();
    for peer in &mut peers {
        let command = long(peer, 0x8a);
        peer.send(&InitiatorPdu::ScsiCommand(command), &[]);
    }
    let workers = peers
        .into_iter()
        .map(|mut peer| std::thread::spawn(move || assert_eq!(peer.answer(&pattern(LONG_BYTES)).status, 0)));
    let workers: Vec<_> = workers.collect();
    while workers.iter().any(|worker| !worker.is_finished()) {
        assert!(world.counters().buffer_bytes as u64 <= BUDGET_BYTES);
        std::thread::yield_now();
    }
    workers.into_iter().for_each(|worker| worker.join().unwrap());
}

#[test]
fn long_reads_that_nobody_takes_hold_no_more_than_their_share() {
    let world = small_world();
    let mut peer = world.initiator(1);
    for _ in 0..4 {
        let command = long(&mut peer, 0x88);
        peer.send(&InitiatorPdu::ScsiCommand(command), &[]);
    }
    // The first byte of the answer: the target is at it.
    peer.stream.peek(&mut [0]).unwrap();
    let share_bytes = BUDGET_BYTES / 8 + PULLED_BYTES_MAX;
    assert!(world.counters().buffer_bytes as u64 <= share_bytes, "{:?}", world.counters());
    let mut left_bytes = 4 * LONG_BYTES;
    while left_bytes > 0 {
        let (pdu, data) = peer.receive().unwrap();
        assert!(matches!(pdu, TargetPdu::DataIn(_)), "{pdu:?}");
        left_bytes -= data.len();
    }
}

#[test]
fn a_session_that_takes_nothing_leaves_room_for_others() {
    let world = small_world();
    let mut lazy = world.initiator(1);
    for _ in 0..20 {
        let command = long(&mut lazy, 0x88);
        lazy.send(&InitiatorPdu::ScsiCommand(command), &[]);
    }
    let mut busy = world.initiator(2);
    assert_eq!(busy.write(0, &pattern(64 << 10)).status, 0);
    assert_eq!(busy.read(0, 2048).status, 0);
    assert!(world.counters().buffer_bytes as u64 <= BUDGET_BYTES);
}

#[test]
fn an_address_that_withholds_the_data_of_its_writes_leaves_room_for_others() {
    let world = world_with(4 * BUDGET_BYTES);
    let mut hoarders: Vec<_> = (1..=3).map(|isid| world.initiator(isid)).collect();
    for hoarder in &mut hoarders {
        for _ in 0..4 {
            let command = long(hoarder, 0x8a);
            hoarder.send(&InitiatorPdu::ScsiCommand(command), &[]);
        }
    }
    // It holds what it gets, and says no more.
    let share_bytes = usize::try_from(BUDGET_BYTES).unwrap();
    world.wait_for(|counters| counters.buffer_bytes >= share_bytes);
    let mut other = world.initiator_from(ELSEWHERE, 9);
    for _ in 0..4 {
        let command = long(&mut other, 0x8a);
        other.send(&InitiatorPdu::ScsiCommand(command), &[]);
        assert_eq!(other.answer(&pattern(LONG_BYTES)).status, 0);
    }
    assert_eq!(world.counters().buffer_bytes, share_bytes);
}

#[test]
fn an_address_that_takes_nothing_of_its_reads_leaves_room_for_others() {
    let world = small_world();
    let mut hoarders: Vec<_> = (1..=6).map(|isid| world.initiator(isid)).collect();
    for hoarder in &mut hoarders {
        for _ in 0..20 {
            let command = long(hoarder, 0x88);
            hoarder.send(&InitiatorPdu::ScsiCommand(command), &[]);
        }
    }
    hoarders[0].stream.peek(&mut [0]).unwrap();
    let mut other = world.initiator_from(ELSEWHERE, 9);
    assert_eq!(other.read(0, 8192).status, 0);
    assert_eq!(other.write(0, &pattern(64 << 10)).status, 0);
    let share_bytes = BUDGET_BYTES / 4 + hoarders.len() as u64 * PULLED_BYTES_MAX;
    assert!(world.counters().buffer_bytes as u64 <= share_bytes, "{:?}", world.counters());
}

#[test]
fn a_hundred_sessions_share_the_smallest_budget_and_each_does_its_work() {
    let limits =
        Limits { buffer_bytes: ByteSize(BUDGET_BYTES), sessions_per_address: 100, ..Limits::default() };
    let world = World::with_config(Config { limits, ..config(vec![target(TARGET, &["0=ram:256M"])]) });
    let mut peers: Vec<_> = (1..=100).map(|isid| world.initiator(isid)).collect();
    for peer in &mut peers {
        assert_eq!(peer.write(0, &pattern(64 << 10)).status, 0);
        assert_eq!(peer.read(0, 128).data, pattern(64 << 10));
    }
}
