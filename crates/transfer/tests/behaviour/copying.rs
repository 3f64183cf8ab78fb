//! Every pair of ends, byte for byte.

use crate::world::{Disk, Faults, KIB, MIB, Sink, copy, destination, engine, filled, noise, options, source};
use ropewalk_transfer::{Destination, Options, Reader, Source, Verify};
use std::io::Cursor;

fn stream(data: Vec<u8>) -> Source {
    Source::stream("-", Reader::new(Cursor::new(data)))
}

#[test]
fn a_device_is_copied_to_a_device() {
    let (from, to) = (Disk::new(5 * MIB + 512), Disk::new(6 * MIB));
    from.fill(0, &noise(5 * MIB + 512));
    to.fill(5 * MIB + 512, &[7; 512]);
    let copy = copy(source(&from), destination(&to), options());
    let report = copy.outcome.unwrap();
    assert_eq!((report.bytes, report.verified), (5 * MIB + 512, Verify::Full));
    let (wanted, found) = (from.contents(), to.contents());
    assert!(found[..wanted.len()] == wanted);
    assert_eq!(found[wanted.len()], 7);
    assert_eq!(copy.progress.done_bytes, 5 * MIB + 512);
    assert_eq!(copy.progress.verified_bytes, 5 * MIB + 512);
}

#[test]
fn blocks_of_different_lengths_do_not_matter() {
    let from = Disk::with(MIB + 512, 512, Faults::default());
    let to = Disk::with(2 * MIB, 4096, Faults::default());
    from.fill(0, &noise(MIB + 512));
    to.fill(MIB, &[7; 4096]);
    copy(source(&from), destination(&to), options()).outcome.unwrap();
    let (wanted, found) = (from.contents(), to.contents());
    assert!(found[..wanted.len()] == wanted);
    assert!(found[wanted.len()..wanted.len() + 3584].iter().all(|byte| *byte == 0));
}

#[test]
fn holes_and_zeroes_become_zero_without_being_sent() {
    let (from, to) = (Disk::new(8 * MIB), Disk::new(8 * MIB));
    from.fill(MIB, &noise(MIB));
    from.fill(4 * MIB, &filled(0, MIB));
    to.fill(0, &filled(7, 8 * MIB));
    copy(source(&from), destination(&to), options()).outcome.unwrap();
    assert!(to.contents() == from.contents());
    assert_eq!(to.asked().written_bytes, MIB);
    assert_eq!(to.asked().zeroed_bytes, 7 * MIB);
    assert!(to.asked().unmapping_zeroes > 0);
}

#[test]
fn what_may_read_as_anything_after_unmapping_is_not_unmapped() {
    let (from, to) = (Disk::new(MIB), Disk::with(MIB, 512, Faults { not_lbprz: true, ..Faults::default() }));
    to.fill(0, &filled(7, MIB));
    copy(source(&from), destination(&to), options()).outcome.unwrap();
    assert_eq!(to.asked().unmapping_zeroes, 0);
    assert_eq!(to.asked().zeroed_bytes, MIB);
}

#[test]
fn a_destination_without_a_zeroing_command_is_sent_zeroes() {
    let (from, to) = (Disk::new(MIB), Disk::with(MIB, 512, Faults { no_zeroing: true, ..Faults::default() }));
    to.fill(0, &filled(7, MIB));
    copy(source(&from), destination(&to), options()).outcome.unwrap();
    assert!(to.contents() == from.contents());
    assert_eq!(to.asked().written_bytes, MIB);
}

#[test]
fn zeroes_are_left_out_where_the_user_says_that_the_destination_is_zero() {
    let (from, to) = (Disk::new(4 * MIB), Disk::new(4 * MIB));
    from.fill(MIB, &noise(512 * KIB));
    let options = Options { destination_is_zero: true, ..options() };
    let copy = copy(source(&from), destination(&to), options);
    copy.outcome.unwrap();
    assert!(to.contents() == from.contents());
    assert_eq!(to.asked().zeroed_bytes, 0);
    assert_eq!(copy.progress.skipped_bytes, 4 * MIB - 512 * KIB);
}

#[test]
fn a_source_that_cannot_tell_its_holes_is_read() {
    let from = Disk::with(2 * MIB, 512, Faults { no_extents: true, ..Faults::default() });
    let to = Disk::new(2 * MIB);
    from.fill(0, &noise(MIB));
    copy(source(&from), destination(&to), Options { verify: Verify::Off, ..options() }).outcome.unwrap();
    assert!(to.contents() == from.contents());
    assert_eq!(from.asked().read_bytes, 2 * MIB);
}

#[test]
fn the_destination_is_flushed_at_least_every_256_mib() {
    let (from, to) = (Disk::new(300 * MIB), Disk::new(300 * MIB));
    from.fill(0, &noise(300 * MIB));
    let options = Options { request_bytes: MIB, verify: Verify::Sample, ..options() };
    copy(source(&from), destination(&to), options).outcome.unwrap();
    assert!(to.asked().unflushed_bytes_max <= 256 * MIB);
    assert!(to.asked().flushes >= 2);
}

#[test]
fn a_stream_of_any_length_fills_whole_blocks() {
    for length in [1, 64 * KIB, 64 * KIB + 1, MIB + 77] {
        let to = Disk::new(2 * MIB);
        let copy = copy(stream(noise(length)), destination(&to), options());
        assert_eq!(copy.outcome.unwrap().bytes, length);
        let length = usize::try_from(length).unwrap();
        assert!(to.contents()[..length] == noise(length as u64));
        assert!(to.contents()[length..].iter().all(|byte| *byte == 0));
    }
}

#[test]
fn a_device_becomes_a_stream_in_order() {
    let (from, to) = (Disk::new(3 * MIB), Sink::default());
    from.fill(0, &noise(2 * MIB));
    let report = copy(source(&from), to.destination(), options()).outcome.unwrap();
    assert_eq!((report.bytes, report.verified), (3 * MIB, Verify::Off));
    assert!(*to.0.lock().unwrap() == from.contents());
}

#[test]
fn a_stream_becomes_a_stream() {
    let to = Sink::default();
    copy(stream(noise(MIB + 1)), to.destination(), options()).outcome.unwrap();
    assert!(*to.0.lock().unwrap() == noise(MIB + 1));
}

#[test]
fn files_are_copied_to_the_byte() {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    for length in [0, 511, 512, 64 * KIB + 1, MIB] {
        std::fs::write(&from, noise(length)).unwrap();
        let _ = std::fs::remove_file(&to);
        let ends = (Source::path(&from, &engine()).unwrap(), Destination::path(&to, &engine()).unwrap());
        copy(ends.0, ends.1, options()).outcome.unwrap();
        assert!(std::fs::read(&to).unwrap() == noise(length), "{length} bytes");
    }
}

#[test]
fn a_sparse_file_stays_sparse() {
    use std::os::unix::fs::MetadataExt;
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    let file = std::fs::File::create(&from).unwrap();
    file.set_len(1 << 30).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, &noise(MIB), 512 * MIB).unwrap();
    let ends = (Source::path(&from, &engine()).unwrap(), Destination::path(&to, &engine()).unwrap());
    copy(ends.0, ends.1, Options { verify: Verify::Sample, ..options() }).outcome.unwrap();
    let metadata = std::fs::metadata(&to).unwrap();
    assert_eq!(metadata.len(), 1 << 30);
    assert!(metadata.blocks() * 512 < 4 * MIB);
}

#[test]
fn a_stream_becomes_a_file_and_is_read_back() {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("to");
    let report =
        copy(stream(noise(MIB + 3)), Destination::path(&to, &engine()).unwrap(), options()).outcome.unwrap();
    assert_eq!(report.verified, Verify::Full);
    assert!(std::fs::read(&to).unwrap() == noise(MIB + 3));
}
