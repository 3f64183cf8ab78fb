//! A target without a runtime: bytes are handed over, and time passes when the test says so.

use crate::world::held_disk::HeldDisk;
use crate::world::initiator::Initiator;
use crate::world::{BLOCK, PING_AFTER, PING_TIMEOUT, World};
use block::Ram;
use pdu::Instant;
use ropewalk_device::Host;
use scsi::client;
use session::initiator::Data;
use std::sync::Arc;

const BLOCKS: u64 = 4096;

/// Sense of a unit attention comes with this status.
const CHECK_CONDITION: u8 = 2;

fn pattern(bytes: usize) -> Vec<u8> {
    (0..=250).cycle().take(bytes).collect()
}

/// Asks until no unit attention is left.
fn learn_attentions(world: &World, initiator: &mut Initiator) {
    loop {
        let task = initiator.submit(world.host.now(), &client::test_unit_ready(), Data::None);
        world.run(&mut [initiator]);
        if initiator.completed[&task].status != CHECK_CONDITION {
            return;
        }
    }
}

#[test]
fn what_is_written_is_read_back() {
    let world = World::with_disk(Arc::new(Ram::new(BLOCK, BLOCKS).unwrap()));
    let mut initiator = world.initiator(1);
    learn_attentions(&world, &mut initiator);
    for blocks in [1, 9, 3000] {
        let written = pattern(usize::from(blocks) * 512);
        let out = initiator.buffer(&written);
        let write = initiator.submit(world.host.now(), &client::write_10(7, blocks, false), Data::Out(out));
        world.run(&mut [&mut initiator]);
        assert_eq!(initiator.completed[&write].status, 0);
        let place = initiator.buffer(&vec![0; written.len()]);
        let read = initiator.submit(world.host.now(), &client::read_10(7, blocks), Data::In(place));
        world.run(&mut [&mut initiator]);
        assert_eq!(initiator.completed[&read].status, 0);
        assert!(initiator.buffers.get(place.buffer).is_some_and(|read| read[..] == written));
    }
    assert_eq!(world.memory.transfers.in_use_bytes(), 0);
}

#[test]
fn a_login_that_reinstates_waits_until_the_writes_of_the_old_session_have_come_to_rest() {
    let disk = HeldDisk::new(BLOCK, BLOCKS);
    let world = World::with_disk(Arc::new(disk.clone()));
    let mut old = world.initiator(1);
    learn_attentions(&world, &mut old);
    disk.hold();
    let out = old.buffer(&pattern(512));
    old.submit(world.host.now(), &client::write_10(0, 1, false), Data::Out(out));
    world.run(&mut [&mut old]);
    let mut new = world.log_in(1);
    world.run(&mut [&mut old, &mut new]);
    assert!(old.is_closed());
    assert_eq!((disk.held(), new.login_result()), (1, None));
    disk.release();
    world.run(&mut [&mut old, &mut new]);
    assert_eq!(new.login_result(), Some(Ok(())));
    assert_eq!(world.gauges.sessions(), 1);
}

#[test]
fn an_initiator_that_has_gone_silent_is_given_up_when_its_time_has_come() {
    let world = World::with_disk(Arc::new(Ram::new(BLOCK, BLOCKS).unwrap()));
    let mut initiator = world.initiator(1);
    initiator.is_silent = true;
    while !initiator.is_closed() {
        assert!(world.host.advance(), "nothing more happens");
        world.run(&mut [&mut initiator]);
    }
    assert_eq!(world.host.now(), Instant::ZERO + PING_AFTER + PING_TIMEOUT);
    assert_eq!(world.gauges.sessions(), 0);
}
