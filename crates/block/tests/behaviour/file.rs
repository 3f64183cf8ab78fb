//! Files: opened safely, of any size, with the same behaviour by each engine.

use crate::device;
use std::os::unix::fs::MetadataExt;

use crate::device::on_disk::{by_each_engine, device, each_engine, scratch};
use crate::device::{KIB, MIB, kind, pattern, wait};
use requirement::{Need, skip};
use ropewalk_block::{
    Backend, BlockErrorKind, Engine, EngineChoice, ExtentState, File, FileOptions, Operation,
};

const TIB: u64 = 1 << 40;

/// A hundred times what a slow disk takes.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(60);

fn sized(bytes: u64) -> FileOptions {
    FileOptions { size_bytes: Some(bytes), ..FileOptions::default() }
}

fn thin(bytes: u64) -> FileOptions {
    FileOptions { thin: true, ..sized(bytes) }
}

/// A filesystem may have no direct I/O (tmpfs before Linux 6.6).
fn direct(bytes: u64) -> Option<FileOptions> {
    let options = FileOptions { direct: true, block_bytes: 4096, ..sized(bytes) };
    let folder = tempfile::tempdir().unwrap();
    let engine = Engine::new(EngineChoice::Threads).unwrap();
    match File::open(folder.path().join("disk"), &options, &engine) {
        Ok(_) => Some(options),
        Err(error) => {
            skip(Need::Direct, &format!("no direct I/O here: {error}"));
            None
        }
    }
}

#[test]
fn what_is_written_is_read_back_and_the_rest_is_zero() {
    by_each_engine(|engine| {
        let disk = scratch(&sized(8 * MIB as u64), engine);
        let data = pattern(1, 3 * MIB);
        disk.write(512, &data);
        assert_eq!(disk.read(512, data.len()), data);
        assert_eq!(disk.read(4 * MIB as u64, MIB), vec![0; MIB]);
    });
}

#[test]
fn a_file_keeps_its_contents_when_opened_again() {
    by_each_engine(|engine| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("disk");
        let disk = device(&path, &sized(MIB as u64), engine);
        disk.write_fua(0, &[1; 4096]);
        disk.write(4096, &[2; 4096]);
        disk.flush();
        drop(disk);
        let disk = device(&path, &FileOptions::default(), engine);
        assert_eq!(disk.backend.properties().bytes(), MIB as u64);
        assert_eq!(disk.read(0, 8192), [[1; 4096], [2; 4096]].concat());
    });
}

#[test]
fn a_file_beyond_two_tebibytes_is_reached_to_its_last_block() {
    by_each_engine(|engine| {
        let disk = scratch(&thin(3 * TIB), engine);
        let data = pattern(2, 64 * KIB);
        disk.write(3 * TIB - data.len() as u64, &data);
        assert_eq!(disk.read(3 * TIB - data.len() as u64, data.len()), data);
        assert_eq!(kind(disk.try_write(3 * TIB, &[1; 512])), BlockErrorKind::OutOfRange);
    });
}

#[test]
fn more_operations_than_the_engine_is_deep_all_complete() {
    by_each_engine(|engine| {
        let disk = scratch(&sized(8 * MIB as u64), engine);
        let writes = (0..1000).map(|index| disk.start_write(index * 4096, &pattern(index + 1, 4096)));
        for write in writes.collect::<Vec<_>>() {
            wait(write).result.unwrap();
        }
        for index in 0..1000 {
            assert_eq!(disk.read(index * 4096, 4096), pattern(index + 1, 4096));
        }
    });
}

#[test]
fn a_write_whose_pending_is_dropped_still_happens() {
    by_each_engine(|engine| {
        let disk = scratch(&sized(MIB as u64), engine);
        drop(disk.start_write(0, &[7; 4096]));
        let begun = std::time::Instant::now();
        while disk.read(0, 4096) != [7; 4096] {
            assert!(begun.elapsed() < PATIENCE, "it did not happen");
            std::thread::yield_now();
        }
    });
}

#[test]
fn an_engine_that_is_dropped_first_finishes_what_it_began() {
    for engine in each_engine() {
        let folder = tempfile::tempdir().unwrap();
        let file = File::open(folder.path().join("disk"), &sized(64 * MIB as u64), &engine).unwrap();
        let slab = ropewalk_block::Slab::new(64 * MIB);
        let write = |offset| {
            let payload = slab.allocate(MIB).unwrap().share();
            file.submit(Operation::Write { offset, payload, fua: true })
        };
        let writes = (0..16).map(|index| write(index * MIB as u64)).collect::<Vec<_>>();
        drop(file);
        drop(engine);
        for write in writes {
            wait(write).result.unwrap();
        }
        assert_eq!(slab.in_use_bytes(), 0);
    }
}

#[test]
fn a_file_that_was_cut_meanwhile_reports_a_medium_error_and_gives_the_buffer_back() {
    by_each_engine(|engine| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("disk");
        let disk = device(&path, &sized(MIB as u64), engine);
        std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(100).unwrap();
        let completion = wait(disk.start_read(0, 4096));
        assert!(completion.buffer.is_some());
        assert_eq!(kind(completion.result), BlockErrorKind::Medium);
    });
}

#[test]
fn unmapping_frees_the_space_and_reads_zero() {
    by_each_engine(|engine| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("disk");
        let disk = device(&path, &thin(8 * MIB as u64), engine);
        disk.write(0, &vec![1; 8 * MIB]);
        disk.flush();
        let full_sectors = std::fs::metadata(&path).unwrap().blocks();
        disk.unmap(MIB as u64, 6 * MIB as u64);
        assert_eq!(disk.read(0, MIB), vec![1; MIB]);
        assert_eq!(disk.read(MIB as u64, 6 * MIB), vec![0; 6 * MIB]);
        assert_eq!(disk.read(7 * MIB as u64, MIB), vec![1; MIB]);
        disk.flush();
        assert!(std::fs::metadata(&path).unwrap().blocks() < full_sectors / 2);
    });
}

#[test]
fn the_space_of_a_thin_file_is_what_it_has_allocated() {
    by_each_engine(|engine| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("disk");
        let disk = device(&path, &thin(8 * MIB as u64), engine);
        disk.write(0, &vec![1; 2 * MIB]);
        disk.flush();
        let (allocated_bytes, space) = (std::fs::metadata(&path).unwrap().blocks() * 512, disk.space());
        assert_eq!(space.used_bytes, allocated_bytes);
        assert!(space.available_bytes <= 8 * MIB as u64 - allocated_bytes);
        disk.unmap(0, 8 * MIB as u64);
        assert!(disk.space().used_bytes < allocated_bytes);
    });
}

#[test]
fn a_file_that_cannot_grow_has_no_more_space_than_its_filesystem() {
    by_each_engine(|engine| {
        let folder = tempfile::tempdir().unwrap();
        let free = rustix::fs::statvfs(folder.path()).unwrap();
        let free_bytes = free.f_blocks * free.f_frsize;
        let disk = device(&folder.path().join("disk"), &thin(TIB.max(4 * free_bytes)), engine);
        assert!(disk.space().available_bytes <= free_bytes);
    });
}

#[test]
fn zeroes_keep_the_space_unless_they_may_unmap_a_thin_file() {
    by_each_engine(|engine| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("disk");
        let disk = device(&path, &thin(4 * MIB as u64), engine);
        let sectors = || {
            disk.flush();
            std::fs::metadata(&path).unwrap().blocks()
        };
        disk.write(0, &vec![1; 4 * MIB]);
        let full_sectors = sectors();
        disk.write_zeroes(0, 4 * MIB as u64, false);
        assert_eq!(disk.read(0, 4 * MIB), vec![0; 4 * MIB]);
        assert!(sectors() >= full_sectors / 2);
        disk.write_zeroes(0, 4 * MIB as u64, true);
        assert!(sectors() < full_sectors / 2);
    });
}

#[test]
fn zeroes_in_the_middle_of_a_page_leave_its_rest() {
    by_each_engine(|engine| {
        let disk = scratch(&thin(MIB as u64), engine);
        disk.write(0, &[1; 8192]);
        disk.write_zeroes(512, 1024, false);
        disk.unmap(4096 + 512, 1024);
        let contents = disk.read(0, 8192);
        let zero = |index: usize| (512..1536).contains(&(index % 4096));
        assert!(contents.iter().enumerate().all(|(index, byte)| (*byte == 0) == zero(index)));
    });
}

#[test]
fn a_file_that_is_not_thin_cannot_be_unmapped() {
    by_each_engine(|engine| {
        let disk = scratch(&sized(MIB as u64), engine);
        assert_eq!(disk.backend.properties().thin, None);
        let unmap = disk.run(Operation::Unmap { offset: 0, bytes: 4096 });
        assert_eq!(kind(unmap), BlockErrorKind::Unsupported);
        assert_eq!(kind(disk.run(Operation::Space)), BlockErrorKind::Unsupported);
    });
}

#[test]
fn extents_show_the_holes_of_a_sparse_file() {
    by_each_engine(|engine| {
        let disk = scratch(&thin(TIB), engine);
        disk.write(MIB as u64, &vec![1; MIB]);
        disk.flush();
        let expected = [
            (0, MIB as u64, ExtentState::Zero),
            (MIB as u64, MIB as u64, ExtentState::Data),
            (2 * MIB as u64, TIB - 2 * MIB as u64, ExtentState::Zero),
        ];
        assert_eq!(disk.extents(0, TIB), expected);
        assert_eq!(disk.extents(TIB - 512, 512), [(TIB - 512, 512, ExtentState::Zero)]);
        assert_eq!(disk.extents(0, 0), []);
    });
}

#[test]
fn extents_of_a_fragmented_file_come_in_bounded_answers_that_join() {
    by_each_engine(|engine| {
        let pieces = 800;
        let disk = scratch(&thin(pieces * 16 * KIB as u64), engine);
        for index in 0..pieces {
            disk.write(index * 16 * KIB as u64, &[1; 4096]);
        }
        disk.flush();
        let total = pieces * 16 * KIB as u64;
        let first = disk.extents(0, total);
        let (offset, bytes, _) = *first.last().unwrap();
        let rest = disk.extents(offset + bytes, total - offset - bytes);
        let data = first.iter().chain(&rest).filter(|(.., state)| *state == ExtentState::Data).count();
        assert_eq!(data as u64, pieces);
        assert!(first.len() < 2 * data);
    });
}

#[test]
fn direct_files_are_written_and_read_past_the_cache() {
    let Some(options) = direct(4 * MIB as u64) else { return };
    by_each_engine(|engine| {
        let disk = scratch(&options, engine);
        let data = pattern(3, MIB);
        disk.write(4096, &data);
        disk.write_zeroes(8192, 4096, false);
        let contents = disk.read(4096, MIB);
        assert_eq!(contents[..4096], data[..4096]);
        assert_eq!(contents[4096..8192], [0; 4096]);
        assert_eq!(contents[8192..], data[8192..]);
    });
}

#[test]
fn a_direct_write_from_misaligned_memory_is_refused() {
    let Some(options) = direct(MIB as u64) else { return };
    by_each_engine(|engine| {
        let disk = scratch(&options, engine);
        let payload = disk.payload(&[1; 8192]).slice(1..4097).unwrap();
        let write = disk.run(Operation::Write { offset: 0, payload, fua: false });
        assert_eq!(kind(write), BlockErrorKind::Misaligned);
    });
}

#[test]
fn an_offset_or_length_that_is_not_whole_blocks_is_refused() {
    by_each_engine(|engine| {
        let disk = scratch(&FileOptions { block_bytes: 4096, ..sized(MIB as u64) }, engine);
        assert_eq!(kind(disk.try_read(512, 4096)), BlockErrorKind::Misaligned);
        assert_eq!(kind(disk.try_write(0, &[1; 512])), BlockErrorKind::Misaligned);
    });
}

fn open(path: &std::path::Path, options: &FileOptions) -> Result<(), BlockErrorKind> {
    let engine = Engine::new(EngineChoice::Threads).unwrap();
    File::open(path, options, &engine).map(|_| ()).map_err(|error| error.kind())
}

#[test]
fn a_file_has_one_writer_or_many_readers() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("disk");
    let engine = Engine::new(EngineChoice::Threads).unwrap();
    let read_only = FileOptions { read_only: true, ..FileOptions::default() };
    let writer = File::open(&path, &sized(MIB as u64), &engine).unwrap();
    assert_eq!(open(&path, &FileOptions::default()), Err(BlockErrorKind::InUse));
    assert_eq!(open(&path, &read_only), Err(BlockErrorKind::InUse));
    drop(writer);
    let _reader = File::open(&path, &read_only, &engine).unwrap();
    assert_eq!(open(&path, &read_only), Ok(()));
    assert_eq!(open(&path, &FileOptions::default()), Err(BlockErrorKind::InUse));
}

#[test]
fn two_shards_share_one_open_file() {
    by_each_engine(|engine| {
        let folder = tempfile::tempdir().unwrap();
        let other = Engine::new(EngineChoice::Threads).unwrap();
        let file = File::open(folder.path().join("disk"), &sized(MIB as u64), &other).unwrap();
        let here = device::Device::with_world(
            std::sync::Arc::new(file.on(engine)),
            vec![Box::new(device::on_disk::EventLoop::of(engine))],
        );
        let there = device::Device::new(file);
        here.write(0, &[5; 512]);
        assert_eq!(there.read(0, 512), [5; 512]);
    });
}

#[test]
fn a_read_only_file_refuses_writes_of_every_kind() {
    by_each_engine(|engine| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("disk");
        std::fs::write(&path, [9; 4096]).unwrap();
        let disk =
            device(&path, &FileOptions { read_only: true, thin: true, ..FileOptions::default() }, engine);
        assert_eq!(kind(disk.try_write(0, &[1; 512])), BlockErrorKind::ReadOnly);
        assert_eq!(kind(disk.run(Operation::Unmap { offset: 0, bytes: 512 })), BlockErrorKind::ReadOnly);
        let zeroes = Operation::WriteZeroes { offset: 0, bytes: 512, may_unmap: true };
        assert_eq!(kind(disk.run(zeroes)), BlockErrorKind::ReadOnly);
        disk.flush();
        assert_eq!(disk.read(0, 4096), [9; 4096]);
    });
}

#[test]
fn a_missing_file_is_created_only_with_a_size() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("disk");
    assert_eq!(open(&path, &FileOptions::default()), Err(BlockErrorKind::NotFound));
    assert_eq!(open(&path, &FileOptions { read_only: true, ..sized(512) }), Err(BlockErrorKind::NotFound));
    assert_eq!(open(&path, &sized(512)), Ok(()));
}

#[test]
fn a_size_extends_a_file_and_never_cuts_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("disk");
    let engine = Engine::new(EngineChoice::Threads).unwrap();
    let bytes = |options: &FileOptions| File::open(&path, options, &engine).unwrap().properties().bytes();
    assert_eq!(bytes(&sized(8192)), 8192);
    assert_eq!(bytes(&sized(16384)), 16384);
    assert_eq!(bytes(&sized(512)), 16384);
}

#[test]
fn a_remainder_shorter_than_a_block_is_not_part_of_the_device() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("disk");
    std::fs::write(&path, [1; 1000]).unwrap();
    let engine = Engine::new(EngineChoice::Threads).unwrap();
    let file = File::open(&path, &FileOptions::default(), &engine).unwrap();
    assert_eq!(file.properties().blocks, 1);
}

#[test]
fn what_is_neither_a_file_nor_a_block_device_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(open(folder.path(), &FileOptions::default()), Err(BlockErrorKind::Unsupported));
    assert_eq!(open("/dev/null".as_ref(), &FileOptions::default()), Err(BlockErrorKind::Unsupported));
}

#[test]
fn an_engine_is_chosen_by_its_name() {
    assert_eq!("io_uring".parse::<EngineChoice>().unwrap(), EngineChoice::IoUring);
    assert_eq!("threads".parse::<EngineChoice>().unwrap(), EngineChoice::Threads);
    assert_eq!(kind("magic".parse::<EngineChoice>()), BlockErrorKind::Unsupported);
}

#[test]
fn where_the_filesystem_cannot_zero_a_range_zeroes_are_written() {
    // The usual place of a tmpfs, which has no such call; elsewhere the outcome is the same by other means.
    let folder = match tempfile::tempdir_in("/dev/shm") {
        Ok(folder) => folder,
        Err(error) => return skip(Need::Tmpfs, &format!("no folder in /dev/shm: {error}")),
    };
    by_each_engine(|engine| {
        let disk = device(&folder.path().join("disk"), &sized(4 * MIB as u64), engine);
        disk.write(0, &vec![1; 4 * MIB]);
        disk.write_zeroes(512, MIB as u64, false);
        let contents = disk.read(0, 4 * MIB);
        let zero = |index: usize| (512..512 + MIB).contains(&index);
        assert!(contents.iter().enumerate().all(|(index, byte)| (*byte == 0) == zero(index)));
    });
}
