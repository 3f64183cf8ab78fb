//! Commands beyond READ and WRITE, from an initiator to the medium and back.

use crate::world::extended_copy::extended_copy;
use crate::world::held_disk::HeldDisk;
use crate::world::initiator::Initiator;
use crate::world::{BLOCK, World};
use block::{Backend, Operation, Ram, Volatile};
use ropewalk_device::Host;
use scsi::client::{self, SenseData};
use scsi::{AdditionalSense, Status};
use session::initiator::{Completion, Data, TaskId};
use std::sync::Arc;

const BLOCKS: u64 = 4096;
const CACHE_BYTES: usize = 1 << 20;

/// A world whose disk has a volatile cache over memory that survives.
fn cached() -> (World, Arc<Ram>) {
    let medium = Arc::new(Ram::new(BLOCK, BLOCKS).unwrap());
    let cache = Volatile::new(Arc::clone(&medium) as Arc<dyn Backend>, CACHE_BYTES);
    (World::with_disk(Arc::new(cache)), medium)
}

fn carried_out(world: &World, initiator: &mut Initiator, cdb: &[u8], data: Data) -> Completion {
    let task = initiator.submit(world.host.now(), cdb, data);
    world.run(&mut [initiator]);
    initiator.completed[&task].clone()
}

/// An initiator that has nothing to be told.
fn initiator(world: &World, isid: u8) -> Initiator {
    let mut initiator = world.initiator(isid);
    while carried_out(world, &mut initiator, &client::test_unit_ready(), Data::None).status != 0 {}
    initiator
}

fn with_list(world: &World, initiator: &mut Initiator, cdb: &[u8], list: &[u8]) -> Completion {
    let out = initiator.buffer(list);
    carried_out(world, initiator, cdb, Data::Out(out))
}

/// What the medium itself has of these blocks.
fn on_medium(world: &World, medium: &Ram, lba: u64, blocks: usize) -> Vec<u8> {
    let buffer = world.memory.transfers.allocate(blocks * BLOCK as usize).unwrap();
    let read = medium.submit(Operation::Read { offset: lba * u64::from(BLOCK), buffer });
    let Ok(completion) = read.try_take() else { unreachable!("memory is fast") };
    completion.into_buffer().unwrap().to_vec()
}

fn told(completion: &Completion) -> AdditionalSense {
    SenseData::parse(&completion.sense).unwrap().additional
}

fn cdb_10(code: u8, flags: u8, lba: u8, blocks: u8) -> [u8; 10] {
    [code, flags, 0, 0, 0, lba, 0, 0, blocks, 0]
}

#[test]
fn write_and_verify_is_on_the_medium_when_it_is_answered() {
    let (world, medium) = cached();
    let mut initiator = initiator(&world, 1);
    for byte_check in [0x00, 0x02] {
        let written = vec![0x5a ^ byte_check; 3 * 512];
        let done = with_list(&world, &mut initiator, &cdb_10(0x2e, byte_check, 9, 3), &written);
        assert_eq!(done.status, Status::Good.code());
        assert_eq!(on_medium(&world, &medium, 9, 3), written);
    }
}

#[test]
fn or_write_adds_bits_to_what_is_there() {
    let (world, _) = cached();
    let mut initiator = initiator(&world, 1);
    with_list(&world, &mut initiator, &client::write_10(5, 2, false), &[0x0f; 1024]);
    let mut or_write = [0; 16];
    (or_write[0], or_write[9], or_write[13]) = (0x8b, 5, 2);
    let done = with_list(&world, &mut initiator, &or_write, &[0x30; 1024]);
    assert_eq!(done.status, Status::Good.code());
    let done = with_list(&world, &mut initiator, &cdb_10(0x2f, 0x02, 5, 2), &[0x3f; 1024]);
    assert_eq!(done.status, Status::Good.code());
}

/// SYNCHRONIZE CACHE (10), with IMMED if it is 2.
fn synchronize_cache(immediate: u8) -> [u8; 10] {
    cdb_10(0x35, immediate, 0, 0)
}

fn deferred_write_error(completion: &Completion) -> bool {
    let sense = SenseData::parse(&completion.sense);
    sense.is_some_and(|sense| sense.deferred && sense.additional == AdditionalSense::WRITE_ERROR)
}

#[test]
fn a_flush_that_fails_when_it_has_been_answered_is_told_to_everybody() {
    let disk = HeldDisk::new(BLOCK, BLOCKS);
    let world = World::with_disk(Arc::new(disk.clone()));
    let (mut asker, mut other) = (initiator(&world, 1), initiator(&world, 2));
    disk.hold();
    let answered = carried_out(&world, &mut asker, &synchronize_cache(2), Data::None);
    assert_eq!((answered.status, disk.held()), (Status::Good.code(), 1));
    disk.fail();
    for initiator in [&mut asker, &mut other] {
        world.run(&mut [initiator]);
        let told = carried_out(&world, initiator, &client::test_unit_ready(), Data::None);
        assert!(deferred_write_error(&told), "{told:?}");
        let told = carried_out(&world, initiator, &client::test_unit_ready(), Data::None);
        assert_eq!(told.status, Status::Good.code());
    }
}

#[test]
fn a_flush_that_fails_is_told_to_its_asker_at_once_and_then_to_all_others() {
    let disk = HeldDisk::new(BLOCK, BLOCKS);
    let world = World::with_disk(Arc::new(disk.clone()));
    let (mut asker, mut other) = (initiator(&world, 1), initiator(&world, 2));
    disk.hold();
    let flush = asker.submit(world.host.now(), &synchronize_cache(0), Data::None);
    world.run(&mut [&mut asker]);
    disk.fail();
    world.run(&mut [&mut asker]);
    let failed = &asker.completed[&flush];
    assert_eq!(told(failed), AdditionalSense::WRITE_ERROR);
    assert!(!deferred_write_error(failed));
    let next = carried_out(&world, &mut asker, &client::test_unit_ready(), Data::None);
    assert_eq!(next.status, Status::Good.code());
    let next = carried_out(&world, &mut other, &synchronize_cache(0), Data::None);
    assert!(deferred_write_error(&next), "{next:?}");
}

#[test]
fn pre_fetch_says_that_its_condition_is_met() {
    let (world, _) = cached();
    let mut initiator = initiator(&world, 1);
    for immediate in [0x00, 0x02] {
        let done = carried_out(&world, &mut initiator, &cdb_10(0x34, immediate, 0, 8), Data::None);
        assert_eq!(done.status, Status::ConditionMet.code());
    }
}

/// MODE SELECT (6) of the caching page, whose first byte is this.
fn select_caching(flags: u8) -> ([u8; 6], Vec<u8>) {
    ([0x15, 0x10, 0, 0, 24, 0], [&[0, 0, 0, 0, 0x08, 0x12, flags][..], &[0; 17]].concat())
}

#[test]
fn switching_the_cache_off_flushes_it_and_forces_later_writes() {
    let (world, medium) = cached();
    let mut initiator = initiator(&world, 1);
    with_list(&world, &mut initiator, &client::write_10(0, 1, false), &[1; 512]);
    assert_eq!(on_medium(&world, &medium, 0, 1), [0; 512]);
    let (select, list) = select_caching(0);
    assert_eq!(with_list(&world, &mut initiator, &select, &list).status, Status::Good.code());
    assert_eq!(on_medium(&world, &medium, 0, 1), [1; 512]);
    with_list(&world, &mut initiator, &client::write_10(1, 1, false), &[2; 512]);
    assert_eq!(on_medium(&world, &medium, 1, 1), [2; 512]);
    let (select, list) = select_caching(0x04);
    with_list(&world, &mut initiator, &select, &list);
    with_list(&world, &mut initiator, &client::write_10(2, 1, false), &[3; 512]);
    assert_eq!(on_medium(&world, &medium, 2, 1), [0; 512]);
}

/// MODE SELECT (6) of the control page: `D_SENSE` and SWP.
fn select_control(descriptor_sense: u8, write_protect: u8) -> ([u8; 6], Vec<u8>) {
    let page = [0, 0, 0, 0, 0x0a, 0x0a, descriptor_sense << 2, 0x10, write_protect << 3, 0, 0, 0, 0, 0, 0, 0];
    ([0x15, 0x10, 0, 0, 16, 0], page.to_vec())
}

#[test]
fn one_initiator_s_mode_parameters_are_everybody_s() {
    let (world, _) = cached();
    let (mut changer, mut other) = (initiator(&world, 1), initiator(&world, 2));
    let (select, list) = select_control(1, 1);
    assert_eq!(with_list(&world, &mut changer, &select, &list).status, Status::Good.code());
    let refused = carried_out(&world, &mut other, &client::test_unit_ready(), Data::None);
    assert_eq!(refused.sense[0], 0x72);
    assert_eq!(told(&refused), AdditionalSense::MODE_PARAMETERS_CHANGED);
    let refused = with_list(&world, &mut other, &client::write_10(0, 1, false), &[1; 512]);
    assert_eq!(told(&refused), AdditionalSense::LOGICAL_UNIT_SOFTWARE_WRITE_PROTECTED);
}

/// EXTENDED COPY of two blocks of the disk called `name`, from its start to block 8, under list identifier 7.
fn copy_within(name: &str) -> ([u8; 16], Vec<u8>) {
    extended_copy(Some(7), [name, name], 2, 8)
}

#[test]
fn a_copy_goes_from_place_to_place_and_its_status_is_held() {
    let (world, _) = cached();
    let mut initiator = initiator(&world, 1);
    with_list(&world, &mut initiator, &client::write_10(0, 2, false), &[0x77; 1024]);
    let (cdb, list) = copy_within("disk0");
    assert_eq!(with_list(&world, &mut initiator, &cdb, &list).status, Status::Good.code());
    let done = with_list(&world, &mut initiator, &cdb_10(0x2f, 0x02, 8, 2), &[0x77; 1024]);
    assert_eq!(done.status, Status::Good.code());
    let place = initiator.buffer(&[0; 12]);
    let mut status = [0; 16];
    (status[0], status[2], status[13]) = (0x84, 7, 12);
    assert_eq!(carried_out(&world, &mut initiator, &status, Data::In(place)).status, Status::Good.code());
    let held = initiator.buffers.get(place.buffer).unwrap();
    assert_eq!(held[..], [0, 0, 0, 8, 1, 0, 1, 1, 0, 0, 0, 1]);
}

#[test]
fn a_copy_reaches_no_unit_that_its_initiator_cannot() {
    let (world, _) = cached();
    let mut initiator = initiator(&world, 1);
    let (cdb, list) = copy_within("another disk");
    let refused = with_list(&world, &mut initiator, &cdb, &list);
    assert_eq!(told(&refused), AdditionalSense::COPY_TARGET_DEVICE_NOT_REACHABLE);
}

/// A world whose disk can hold writes and flushes.
fn held() -> (World, HeldDisk) {
    let disk = HeldDisk::new(BLOCK, BLOCKS);
    (World::with_disk(Arc::new(disk.clone())), disk)
}

fn submitted(world: &World, initiator: &mut Initiator, cdb: &[u8], list: &[u8]) -> TaskId {
    let data = if list.is_empty() { Data::None } else { Data::Out(initiator.buffer(list)) };
    let task = initiator.submit(world.host.now(), cdb, data);
    world.run(&mut [initiator]);
    task
}

#[test]
fn a_write_is_refused_that_had_come_when_the_unit_was_protected_but_not_started() {
    let (world, disk) = held();
    let mut initiator = initiator(&world, 1);
    disk.hold();
    let before = submitted(&world, &mut initiator, &client::write_10(0, 1, false), &[1; 512]);
    let (select, list) = select_control(0, 1);
    let protect = submitted(&world, &mut initiator, &select, &list);
    let after = submitted(&world, &mut initiator, &client::write_10(1, 1, false), &[2; 512]);
    assert!(![before, protect, after].iter().any(|task| initiator.completed.contains_key(task)));
    disk.release();
    world.run(&mut [&mut initiator]);
    for done in [before, protect] {
        assert_eq!(initiator.completed[&done].status, Status::Good.code());
    }
    assert_eq!(told(&initiator.completed[&after]), AdditionalSense::LOGICAL_UNIT_SOFTWARE_WRITE_PROTECTED);
}

#[test]
fn so_many_flushes_go_on_unheard_and_more_wait() {
    const UNHEARD: usize = 4;
    let (world, disk) = held();
    let mut initiator = initiator(&world, 1);
    disk.hold();
    let flush = cdb_10(0x35, 0x02, 0, 0);
    let tasks: Vec<TaskId> =
        (0..UNHEARD + 2).map(|_| submitted(&world, &mut initiator, &flush, &[])).collect();
    let (answered, waiting) = tasks.split_at(UNHEARD);
    assert!(answered.iter().all(|task| initiator.completed.contains_key(task)));
    assert!(waiting.iter().all(|task| !initiator.completed.contains_key(task)));
    disk.release();
    world.run(&mut [&mut initiator]);
    assert!(waiting.iter().all(|task| initiator.completed.contains_key(task)));
}

#[test]
fn verify_looks_at_the_medium_and_not_at_the_cache() {
    let (world, medium) = cached();
    let mut initiator = initiator(&world, 1);
    with_list(&world, &mut initiator, &client::write_10(3, 1, false), &[7; 512]);
    assert_eq!(on_medium(&world, &medium, 3, 1), [0; 512]);
    let done = carried_out(&world, &mut initiator, &cdb_10(0x2f, 0, 3, 1), Data::None);
    assert_eq!(done.status, Status::Good.code());
    assert_eq!(on_medium(&world, &medium, 3, 1), [7; 512]);
}
