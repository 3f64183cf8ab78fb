//! A disk that has lost acknowledged writes and says so once: every initiator is told, whichever command the disk told.

use crate::world::extended_copy::extended_copy;
use crate::world::forgetful_disk::ForgetfulDisk;
use crate::world::held_disk::HeldDisk;
use crate::world::initiator::Initiator;
use crate::world::{BLOCK, World};
use block::Backend;
use ropewalk_device::Host;
use scsi::client::{self, SenseData};
use scsi::{AdditionalSense, Status};
use session::initiator::{Completion, Data, TaskId};
use std::sync::Arc;

const BLOCKS: u64 = 4096;
const SYNCHRONIZE_CACHE: [u8; 10] = [0x35, 0, 0, 0, 0, 0, 0, 0, 0, 0];

/// Two hosts at one disk, which have nothing to be told.
struct Scene {
    world: World,
    writer: Initiator,
    other: Initiator,
}

impl Scene {
    fn with(disk: Arc<dyn Backend>) -> Self {
        let world = World::with_disk(disk);
        let (writer, other) = (world.initiator(1), world.initiator(2));
        let mut scene = Self { world, writer, other };
        scene.hear_all();
        scene
    }

    /// Asks for unit attentions until there is none.
    fn hear_all(&mut self) {
        for initiator in [&mut self.writer, &mut self.other] {
            while done(&self.world, initiator, &client::test_unit_ready(), &[]).status != 0 {}
        }
    }

    fn run(&mut self) {
        self.world.run(&mut [&mut self.writer, &mut self.other]);
    }

    /// MODE SELECT (6) of the caching page with WCE 0.
    fn switch_cache_off(&mut self) {
        let list = [&[0, 0, 0, 0, 0x08, 0x12][..], &[0; 18]].concat();
        let select = [0x15, 0x10, 0, 0, 24, 0];
        assert_eq!(done(&self.world, &mut self.other, &select, &list).status, Status::Good.code());
        self.hear_all();
    }

    /// The writer's next flush reports the loss; the one after it is GOOD.
    fn assert_writer_is_told(&mut self) {
        let told = done(&self.world, &mut self.writer, &SYNCHRONIZE_CACHE, &[]);
        assert!(is_deferred_write_error(&told), "{told:?}");
        let next = done(&self.world, &mut self.writer, &SYNCHRONIZE_CACHE, &[]);
        assert_eq!(next.status, Status::Good.code());
    }
}

fn submitted(world: &World, initiator: &mut Initiator, cdb: &[u8], list: &[u8]) -> TaskId {
    let data = if list.is_empty() { Data::None } else { Data::Out(initiator.buffer(list)) };
    let task = initiator.submit(world.host.now(), cdb, data);
    world.run(&mut [initiator]);
    task
}

fn done(world: &World, initiator: &mut Initiator, cdb: &[u8], list: &[u8]) -> Completion {
    let task = submitted(world, initiator, cdb, list);
    initiator.completed[&task].clone()
}

fn is_deferred_write_error(completion: &Completion) -> bool {
    let sense = SenseData::parse(&completion.sense);
    sense.is_some_and(|sense| sense.deferred && sense.additional == AdditionalSense::WRITE_ERROR)
}

/// A CDB of ten bytes, for blocks from LBA 0 on.
fn cdb_10(code: u8, flags: u8, blocks: u8) -> [u8; 10] {
    [code, flags, 0, 0, 0, 0, 0, 0, blocks, 0]
}

/// The same of 16 bytes.
fn cdb_16(code: u8, flags: u8, blocks: u8) -> [u8; 16] {
    let mut cdb = [0; 16];
    (cdb[0], cdb[1], cdb[13]) = (code, flags, blocks);
    cdb
}

const FUA: u8 = 0x08;

/// A write of one host is acknowledged; the loss of it is reported to this command of another; then both are told.
fn assert_loss_is_everybody_s(is_cached: bool, cdb: &[u8], list: &[u8]) {
    let disk = ForgetfulDisk::new(BLOCK, BLOCKS);
    let mut scene = Scene::with(Arc::new(disk.clone()));
    if !is_cached {
        scene.switch_cache_off();
    }
    let write = client::write_10(100, 1, false);
    assert_eq!(done(&scene.world, &mut scene.writer, &write, &[1; 512]).status, Status::Good.code());
    disk.lose();
    let failed = done(&scene.world, &mut scene.other, cdb, list);
    assert_eq!((failed.status, disk.has_told()), (Status::CheckCondition.code(), true));
    assert!(!is_deferred_write_error(&failed));
    scene.assert_writer_is_told();
    let next = done(&scene.world, &mut scene.other, &client::test_unit_ready(), &[]);
    assert!(is_deferred_write_error(&next), "{next:?}");
}

#[test]
fn a_failed_write_with_fua_is_told_to_everybody() {
    assert_loss_is_everybody_s(true, &cdb_10(0x2a, FUA, 1), &[2; 512]);
}

#[test]
fn a_failed_or_write_with_fua_is_told_to_everybody() {
    assert_loss_is_everybody_s(true, &cdb_16(0x8b, FUA, 1), &[2; 512]);
}

#[test]
fn a_failed_compare_and_write_with_fua_is_told_to_everybody() {
    assert_loss_is_everybody_s(true, &cdb_16(0x89, FUA, 1), &[0; 1024]);
}

#[test]
fn a_failed_write_and_verify_is_told_to_everybody() {
    assert_loss_is_everybody_s(true, &cdb_10(0x2e, 0, 1), &[2; 512]);
}

#[test]
fn a_failed_flush_before_a_verify_is_told_to_everybody() {
    assert_loss_is_everybody_s(true, &cdb_10(0x2f, 0, 1), &[]);
}

#[test]
fn a_failed_write_is_told_to_everybody_while_the_cache_is_off() {
    assert_loss_is_everybody_s(false, &cdb_10(0x2a, 0, 1), &[2; 512]);
}

#[test]
fn a_failed_or_write_is_told_to_everybody_while_the_cache_is_off() {
    assert_loss_is_everybody_s(false, &cdb_16(0x8b, 0, 1), &[2; 512]);
}

#[test]
fn a_failed_compare_and_write_is_told_to_everybody_while_the_cache_is_off() {
    assert_loss_is_everybody_s(false, &cdb_16(0x89, 0, 1), &[0; 1024]);
}

#[test]
fn a_failed_write_same_is_told_to_everybody_while_the_cache_is_off() {
    for pattern in [0, 2] {
        assert_loss_is_everybody_s(false, &cdb_10(0x41, 0, 8), &[pattern; 512]);
    }
}

#[test]
fn a_failed_unmap_is_told_to_everybody_while_the_cache_is_off() {
    let mut list = [0; 24];
    (list[1], list[3], list[19]) = (22, 16, 8);
    assert_loss_is_everybody_s(false, &cdb_10(0x42, 0, 24), &list);
}

#[test]
fn a_failed_copy_is_told_to_everybody_while_the_cache_is_off() {
    let (cdb, list) = extended_copy(None, ["disk0", "disk0"], 2, 8);
    assert_loss_is_everybody_s(false, &cdb, &list);
}

#[test]
fn a_loss_that_an_aborted_flush_met_is_told_to_its_initiator() {
    let disk = HeldDisk::new(BLOCK, BLOCKS);
    let mut scene = Scene::with(Arc::new(disk.clone()));
    disk.hold();
    let flush = submitted(&scene.world, &mut scene.writer, &SYNCHRONIZE_CACHE, &[]);
    scene.other.reset_unit(scene.world.host.now());
    scene.run();
    disk.fail();
    scene.run();
    assert!(!scene.writer.completed.contains_key(&flush));
    let reset = done(&scene.world, &mut scene.writer, &client::test_unit_ready(), &[]);
    assert_ne!(reset.status, Status::Good.code());
    scene.assert_writer_is_told();
}

#[test]
fn a_flush_is_not_good_beside_a_forced_write_that_was_told_of_the_loss() {
    let disk = HeldDisk::new(BLOCK, BLOCKS);
    let mut scene = Scene::with(Arc::new(disk.clone()));
    disk.hold();
    let forced = submitted(&scene.world, &mut scene.other, &cdb_10(0x2a, FUA, 1), &[2; 512]);
    let flush = submitted(&scene.world, &mut scene.writer, &SYNCHRONIZE_CACHE, &[]);
    disk.release_last();
    scene.run();
    assert!(!scene.writer.completed.contains_key(&flush));
    disk.fail();
    scene.run();
    assert_eq!(scene.other.completed[&forced].status, Status::CheckCondition.code());
    assert_eq!(scene.writer.completed[&flush].status, Status::CheckCondition.code());
}

#[test]
fn a_forced_write_is_not_good_beside_a_flush_that_was_told_of_the_loss() {
    let disk = HeldDisk::new(BLOCK, BLOCKS);
    let mut scene = Scene::with(Arc::new(disk.clone()));
    disk.hold();
    let flush = submitted(&scene.world, &mut scene.other, &SYNCHRONIZE_CACHE, &[]);
    let forced = submitted(&scene.world, &mut scene.writer, &cdb_10(0x2a, FUA, 1), &[2; 512]);
    disk.release_last();
    scene.run();
    assert!(!scene.writer.completed.contains_key(&forced));
    disk.fail();
    scene.run();
    assert_eq!(scene.other.completed[&flush].status, Status::CheckCondition.code());
    assert_eq!(scene.writer.completed[&forced].status, Status::CheckCondition.code());
}

#[test]
fn a_flush_waits_for_no_forced_write_that_begins_after_its_end() {
    let disk = HeldDisk::new(BLOCK, BLOCKS);
    let mut scene = Scene::with(Arc::new(disk.clone()));
    disk.hold();
    submitted(&scene.world, &mut scene.other, &cdb_10(0x2a, FUA, 1), &[2; 512]);
    let flush = submitted(&scene.world, &mut scene.writer, &SYNCHRONIZE_CACHE, &[]);
    disk.release_last();
    scene.run();
    let later = submitted(&scene.world, &mut scene.other, &cdb_10(0x2a, FUA, 2), &[2; 1024]);
    disk.release_first();
    scene.run();
    assert_eq!(scene.writer.completed[&flush].status, Status::Good.code());
    assert!(!scene.other.completed.contains_key(&later));
}

#[test]
fn a_flush_reports_a_loss_that_became_known_while_it_waited_to_begin() {
    let disk = HeldDisk::new(BLOCK, BLOCKS);
    let mut scene = Scene::with(Arc::new(disk.clone()));
    disk.hold();
    submitted(&scene.world, &mut scene.writer, &cdb_10(0x2a, 0, 1), &[1; 512]);
    submitted(&scene.world, &mut scene.other, &cdb_10(0x2a, FUA, 1), &[2; 512]);
    let flush = scene.writer.submit_ordered(scene.world.host.now(), &SYNCHRONIZE_CACHE);
    scene.run();
    disk.fail_last();
    scene.run();
    disk.release();
    scene.run();
    let told = &scene.writer.completed[&flush];
    assert!(is_deferred_write_error(told), "{told:?}");
}
