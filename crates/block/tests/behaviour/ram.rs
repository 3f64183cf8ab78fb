//! The RAM disk: sparse, checked, and shared by threads.

use crate::device;
use crate::device::{Device, KIB, MIB, kind, pattern};
use ropewalk_block::{Backend, BlockErrorKind, ExtentState, Operation, Ram};

const TIB: u64 = 1 << 40;
const CHUNK_BYTES: u64 = 256 << 10;

fn ram(bytes: u64) -> Device {
    Device::new(Ram::new(512, bytes / 512).unwrap())
}

#[test]
fn a_huge_disk_costs_only_what_is_written() {
    let ram = std::sync::Arc::new(Ram::new(512, 4 * TIB / 512).unwrap());
    let disk = Device::with_world(ram.clone(), Vec::new());
    let data = pattern(1, 4 * KIB);
    disk.write(3 * TIB, &data);
    assert_eq!(disk.read(3 * TIB, 4 * KIB), data);
    assert_eq!(disk.read(TIB, 4 * KIB), vec![0; 4 * KIB]);
    assert_eq!(ram.allocated_bytes(), CHUNK_BYTES);
    disk.unmap(0, 4 * TIB - 4096);
    assert_eq!(ram.allocated_bytes(), 0);
}

#[test]
fn a_transfer_over_several_chunks_arrives_whole() {
    let disk = ram(4 * MIB as u64);
    let data = pattern(2, MIB + 1536);
    disk.write(CHUNK_BYTES - 512, &data);
    assert_eq!(disk.read(CHUNK_BYTES - 512, data.len()), data);
}

#[test]
fn unmapped_and_zeroed_blocks_read_as_zeroes_and_their_neighbours_do_not() {
    let disk = ram(4 * MIB as u64);
    disk.write(0, &vec![1; 2 * MIB]);
    disk.unmap(512, 1024);
    disk.write_zeroes(MIB as u64 - 512, 1024, false);
    let contents = disk.read(0, 2 * MIB);
    let zero = |index: usize| (512..1536).contains(&index) || (MIB - 512..MIB + 512).contains(&index);
    assert!(contents.iter().enumerate().all(|(index, byte)| (*byte == 0) == zero(index)));
}

#[test]
fn what_is_lent_stays_as_it_was_whatever_is_written_later() {
    let ram = std::sync::Arc::new(Ram::new(512, MIB as u64 / 512).unwrap());
    let disk = Device::with_world(ram.clone(), Vec::new());
    let (before, after) = (pattern(3, 128 * KIB), pattern(4, 4 * KIB));
    disk.write(0, &before);
    let lent = ram.lend(0, 128 << 10).unwrap();
    disk.write(0, &after);
    disk.unmap(64 << 10, 64 << 10);
    assert_eq!(lent[..], before);
    assert_eq!(disk.read(0, 4 * KIB), after);
    assert_eq!(disk.read(4 << 10, 4 * KIB), before[4 * KIB..8 * KIB]);
    assert_eq!(disk.read(64 << 10, 4 * KIB), vec![0; 4 * KIB]);
}

#[test]
fn no_more_is_lent_than_lies_together_and_nothing_that_was_never_written() {
    let ram = std::sync::Arc::new(Ram::new(512, MIB as u64 / 512).unwrap());
    let disk = Device::with_world(ram.clone(), Vec::new());
    assert!(ram.lend(0, 4096).is_none());
    disk.write(0, &pattern(5, MIB));
    assert_eq!(ram.lend(CHUNK_BYTES - 512, 4096).unwrap().len(), 512);
    assert!(ram.lend(MIB as u64 - 512, 1024).is_none(), "beyond the end");
}

#[test]
fn extents_tell_written_chunks_from_holes() {
    let disk = ram(4 * MIB as u64);
    disk.write(2 * CHUNK_BYTES, &[1; 512]);
    disk.write(3 * CHUNK_BYTES, &[1; 512]);
    let expected = vec![
        (512, 2 * CHUNK_BYTES - 512, ExtentState::Zero),
        (2 * CHUNK_BYTES, 2 * CHUNK_BYTES, ExtentState::Data),
        (4 * CHUNK_BYTES, 512, ExtentState::Zero),
    ];
    assert_eq!(disk.extents(512, 4 * CHUNK_BYTES), expected);
}

#[test]
fn what_is_beyond_the_end_is_refused_and_the_buffer_comes_back() {
    let disk = ram(MIB as u64);
    assert_eq!(kind(disk.try_write(MIB as u64 - 512, &[1; 1024])), BlockErrorKind::OutOfRange);
    assert_eq!(kind(disk.try_write(u64::MAX - 511, &[1; 1024])), BlockErrorKind::OutOfRange);
    let completion = device::done(disk.start_read(MIB as u64, 512));
    assert!(completion.buffer.is_some());
    assert_eq!(kind(completion.result), BlockErrorKind::OutOfRange);
}

#[test]
fn what_is_not_whole_blocks_is_refused() {
    let disk = ram(MIB as u64);
    assert_eq!(kind(disk.try_read(100, 512)), BlockErrorKind::Misaligned);
    assert_eq!(kind(disk.try_read(0, 100)), BlockErrorKind::Misaligned);
}

#[test]
fn its_space_is_what_is_written_and_what_is_left_of_its_capacity() {
    let disk = ram(4 * CHUNK_BYTES);
    disk.write(CHUNK_BYTES, &pattern(1, 512));
    let space = disk.space();
    assert_eq!((space.used_bytes, space.available_bytes), (CHUNK_BYTES, 3 * CHUNK_BYTES));
    disk.unmap(0, 4 * CHUNK_BYTES);
    assert_eq!(disk.space().used_bytes, 0);
}

#[test]
fn impossible_blocks_and_capacities_are_refused() {
    for block_bytes in [0, 1, 511, 520, 128 << 10] {
        assert_eq!(kind(Ram::new(block_bytes, 8).map(|_| ())), BlockErrorKind::Unsupported);
    }
    assert_eq!(kind(Ram::new(512, u64::MAX / 2).map(|_| ())), BlockErrorKind::OutOfRange);
}

#[test]
fn a_block_that_many_threads_write_holds_the_data_of_one() {
    let disk = Ram::new(4096, 16).unwrap();
    let write_and_look = |value: u8| {
        let slab = ropewalk_block::Slab::new(MIB);
        for _ in 0..500 {
            let mut buffer = slab.allocate(4096).unwrap();
            buffer.fill(value);
            let payload = buffer.share();
            device::done(disk.submit(Operation::Write { offset: 4096, payload, fua: false })).result.unwrap();
            let buffer = slab.allocate(4096).unwrap();
            let read = device::done(disk.submit(Operation::Read { offset: 4096, buffer }));
            let read = read.into_buffer().unwrap();
            assert!(read.iter().all(|byte| *byte == read[0]));
        }
    };
    std::thread::scope(|scope| {
        for value in 1..=4 {
            scope.spawn(move || write_and_look(value));
        }
    });
}
