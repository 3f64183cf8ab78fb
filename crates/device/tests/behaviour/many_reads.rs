//! Many long reads at once. At error recovery level 2 the target keeps what it has sent until that is acknowledged; no
//! read may wait for memory that only the end of other waiting reads would release.

use crate::world::initiator::Initiator;
use crate::world::{BLOCK, World, unit};
use block::{Backend, Operation, Pending, Properties, Ram, Slab};
use ropewalk_device::Host;
use scsi::client;
use session::initiator::{Data, TaskId};
use session::seam::PayloadRef;
use std::sync::Arc;

const READ_BYTES: u32 = 1 << 20;
const READ_BLOCKS: u16 = 2048;
const READS: u32 = 20;

/// A disk with data in every block, which `Ram` lends in pieces of 256 KiB.
pub fn full_ram() -> Arc<Ram> {
    let disk = Ram::new(BLOCK, u64::from(READS) * u64::from(READ_BLOCKS)).unwrap();
    let slab = Slab::new(READ_BYTES as usize);
    for read in 0..READS {
        let mut buffer = slab.allocate(READ_BYTES as usize).unwrap();
        buffer.fill(u8::try_from(read).unwrap() + 1);
        let payload = buffer.share();
        let write = Operation::Write { offset: u64::from(read) * u64::from(READ_BYTES), payload, fua: false };
        drop(disk.submit(write));
    }
    Arc::new(disk)
}

/// A disk that lends nothing.
struct Copying(Arc<Ram>);

impl Backend for Copying {
    fn properties(&self) -> Properties {
        self.0.properties()
    }

    fn submit(&self, operation: Operation) -> Pending {
        self.0.submit(operation)
    }
}

/// Every initiator requests the whole disk at once, in reads of so many blocks, and nobody acknowledges anything by a
/// later command. How many reads have ended well.
fn ended(world: &World, initiators: &mut [&mut Initiator], blocks: u16) -> usize {
    let bytes = usize::from(blocks) * BLOCK as usize;
    let mut tasks = Vec::new();
    for lba in (0..READS * u32::from(READ_BLOCKS)).step_by(blocks.into()) {
        for (index, initiator) in initiators.iter_mut().enumerate() {
            let place = initiator.buffer(&vec![0; bytes]);
            let cdb = client::read_10(lba, blocks);
            tasks.push((index, lba, place, initiator.submit(world.host.now(), &cdb, Data::In(place))));
        }
    }
    world.run(initiators);
    let is_read = |(index, lba, place, task): &(usize, u32, PayloadRef, TaskId)| {
        let initiator = &initiators[*index];
        let read = initiator.buffers.get(place.buffer).unwrap();
        initiator.completed.get(task).is_some_and(|completion| completion.status == 0)
            && (*lba / u32::from(READ_BLOCKS)..)
                .zip(read.chunks(READ_BYTES as usize))
                .all(|(chunk, bytes)| bytes == vec![u8::try_from(chunk).unwrap() + 1; READ_BYTES as usize])
    };
    tasks.iter().filter(|task| is_read(task)).count()
}

fn learn_attentions(world: &World, initiator: &mut Initiator) {
    for _ in 0..2 {
        initiator.submit(world.host.now(), &client::test_unit_ready(), Data::None);
        world.run(&mut [initiator]);
    }
}

/// How many reads of one session at this level end.
fn ended_of_one_session(level: u8, disk: Arc<dyn Backend>, buffer_bytes: usize) -> usize {
    let world = World::with_memory(buffer_bytes, vec![(unit(0), disk)]);
    let mut initiator = world.initiator_at_level(level, 1);
    learn_attentions(&world, &mut initiator);
    ended(&world, &mut [&mut initiator], READ_BLOCKS)
}

#[test]
fn many_long_reads_of_one_session_all_end_when_the_disk_lends_its_memory() {
    let disk = full_ram();
    for level in [0, 2] {
        for buffer_bytes in [8 << 20, 64 << 20] {
            let ended = ended_of_one_session(level, Arc::clone(&disk) as _, buffer_bytes);
            assert_eq!(ended, READS as usize, "level {level}, {buffer_bytes} bytes");
        }
    }
}

#[test]
fn many_long_reads_of_one_session_all_end_when_the_disk_copies() {
    let disk = Arc::new(Copying(full_ram()));
    for level in [0, 2] {
        for buffer_bytes in [8 << 20, 64 << 20] {
            let ended = ended_of_one_session(level, Arc::clone(&disk) as _, buffer_bytes);
            assert_eq!(ended, READS as usize, "level {level}, {buffer_bytes} bytes");
        }
    }
}

#[test]
fn many_long_reads_of_all_sessions_of_one_host_end() {
    let disk = full_ram();
    for buffer_bytes in [32 << 20, 64 << 20] {
        let world = World::with_memory(buffer_bytes, vec![(unit(0), Arc::clone(&disk) as _)]);
        let mut initiators: Vec<_> = (1..=4).map(|isid| world.initiator_at_level(2, isid)).collect();
        initiators.iter_mut().for_each(|initiator| learn_attentions(&world, initiator));
        // Several pieces each: a read that waits has sent a part, which the target keeps.
        let ended = ended(&world, &mut initiators.iter_mut().collect::<Vec<_>>(), 4 * READ_BLOCKS);
        assert_eq!(ended, READS as usize, "{buffer_bytes} bytes");
    }
}

#[test]
fn reads_of_usual_lengths_end_in_the_order_in_which_they_came() {
    let ram = full_ram();
    let disks: [Arc<dyn Backend>; 2] = [Arc::clone(&ram) as _, Arc::new(Copying(ram))];
    for (disk, level) in disks.iter().flat_map(|disk| [(disk, 0), (disk, 2)]) {
        // Room for a few of them.
        let world = World::with_memory(32 << 20, vec![(unit(0), Arc::clone(disk))]);
        let mut initiator = world.initiator_at_level(level, 1);
        learn_attentions(&world, &mut initiator);
        initiator.ended_tasks.clear();
        let place = initiator.buffer(&vec![0; READ_BYTES as usize]);
        let reads: Vec<_> = (0..READS)
            .map(|read| client::read_10(read * u32::from(READ_BLOCKS), READ_BLOCKS))
            .map(|cdb| initiator.submit(world.host.now(), &cdb, Data::In(place)))
            .collect();
        world.run(&mut [&mut initiator]);
        assert_eq!(initiator.ended_tasks, reads, "level {level}");
    }
}
