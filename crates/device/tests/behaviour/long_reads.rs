//! Reads of several pieces from disks that take their time: one read ends after the other.

use crate::many_reads::full_ram;
use crate::world::initiator::Initiator;
use crate::world::{BLOCK, World, unit};
use block::{Backend, Completer, Operation, Pending, Properties, Ram};
use ropewalk_device::Host;
use scsi::client;
use session::initiator::{Data, TaskId};
use session::seam::PayloadRef;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

/// The longest piece of a read.
const PIECE_BLOCKS: u16 = 2048;

/// A disk that finishes one read at a time, when it is told to.
struct SlowDisk {
    disk: Arc<Ram>,
    /// Reads that it was given, in order.
    reads: Mutex<VecDeque<(Operation, Completer)>>,
}

impl SlowDisk {
    fn new() -> Arc<Self> {
        Arc::new(Self { disk: full_ram(), reads: Mutex::default() })
    }

    /// Finishes the first read that is not finished. `false` if there is none.
    fn finish_first(&self) -> bool {
        let Some((read, completer)) = self.reads.lock().unwrap().pop_front() else { return false };
        let Ok(completion) = self.disk.submit(read).try_take() else { unreachable!("memory is fast") };
        completer.complete(completion);
        true
    }
}

impl Backend for SlowDisk {
    fn properties(&self) -> Properties {
        self.disk.properties()
    }

    fn submit(&self, operation: Operation) -> Pending {
        if !matches!(operation, Operation::Read { .. }) {
            return self.disk.submit(operation);
        }
        let (completer, pending) = Pending::channel();
        self.reads.lock().unwrap().push_back((operation, completer));
        pending
    }
}

/// An initiator at two slow disks, and its reads.
struct Scene {
    world: World,
    disks: [Arc<SlowDisk>; 2],
    initiator: Initiator,
    reads: Vec<(TaskId, PayloadRef)>,
}

impl Scene {
    fn new(error_recovery_level: u8, buffer_bytes: usize) -> Self {
        let disks = [SlowDisk::new(), SlowDisk::new()];
        let units = (0..).map(unit).zip(disks.iter().map(|disk| Arc::clone(disk) as _)).collect();
        let world = World::with_memory(buffer_bytes, units);
        let mut initiator = world.initiator_at_level(error_recovery_level, 1);
        for lun in [0, 0, 1, 1] {
            initiator.submit_to(lun, world.host.now(), &client::test_unit_ready(), Data::None);
            world.run(&mut [&mut initiator]);
        }
        initiator.ended_tasks.clear();
        Self { world, disks, initiator, reads: Vec::new() }
    }

    fn run(&mut self) {
        self.world.run(&mut [&mut self.initiator]);
    }

    /// Requests so many pieces of a unit, from its first block on.
    fn read(&mut self, lun: u16, pieces: u16) -> TaskId {
        let blocks = pieces * PIECE_BLOCKS;
        let place = self.initiator.buffer(&vec![0; usize::from(blocks) * BLOCK as usize]);
        let cdb = client::read_10(0, blocks);
        let task = self.initiator.submit_to(lun, self.world.host.now(), &cdb, Data::In(place));
        self.reads.push((task, place));
        task
    }

    /// How many reads have received a part of their data.
    fn reads_under_way(&self) -> usize {
        let has_begun = |place: &PayloadRef| self.initiator.buffers.get(place.buffer).unwrap()[0] != 0;
        let has_ended = |task| self.initiator.ended_tasks.contains(task);
        self.reads.iter().filter(|(task, place)| has_begun(place) && !has_ended(task)).count()
    }
}

#[test]
fn one_long_read_ends_after_the_other() {
    for (level, buffer_bytes, pieces) in [(0, 64 << 20, 4), (0, 32 << 20, 10), (2, 64 << 20, 10)] {
        let mut scene = Scene::new(level, buffer_bytes);
        let reads = [(); 3].map(|()| scene.read(0, pieces));
        scene.run();
        while scene.disks[0].finish_first() {
            scene.run();
            let under_way = scene.reads_under_way();
            assert!(under_way <= 1, "{under_way} reads of {pieces} pieces at once");
        }
        assert_eq!(scene.initiator.ended_tasks, reads, "level {level}, {buffer_bytes} bytes");
    }
}

#[test]
fn a_long_read_requests_its_first_piece_once_the_one_before_it_has_requested_its_last() {
    let mut scene = Scene::new(0, 64 << 20);
    scene.read(0, 4);
    scene.read(0, 4);
    scene.run();
    assert_eq!(scene.disks[0].reads.lock().unwrap().len(), 8);
}

#[test]
fn a_read_of_one_piece_does_not_wait_for_long_ones() {
    let mut scene = Scene::new(0, 64 << 20);
    let [_, _, short] = [10, 10, 1].map(|pieces| scene.read(0, pieces));
    scene.run();
    while scene.initiator.ended_tasks.is_empty() {
        assert!(scene.disks[0].finish_first());
        scene.run();
    }
    assert_eq!(scene.initiator.ended_tasks, [short]);
}

#[test]
fn a_long_read_does_not_wait_for_another_unit() {
    let mut scene = Scene::new(0, 64 << 20);
    let [_, other] = [0, 1].map(|lun| scene.read(lun, 10));
    scene.run();
    while scene.disks[1].finish_first() {
        scene.run();
    }
    assert_eq!(scene.initiator.ended_tasks, [other]);
}

#[test]
fn a_long_read_that_waits_for_its_turn_ends_when_it_is_aborted() {
    let mut scene = Scene::new(0, 64 << 20);
    let [first, aborted, last] = [10, 10, 10].map(|pieces| scene.read(0, pieces));
    scene.run();
    scene.initiator.abort(scene.world.host.now(), aborted);
    scene.run();
    assert_eq!(scene.initiator.ended_tasks, [aborted]);
    while scene.disks[0].finish_first() {
        scene.run();
    }
    assert_eq!(scene.initiator.ended_tasks, [aborted, first, last]);
}

#[test]
fn a_long_read_goes_on_when_the_one_before_it_is_aborted() {
    let mut scene = Scene::new(0, 64 << 20);
    let [aborted, last] = [10, 10].map(|pieces| scene.read(0, pieces));
    scene.run();
    scene.initiator.abort(scene.world.host.now(), aborted);
    scene.run();
    while scene.disks[0].finish_first() {
        scene.run();
    }
    assert_eq!(scene.initiator.ended_tasks, [aborted, last]);
}
