//! WRITE SAME and UNMAP of many pieces: others are served between them, and nobody waits for more than one.

use crate::world::held_disk::HeldDisk;
use crate::world::initiator::Initiator;
use crate::world::{BLOCK, World};
use block::{Backend, Ram};
use pdu::Tsih;
use ropewalk_device::{Host, Observer};
use scsi::client::{self, SenseData};
use scsi::{AdditionalSense, Status};
use session::initiator::{Data, TaskId};
use session::target;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

/// 1 GiB.
const BLOCKS: u32 = 1 << 21;

fn initiator(world: &World, isid: u8) -> Initiator {
    let mut initiator = world.initiator(isid);
    loop {
        let task = submitted(world, &mut initiator, &client::test_unit_ready(), &[]);
        if initiator.completed[&task].status == 0 {
            return initiator;
        }
    }
}

fn submitted(world: &World, initiator: &mut Initiator, cdb: &[u8], list: &[u8]) -> TaskId {
    let data = if list.is_empty() { Data::None } else { Data::Out(initiator.buffer(list)) };
    let task = initiator.submit(world.host.now(), cdb, data);
    world.run(&mut [initiator]);
    task
}

/// WRITE SAME (16) of so many blocks from LBA 0 on.
fn write_same(blocks: u32) -> [u8; 16] {
    let mut cdb = [0; 16];
    cdb[0] = 0x93;
    cdb[10..14].copy_from_slice(&blocks.to_be_bytes());
    cdb
}

/// UNMAP of all blocks.
fn unmap_all() -> ([u8; 10], Vec<u8>) {
    let list = [&[0, 22, 0, 16, 0, 0, 0, 0][..], &[0; 8], &BLOCKS.to_be_bytes(), &[0; 4]].concat();
    ([0x42, 0, 0, 0, 0, 0, 0, 0, 24, 0], list)
}

/// Aborts a command when its first piece is at the disk: there is no second one.
fn assert_stops_when_aborted(cdb: &[u8], list: &[u8]) {
    let disk = HeldDisk::new(BLOCK, BLOCKS.into());
    let world = World::with_disk(Arc::new(disk.clone()));
    let mut initiator = initiator(&world, 1);
    disk.hold();
    let task = submitted(&world, &mut initiator, cdb, list);
    assert_eq!(disk.held(), 1);
    initiator.abort(world.host.now(), task);
    world.run(&mut [&mut initiator]);
    disk.release_first();
    world.run(&mut [&mut initiator]);
    assert_eq!((disk.held(), initiator.completed.contains_key(&task)), (0, false));
}

#[test]
fn a_write_same_that_is_aborted_ends_with_its_piece() {
    for byte in [0, 1] {
        assert_stops_when_aborted(&write_same(BLOCKS), &[byte; 512]);
    }
}

#[test]
fn an_unmap_that_is_aborted_ends_with_its_piece() {
    let (cdb, list) = unmap_all();
    assert_stops_when_aborted(&cdb, &list);
}

#[test]
fn a_new_session_waits_for_one_piece_of_the_old_one_s_write_same() {
    let disk = HeldDisk::new(BLOCK, BLOCKS.into());
    let world = World::with_disk(Arc::new(disk.clone()));
    let mut old = initiator(&world, 1);
    disk.hold();
    submitted(&world, &mut old, &write_same(BLOCKS), &[1; 512]);
    let mut new = world.log_in(1);
    world.run(&mut [&mut old, &mut new]);
    assert_eq!((disk.held(), new.login_result()), (1, None));
    disk.release_first();
    world.run(&mut [&mut old, &mut new]);
    assert_eq!((disk.held(), new.login_result()), (0, Some(Ok(()))));
}

/// Notes which commands have ended.
#[derive(Default)]
struct Ends(RefCell<Vec<target::TaskId>>);

impl Observer for Ends {
    fn command_begins(&self, _: Tsih, _: &target::Command) {}

    fn command_ends(&self, _: Tsih, task: target::TaskId) {
        self.0.borrow_mut().push(task);
    }
}

#[test]
fn a_short_command_is_served_between_the_pieces_of_a_write_same_in_memory() {
    let disk = Ram::new(BLOCK, BLOCKS.into()).unwrap();
    let world = World::with_disk(Arc::new(disk) as Arc<dyn Backend>);
    let mut initiator = initiator(&world, 1);
    let ends = Rc::new(Ends::default());
    world.environment.observe(Rc::clone(&ends) as Rc<dyn Observer>);
    let block = initiator.buffer(&[1; 512]);
    initiator.submit(world.host.now(), &write_same(1 << 14), Data::Out(block));
    let verify_block = [0x2f, 0, 0, 0, 0, 0, 0, 0, 1, 0];
    initiator.submit(world.host.now(), &verify_block, Data::None);
    world.run(&mut [&mut initiator]);
    let ends = ends.0.borrow();
    let [first, last] = ends[..] else { panic!("{ends:?}") };
    assert!(first > last, "the second command ends first");
}

#[test]
fn a_write_same_of_more_than_2_gib_is_refused() {
    for block_bytes in [512, 4096] {
        let most = (2_u32 << 30) / block_bytes;
        let disk = HeldDisk::new(block_bytes, u64::from(most) + 1);
        let world = World::with_disk(Arc::new(disk.clone()));
        let mut initiator = initiator(&world, 1);
        let page = initiator.buffer(&[0; 64]);
        initiator.submit(world.host.now(), &[0x12, 1, 0xb0, 0, 64, 0], Data::In(page));
        world.run(&mut [&mut initiator]);
        let page = initiator.buffers.get(page.buffer).unwrap()[36..44].to_vec();
        assert_eq!(page, u64::from(most).to_be_bytes());
        let zeroes = vec![0; block_bytes as usize];
        let refused = submitted(&world, &mut initiator, &write_same(most + 1), &zeroes);
        let sense = SenseData::parse(&initiator.completed[&refused].sense).unwrap();
        assert_eq!(sense.additional, AdditionalSense::INVALID_FIELD_IN_CDB);
        let done = submitted(&world, &mut initiator, &write_same(most), &zeroes);
        assert_eq!(initiator.completed[&done].status, Status::Good.code());
    }
}
