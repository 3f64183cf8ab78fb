//! EXTENDED COPY of a host that is fenced off meanwhile.

use crate::world::extended_copy::extended_copy;
use crate::world::held_disk::HeldDisk;
use crate::world::initiator::Initiator;
use crate::world::{BLOCK, World, unit};
use ropewalk_device::Host;
use scsi::{AdditionalSense, Status, client, client::SenseData};
use session::initiator::{Completion, Data, TaskId};
use std::sync::Arc;

/// Of one piece of a copy: 256 KiB.
const PIECE_BLOCKS: u16 = 512;
const BLOCKS: u64 = 4 * PIECE_BLOCKS as u64;
const REGISTER: u8 = 0;
const PREEMPT: u8 = 4;
const PREEMPT_AND_ABORT: u8 = 5;
const WRITE_EXCLUSIVE: u8 = 1;
const COPIER: u64 = 0xc;
const FENCER: u64 = 0xf;

/// A host that copies from LUN 0 to LUN 1 by a command to LUN 0, and one that can fence it off; both are registered at
/// LUN 1.
struct Scene {
    world: World,
    destination: HeldDisk,
    copier: Initiator,
    fencer: Initiator,
}

impl Scene {
    fn new() -> Self {
        let disks = [HeldDisk::new(BLOCK, BLOCKS), HeldDisk::new(BLOCK, BLOCKS)];
        let units = [0, 1].map(|number| (unit(number), Arc::new(disks[usize::from(number)].clone()) as _));
        let world = World::with_units(units.into());
        let (copier, fencer) = (world.initiator(1), world.initiator(2));
        let [_, destination] = disks;
        let mut scene = Self { world, destination, copier, fencer };
        for lun in [0, 1] {
            while scene.copier_done(lun, &client::test_unit_ready(), &[]).status != Status::Good.code() {}
            while scene.fencer_done(lun, &client::test_unit_ready(), &[]).status != Status::Good.code() {}
        }
        let (cdb, list) = reserve_out(REGISTER, 0, COPIER);
        assert_eq!(scene.copier_done(1, &cdb, &list).status, Status::Good.code());
        let (cdb, list) = reserve_out(REGISTER, 0, FENCER);
        assert_eq!(scene.fencer_done(1, &cdb, &list).status, Status::Good.code());
        scene
    }

    fn run(&mut self) {
        self.world.run(&mut [&mut self.copier, &mut self.fencer]);
    }

    fn copier_done(&mut self, lun: u16, cdb: &[u8], list: &[u8]) -> Completion {
        let task = submit(&self.world, &mut self.copier, lun, cdb, list);
        self.run();
        self.copier.completed[&task].clone()
    }

    fn fencer_done(&mut self, lun: u16, cdb: &[u8], list: &[u8]) -> Completion {
        let task = submit(&self.world, &mut self.fencer, lun, cdb, list);
        self.run();
        self.fencer.completed[&task].clone()
    }

    /// A copy of two pieces, of which the first is being written.
    fn copying(&mut self) -> TaskId {
        self.destination.hold();
        let (cdb, list) = extended_copy(None, ["disk0", "disk1"], 2 * PIECE_BLOCKS, 0);
        let copy = submit(&self.world, &mut self.copier, 0, &cdb, &list);
        self.run();
        assert_eq!((self.destination.held(), self.copier.completed.contains_key(&copy)), (1, false));
        copy
    }

    fn fence_off(&mut self, action: u8) -> TaskId {
        let (cdb, list) = reserve_out(action, FENCER, COPIER);
        let preempt = submit(&self.world, &mut self.fencer, 1, &cdb, &list);
        self.run();
        preempt
    }
}

fn submit(world: &World, initiator: &mut Initiator, lun: u16, cdb: &[u8], list: &[u8]) -> TaskId {
    let data = if list.is_empty() { Data::None } else { Data::Out(initiator.buffer(list)) };
    initiator.submit_to(lun, world.host.now(), cdb, data)
}

/// PERSISTENT RESERVE OUT.
fn reserve_out(action: u8, key: u64, action_key: u64) -> ([u8; 10], Vec<u8>) {
    let list = [&key.to_be_bytes()[..], &action_key.to_be_bytes(), &[0; 8]].concat();
    ([0x5f, action, WRITE_EXCLUSIVE, 0, 0, 0, 0, 0, 24, 0], list)
}

#[test]
fn a_copy_ends_with_its_piece_when_its_host_is_fenced_off() {
    let mut scene = Scene::new();
    let copy = scene.copying();
    // The registration ends first, and with the next command the unit is reserved.
    let preempt = scene.fence_off(PREEMPT);
    assert_eq!(scene.fencer.completed[&preempt].status, Status::Good.code());
    let (cdb, list) = reserve_out(1, FENCER, 0);
    assert_eq!(scene.fencer_done(1, &cdb, &list).status, Status::Good.code());
    scene.destination.release();
    scene.run();
    assert_eq!(scene.copier.completed[&copy].status, Status::ReservationConflict.code());
}

#[test]
fn preempt_and_abort_is_complete_when_the_copies_of_the_preempted_write_no_more() {
    let mut scene = Scene::new();
    let copy = scene.copying();
    let (cdb, list) = reserve_out(1, COPIER, 0);
    assert_eq!(scene.copier_done(1, &cdb, &list).status, Status::Good.code());
    let preempt = scene.fence_off(PREEMPT_AND_ABORT);
    assert!(!scene.fencer.completed.contains_key(&preempt));
    scene.destination.release();
    scene.run();
    assert_eq!(scene.fencer.completed[&preempt].status, Status::Good.code());
    assert_eq!(scene.copier.completed[&copy].status, Status::ReservationConflict.code());
    let told = scene.copier_done(1, &client::test_unit_ready(), &[]);
    let told = SenseData::parse(&told.sense).unwrap().additional;
    assert_eq!(told, AdditionalSense::REGISTRATIONS_PREEMPTED);
}
