//! A destination that loses acknowledged writes, as a target does that dies with its cache.

use crate::world::{Disk, Faults, KIB, MIB, copy, destination, filled, noise, options, source};
use ropewalk_transfer::{Error, Options, Reader, Source, Verify};
use std::io::{Cursor, Read};

fn forgetful(loses_after_writes: &[u64]) -> Faults {
    Faults { loses_after_writes: loses_after_writes.to_vec(), ..Faults::default() }
}

#[test]
fn what_a_destination_lost_is_read_and_written_again() {
    let (from, to) = (Disk::new(8 * MIB), Disk::with(8 * MIB, 512, forgetful(&[1, 40, 90, 170])));
    from.fill(0, &noise(8 * MIB));
    let copy = copy(source(&from), destination(&to), options());
    copy.outcome.unwrap();
    assert!(to.contents() == from.contents());
    assert!(copy.progress.losses >= 2);
    assert!(copy.progress.rewritten_bytes > 0);
    assert_eq!(copy.progress.done_bytes, 8 * MIB);
}

#[test]
fn what_is_read_back_counts_only_after_a_flush_that_found_no_loss() {
    // The last of the writes is followed by a loss, which verification sees as a difference.
    let (from, to) =
        (Disk::new(8 * MIB), Disk::with(8 * MIB, 512, forgetful(&[8 * MIB / options().request_bytes])));
    from.fill(0, &noise(8 * MIB));
    let copy = copy(source(&from), destination(&to), Options { verify: Verify::Full, ..options() });
    copy.outcome.unwrap();
    assert!(to.contents() == from.contents());
    assert_eq!(copy.progress.losses, 1);
    assert_eq!(copy.progress.rewritten_bytes, 8 * MIB);
    assert_eq!((copy.progress.to_verify_bytes, copy.progress.verified_bytes), (8 * MIB, 8 * MIB));
}

#[test]
fn zeroed_ranges_are_zeroed_again() {
    let (from, to) = (Disk::new(256 * MIB), Disk::with(256 * MIB, 512, forgetful(&[2])));
    to.fill(0, &filled(7, 2 * MIB));
    copy(source(&from), destination(&to), Options { verify: Verify::Sample, ..options() }).outcome.unwrap();
    assert!(to.contents().iter().all(|byte| *byte == 0));
}

#[test]
fn a_stream_is_kept_until_it_is_durable() {
    let to = Disk::with(8 * MIB, 512, forgetful(&[1, 17, 120]));
    let source = Source::stream("-", Reader::new(Cursor::new(noise(7 * MIB + 5))));
    copy(source, destination(&to), options()).outcome.unwrap();
    let length = usize::try_from(7 * MIB + 5).unwrap();
    assert!(to.contents()[..length] == noise(7 * MIB + 5));
}

#[test]
fn zeroes_of_a_stream_are_zeroed_again() {
    let to = Disk::with(8 * MIB, 512, forgetful(&[1, 17]));
    to.fill(0, &filled(7, 2 * MIB));
    let source = Source::stream("-", Reader::new(Cursor::new(filled(0, 2 * MIB))));
    copy(source, destination(&to), options()).outcome.unwrap();
    assert!(to.contents().iter().all(|byte| *byte == 0));
}

#[test]
fn zeroes_of_a_stream_take_no_memory_until_they_are_durable() {
    // A little more than a power of two, so that a buffer takes twice its length: more than the whole budget
    // before a flush is due.
    let request_bytes = 256 * KIB + 512;
    let to = Disk::new(1200 * request_bytes);
    let source = Source::stream("-", Reader::new(std::io::repeat(0).take(1200 * request_bytes)));
    let options = Options { request_bytes, verify: Verify::Off, ..options() };
    copy(source, destination(&to), options).outcome.unwrap();
}

#[test]
fn a_long_copy_loses_only_what_was_not_flushed() {
    let (from, to) = (Disk::new(28 * MIB), Disk::with(28 * MIB, 512, forgetful(&[440])));
    from.fill(0, &noise(28 * MIB));
    let options = Options { unflushed_bytes_max: 16 * MIB, verify: Verify::Off, ..options() };
    let copy = copy(source(&from), destination(&to), options);
    copy.outcome.unwrap();
    assert!(to.contents() == from.contents());
    assert!(copy.progress.losses == 1 && copy.progress.rewritten_bytes <= 20 * MIB);
}

#[test]
fn a_destination_that_never_becomes_durable_is_given_up() {
    let (from, to) =
        (Disk::new(MIB), Disk::with(MIB, 512, Faults { loses_at_every_flush: true, ..Faults::default() }));
    from.fill(0, &noise(MIB));
    let error = copy(source(&from), destination(&to), options()).error();
    assert!(matches!(error, Error::NeverDurable { .. }), "{error}");
}
