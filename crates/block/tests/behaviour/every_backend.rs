//! Random operations on every backend give what they give on a plain array.

use std::sync::Arc;

use crate::device::forgetful::Forgetful;
use crate::device::{Device, KIB, MIB, pattern};
use proptest::prelude::*;
use ropewalk_block::{ExtentState, Operation, Ram, Rewriting, Volatile};

const BLOCK_BYTES: u64 = 512;
const BLOCKS: u64 = 2048;

#[derive(Clone, Debug)]
enum Act {
    Read,
    Write { seed: u64, fua: bool },
    WriteZeroes { may_unmap: bool },
    Unmap,
    Flush,
    Extents,
}

/// An act on a range of blocks.
fn acts() -> impl Strategy<Value = Vec<(Act, u64, u64)>> {
    let act = prop_oneof![
        3 => Just(Act::Read),
        6 => (any::<u64>(), prop::bool::weighted(0.2)).prop_map(|(seed, fua)| Act::Write { seed, fua }),
        1 => any::<bool>().prop_map(|may_unmap| Act::WriteZeroes { may_unmap }),
        1 => Just(Act::Unmap),
        1 => Just(Act::Flush),
        1 => Just(Act::Extents),
    ];
    let range = (0..BLOCKS, prop_oneof![0..16_u64, 0..BLOCKS]);
    let step = (act, range).prop_map(|(act, (first, count))| (act, first, count.min(BLOCKS - first)));
    prop::collection::vec(step, 1..60)
}

fn follows_the_model(disk: &Device, acts: &[(Act, u64, u64)]) {
    follows_the_model_whatever(disk, acts, |_| ());
}

/// The same, while something happens before each act on a range that begins at this block. Returns the model.
fn follows_the_model_whatever(disk: &Device, acts: &[(Act, u64, u64)], happens: impl Fn(u64)) -> Vec<u8> {
    let mut model = vec![0_u8; usize::try_from(BLOCKS * BLOCK_BYTES).unwrap()];
    for (act, first, count) in acts {
        happens(*first);
        let (offset, bytes) = (first * BLOCK_BYTES, count * BLOCK_BYTES);
        let start = usize::try_from(offset).unwrap();
        let length = usize::try_from(bytes).unwrap();
        let place = start..start + length;
        match act {
            Act::Read => assert_eq!(disk.read(offset, length), model[place]),
            Act::Write { seed, fua } => {
                let data = pattern(*seed, length);
                disk.run(Operation::Write { offset, payload: disk.payload(&data), fua: *fua }).unwrap();
                model[place].copy_from_slice(&data);
            }
            Act::WriteZeroes { may_unmap } => {
                disk.write_zeroes(offset, bytes, *may_unmap);
                model[place].fill(0);
            }
            Act::Unmap => {
                disk.unmap(offset, bytes);
                model[place].fill(0);
            }
            Act::Flush => disk.flush(),
            Act::Extents => check_extents(disk, &model, offset, bytes),
        }
    }
    assert_eq!(disk.read(0, model.len()), model);
    model
}

/// Extents join, lie within the range, and what they call zero is.
fn check_extents(disk: &Device, model: &[u8], offset: u64, bytes: u64) {
    let extents = disk.extents(offset, bytes);
    assert_eq!(extents.is_empty(), bytes == 0);
    let mut at = offset;
    for (start, length, state) in extents {
        assert_eq!(start, at);
        assert!(length > 0);
        at += length;
        if state == ExtentState::Zero {
            let place = usize::try_from(start).unwrap()..usize::try_from(at).unwrap();
            assert!(model[place].iter().all(|byte| *byte == 0));
        }
    }
    assert!(at <= offset + bytes);
}

fn ram() -> Device {
    Device::new(Ram::new(512, BLOCKS).unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn ram_does(acts in acts()) {
        follows_the_model(&ram(), &acts);
    }

    #[test]
    fn a_large_volatile_cache_does(acts in acts()) {
        follows_the_model(&ram().wrapped(|inner| Volatile::new(inner, 16 * MIB)), &acts);
    }

    #[test]
    fn a_small_volatile_cache_does(acts in acts()) {
        follows_the_model(&ram().wrapped(|inner| Volatile::new(inner, 64 * KIB)), &acts);
    }

    #[test]
    fn a_device_that_loses_its_cache_does_if_all_is_kept_that_it_may_lose(acts in acts()) {
        let forgetful = Forgetful::new(usize::try_from(BLOCKS * BLOCK_BYTES).unwrap());
        let disk = Device::new(Rewriting::new(Arc::new(forgetful.clone()), 4 * MIB));
        let lose_sometimes = |first: u64| if first.is_multiple_of(3) { forgetful.lose() };
        let model = follows_the_model_whatever(&disk, &acts, lose_sometimes);
        forgetful.lose();
        disk.flush();
        assert_eq!(forgetful.durable(), model);
    }
}

#[cfg(feature = "file")]
mod on_disk {
    use super::*;
    use crate::device::on_disk::{by_each_engine, scratch};
    use ropewalk_block::{Engine, FileOptions};

    fn file(engine: &Engine) -> Device {
        let size_bytes = Some(BLOCKS * BLOCK_BYTES);
        scratch(&FileOptions { thin: true, size_bytes, ..FileOptions::default() }, engine)
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 16, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn a_file_does(acts in acts()) {
            by_each_engine(|engine| follows_the_model(&file(engine), &acts));
        }

        #[test]
        fn a_volatile_file_does(acts in acts()) {
            by_each_engine(|engine| {
                follows_the_model(&file(engine).wrapped(|inner| Volatile::new(inner, 128 * KIB)), &acts);
            });
        }
    }
}

/// Many threads, each with its own part of the device, and flushes in between.
fn each_thread_sees_its_own_writes(disk: &Device) {
    let part_bytes = BLOCKS * BLOCK_BYTES / 4;
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let backend = Arc::clone(&disk.backend);
            scope.spawn(move || {
                let disk = Device::with_world(backend, Vec::new());
                for round in 0..40 {
                    let offset = thread * part_bytes + (round % 7) * 4096;
                    let data = pattern(thread * 1000 + round, 8 * KIB);
                    disk.write(offset, &data);
                    if round % 5 == 0 {
                        disk.flush();
                    }
                    assert_eq!(disk.read(offset, data.len()), data);
                }
            });
        }
    });
}

#[test]
fn ram_keeps_threads_apart() {
    each_thread_sees_its_own_writes(&ram());
}

#[test]
fn a_small_volatile_cache_keeps_threads_apart() {
    each_thread_sees_its_own_writes(&ram().wrapped(|inner| Volatile::new(inner, 32 * KIB)));
}

#[test]
fn memory_of_what_may_be_lost_keeps_threads_apart() {
    each_thread_sees_its_own_writes(&ram().wrapped(|inner| Rewriting::new(inner, 64 * KIB)));
}

#[cfg(feature = "file")]
#[test]
fn a_volatile_file_keeps_threads_apart() {
    use crate::device::on_disk::{by_each_engine, scratch};
    let size_bytes = Some(BLOCKS * BLOCK_BYTES);
    let options = ropewalk_block::FileOptions { thin: true, size_bytes, ..Default::default() };
    by_each_engine(|engine| {
        let file = scratch(&options, engine);
        each_thread_sees_its_own_writes(&file.wrapped(|inner| Volatile::new(inner, 32 * KIB)));
    });
}
