//! EXTENDED COPY beside COMPARE AND WRITE and ORWRITE on the same blocks.

use crate::world::extended_copy::extended_copy;
use crate::world::held_disk::HeldDisk;
use crate::world::initiator::Initiator;
use crate::world::{BLOCK, World, unit};
use pdu::Lun;
use ropewalk_device::Host;
use scsi::client;
use session::initiator::{Data, TaskFunction, TaskId};
use std::sync::Arc;

const BLOCKS: u64 = 64;
const GOOD: u8 = 0;
const CHECK_CONDITION: u8 = 2;
const OLD: [u8; 512] = [0x11; 512];
const NEW: [u8; 512] = [0x22; 512];

/// Two units whose writes can be held, and an initiator that has nothing to be told.
struct Scene {
    world: World,
    disks: [HeldDisk; 2],
    initiator: Initiator,
}

impl Scene {
    /// Block 0 of both units is [`OLD`].
    fn new() -> Self {
        let disks = [HeldDisk::new(BLOCK, BLOCKS), HeldDisk::new(BLOCK, BLOCKS)];
        let units = [0, 1].map(|number| (unit(number), Arc::new(disks[usize::from(number)].clone()) as _));
        let world = World::with_units(units.into());
        let initiator = world.initiator(1);
        let mut scene = Self { world, disks, initiator };
        for lun in [0, 1] {
            while scene.done(lun, &client::test_unit_ready(), &[]) == CHECK_CONDITION {}
            assert_eq!(scene.done(lun, &client::write_10(0, 1, false), &OLD), GOOD);
        }
        scene
    }

    fn start(&mut self, lun: u16, cdb: &[u8], out: &[u8]) -> TaskId {
        let data = if out.is_empty() { Data::None } else { Data::Out(self.initiator.buffer(out)) };
        let task = self.initiator.submit_to(lun, self.world.host.now(), cdb, data);
        self.run();
        task
    }

    fn run(&mut self) {
        self.world.run(&mut [&mut self.initiator]);
    }

    /// The status with which a command has ended.
    fn status(&self, task: TaskId) -> Option<u8> {
        self.initiator.completed.get(&task).map(|completion| completion.status)
    }

    fn done(&mut self, lun: u16, cdb: &[u8], out: &[u8]) -> u8 {
        let task = self.start(lun, cdb, out);
        self.status(task).expect("it ends by itself")
    }

    fn compare_and_write(&mut self, lun: u16, lba: u8, expected: &[u8], new: &[u8]) -> TaskId {
        let mut cdb = [0; 16];
        (cdb[0], cdb[9], cdb[13]) = (0x89, lba, 1);
        self.start(lun, &cdb, &[expected, new].concat())
    }

    fn or_write(&mut self, lba: u8, bits: &[u8]) -> TaskId {
        let mut cdb = [0; 16];
        (cdb[0], cdb[9], cdb[13]) = (0x8b, lba, 1);
        self.start(0, &cdb, bits)
    }

    /// EXTENDED COPY, sent to LUN 0, of block 0 of one unit to block 8 of another.
    fn copy(&mut self, source: u16, destination: u16) -> TaskId {
        let [source, destination] = [source, destination].map(|number| format!("disk{number}"));
        let (cdb, list) = extended_copy(None, [&source, &destination], 1, 8);
        self.start(0, &cdb, &list)
    }

    /// Whether a block has these contents: VERIFY (10) with BYTCHK.
    fn has(&mut self, lun: u16, lba: u8, contents: &[u8]) -> bool {
        self.done(lun, &[0x2f, 0x02, 0, 0, 0, lba, 0, 0, 1, 0], contents) == GOOD
    }
}

#[test]
fn a_copy_takes_what_a_compare_and_write_at_its_source_leaves() {
    for source in [0, 1] {
        let mut scene = Scene::new();
        scene.disks[usize::from(source)].hold();
        let swap = scene.compare_and_write(source, 0, &OLD, &NEW);
        let copy = scene.copy(source, 0);
        assert_eq!((scene.status(swap), scene.status(copy)), (None, None));
        scene.disks[usize::from(source)].release();
        scene.run();
        assert_eq!((scene.status(swap), scene.status(copy)), (Some(GOOD), Some(GOOD)));
        assert!(scene.has(0, 8, &NEW));
    }
}

#[test]
fn a_compare_and_write_at_the_destination_sees_all_of_a_copy_or_nothing() {
    for destination in [0, 1] {
        let mut scene = Scene::new();
        scene.disks[usize::from(destination)].hold();
        let copy = scene.copy(0, destination);
        let swap = scene.compare_and_write(destination, 8, &OLD, &NEW);
        assert_eq!((scene.status(copy), scene.status(swap)), (None, None));
        scene.disks[usize::from(destination)].release();
        scene.run();
        assert_eq!((scene.status(copy), scene.status(swap)), (Some(GOOD), Some(GOOD)));
        assert!(scene.has(destination, 8, &NEW));
    }
}

#[test]
fn bits_that_are_added_at_the_destination_are_added_to_the_copy() {
    let mut scene = Scene::new();
    scene.disks[0].hold();
    let copy = scene.copy(1, 0);
    let or = scene.or_write(8, &NEW);
    scene.disks[0].release();
    scene.run();
    assert_eq!((scene.status(copy), scene.status(or)), (Some(GOOD), Some(GOOD)));
    assert!(scene.has(0, 8, &[0x33; 512]));
}

#[test]
fn a_copy_that_is_aborted_while_it_waits_copies_nothing() {
    let mut scene = Scene::new();
    scene.disks[1].hold();
    scene.compare_and_write(1, 0, &OLD, &NEW);
    let copy = scene.copy(1, 0);
    let now = scene.world.host.now();
    let abort = TaskFunction::AbortTaskSet(Lun::from_index(0));
    scene.initiator.session.as_mut().unwrap().task_management(now, abort);
    scene.run();
    scene.disks[1].release();
    scene.run();
    assert_eq!(scene.status(copy), None);
    assert!(scene.has(0, 8, &[0; 512]));
    // Nothing is occupied any more.
    let swap = scene.compare_and_write(0, 8, &[0; 512], &NEW);
    assert_eq!(scene.status(swap), Some(GOOD));
}
