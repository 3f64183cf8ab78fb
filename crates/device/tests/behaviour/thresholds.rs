//! A thin unit that runs out of space, in virtual time.

use crate::world::initiator::Initiator;
use crate::world::{BLOCK, World, unit};
use block::{Backend, BlockError, BlockErrorKind, Completion, Operation, Pending, Properties, Ram};
use ropewalk_device::{Host, UnitDescription};
use scsi::AdditionalSense;
use scsi::client::{self, SenseData};
use session::initiator::Data;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Memory is allocated in chunks of so many blocks.
const CHUNK_BLOCKS: u32 = 512;
const CHUNKS: u32 = 32;
/// The time within which whoever must know is told.
const SOON: Duration = Duration::from_secs(6);

/// A unit of 32 chunks, of which three quarters may be allocated before initiators are told.
fn watched() -> World {
    let disk = Ram::new(BLOCK, u64::from(CHUNKS * CHUNK_BLOCKS)).unwrap();
    World::with_units(vec![(UnitDescription { threshold_percent: Some(75), ..unit(0) }, Arc::new(disk))])
}

/// What the initiator is told until it is told nothing.
fn told(world: &World, initiator: &mut Initiator) -> Vec<AdditionalSense> {
    std::iter::from_fn(|| {
        let task = initiator.submit(world.host.now(), &client::test_unit_ready(), Data::None);
        world.run(&mut [initiator]);
        SenseData::parse(&initiator.completed[&task].sense).map(|sense| sense.additional)
    })
    .collect()
}

/// Allocates chunks by writing one block of each.
fn allocate(world: &World, initiator: &mut Initiator, chunks: std::ops::Range<u32>) {
    for chunk in chunks {
        let out = initiator.buffer(&[1; 512]);
        let write = client::write_10(chunk * CHUNK_BLOCKS, 1, false);
        let task = initiator.submit(world.host.now(), &write, Data::Out(out));
        world.run(&mut [initiator]);
        assert_eq!(initiator.completed[&task].status, 0);
    }
}

/// WRITE SAME (10) of zeroes with UNMAP over all blocks.
fn deallocate_all(world: &World, initiator: &mut Initiator) {
    let [high, low] = u16::try_from(CHUNKS * CHUNK_BLOCKS).unwrap().to_be_bytes();
    let out = initiator.buffer(&[0; 512]);
    let write_same = [0x41, 0x08, 0, 0, 0, 0, 0, high, low, 0];
    let task = initiator.submit(world.host.now(), &write_same, Data::Out(out));
    world.run(&mut [initiator]);
    assert_eq!(initiator.completed[&task].status, 0);
}

#[test]
fn every_initiator_is_told_once_each_time_that_space_runs_out() {
    const REACHED: [AdditionalSense; 1] = [AdditionalSense::THIN_PROVISIONING_SOFT_THRESHOLD_REACHED];
    let world = watched();
    let (mut writer, mut other) = (world.initiator(1), world.initiator(2));
    told(&world, &mut writer);
    told(&world, &mut other);
    for _ in 0..2 {
        allocate(&world, &mut writer, 0..23);
        world.pass(SOON, &mut [&mut writer, &mut other]);
        assert_eq!(told(&world, &mut writer), []);
        allocate(&world, &mut writer, 23..25);
        world.pass(SOON, &mut [&mut writer, &mut other]);
        assert_eq!(told(&world, &mut writer), REACHED);
        assert_eq!(told(&world, &mut other), REACHED);
        allocate(&world, &mut writer, 25..32);
        world.pass(SOON, &mut [&mut writer, &mut other]);
        assert_eq!(told(&world, &mut writer), []);
        deallocate_all(&world, &mut writer);
        world.pass(SOON, &mut [&mut writer, &mut other]);
        assert_eq!(told(&world, &mut other), []);
    }
}

/// A disk that cannot say for a while how much space it has.
struct Reticent {
    disk: Ram,
    is_silent: AtomicBool,
}

impl Backend for Reticent {
    fn properties(&self) -> Properties {
        self.disk.properties()
    }

    fn submit(&self, operation: Operation) -> Pending {
        if matches!(operation, Operation::Space) && self.is_silent.load(Ordering::Relaxed) {
            let error = BlockError::new(BlockErrorKind::Medium, "a test");
            return Pending::ready(Completion::failed(error));
        }
        self.disk.submit(operation)
    }
}

#[test]
fn initiators_are_told_after_the_space_could_not_be_known_for_a_while() {
    const REACHED: [AdditionalSense; 1] = [AdditionalSense::THIN_PROVISIONING_SOFT_THRESHOLD_REACHED];
    let ram = Ram::new(BLOCK, u64::from(CHUNKS * CHUNK_BLOCKS)).unwrap();
    let disk = Arc::new(Reticent { disk: ram, is_silent: AtomicBool::new(true) });
    let description = UnitDescription { threshold_percent: Some(75), ..unit(0) };
    let world = World::with_units(vec![(description, Arc::clone(&disk) as Arc<dyn Backend>)]);
    let mut initiator = world.initiator(1);
    told(&world, &mut initiator);
    allocate(&world, &mut initiator, 0..25);
    world.pass(3 * SOON, &mut [&mut initiator]);
    assert_eq!(told(&world, &mut initiator), []);
    disk.is_silent.store(false, Ordering::Relaxed);
    world.pass(SOON, &mut [&mut initiator]);
    assert_eq!(told(&world, &mut initiator), REACHED);
}

#[test]
fn the_log_page_tells_what_is_used_and_left_at_this_moment() {
    /// Blocks of a threshold set, of which the disk has 1024.
    const SET_BLOCKS: u32 = 16;
    let world = watched();
    let mut initiator = world.initiator(1);
    told(&world, &mut initiator);
    allocate(&world, &mut initiator, 0..3);
    let place = initiator.buffer(&[0; 28]);
    let log_sense = [0x4d, 0, 0x4c, 0, 0, 0, 0, 0, 28, 0];
    initiator.submit(world.host.now(), &log_sense, Data::In(place));
    world.run(&mut [&mut initiator]);
    let page = initiator.buffers.get(place.buffer).unwrap();
    assert_eq!(page[8..12], ((CHUNKS - 3) * CHUNK_BLOCKS / SET_BLOCKS).to_be_bytes());
    assert_eq!(page[20..24], (3 * CHUNK_BLOCKS / SET_BLOCKS).to_be_bytes());
}

#[test]
fn a_unit_that_is_not_watched_tells_nothing() {
    let disk = Ram::new(BLOCK, u64::from(CHUNKS * CHUNK_BLOCKS)).unwrap();
    let world = World::with_disk(Arc::new(disk));
    let mut initiator = world.initiator(1);
    told(&world, &mut initiator);
    allocate(&world, &mut initiator, 0..CHUNKS);
    world.pass(SOON, &mut [&mut initiator]);
    assert_eq!(told(&world, &mut initiator), []);
}
