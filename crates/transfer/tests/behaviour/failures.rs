//! Copies that do not succeed: why, and what is left of the destination.

use crate::world::{Disk, Faults, KIB, MIB, copy, copy_until, destination, engine, noise, options, source};
use ropewalk_transfer::{Destination, DestinationState, Error, Failure, Options, Reader, Source, Verify};
use std::io::{Cursor, Write};

fn full(faults: Faults) -> std::sync::Arc<Disk> {
    let disk = Disk::with(2 * MIB, 512, faults);
    disk.fill(0, &noise(2 * MIB));
    disk
}

#[test]
fn a_source_that_cannot_be_read_names_the_place() {
    let from = full(Faults { unreadable: Some(MIB + 1), ..Faults::default() });
    let failure = copy(source(&from), destination(&Disk::new(2 * MIB)), options()).outcome.unwrap_err();
    assert!(matches!(failure.error, Error::Read { offset, .. } if offset == MIB));
    assert_eq!(failure.destination, DestinationState::Incomplete);
}

#[test]
fn a_file_that_changes_while_it_is_copied_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("from");
    std::fs::write(&path, noise(MIB)).unwrap();
    let from = Source::path(&path, &engine()).unwrap();
    std::fs::File::options().append(true).open(&path).unwrap().write_all(&[1]).unwrap();
    let failure = copy(from, destination(&Disk::new(2 * MIB)), options()).outcome.unwrap_err();
    assert!(matches!(failure.error, Error::SourceChanged { .. }));
    assert_eq!(failure.destination, DestinationState::Incomplete);
}

#[test]
fn a_destination_that_cannot_be_written_names_the_place() {
    let to = Disk::with(2 * MIB, 512, Faults { unwritable: Some(70 * KIB), ..Faults::default() });
    let failure = copy(source(&full(Faults::default())), destination(&to), options()).outcome.unwrap_err();
    assert_eq!(failure.error.to_string(), "cannot write 65536 bytes at 65536 of destination");
    assert_eq!(failure.destination, DestinationState::Incomplete);
}

#[test]
fn a_stream_that_is_too_long_is_noticed_when_it_is() {
    let input = Source::stream("-", Reader::new(Cursor::new(noise(MIB + 1))));
    let failure = copy(input, destination(&Disk::new(MIB)), options()).outcome.unwrap_err();
    assert!(matches!(failure.error, Error::TooLong { capacity_bytes: MIB, .. }));
}

#[test]
fn one_changed_bit_is_found_by_full_verification() {
    let to = Disk::with(2 * MIB, 512, Faults { corrupt: Some(MIB + 77), ..Faults::default() });
    let failure = copy(source(&full(Faults::default())), destination(&to), options()).outcome.unwrap_err();
    assert!(
        matches!(failure, Failure { error: Error::Mismatch { offset, .. }, destination: DestinationState::Different, .. } if offset == MIB + 77)
    );
}

#[test]
fn one_changed_bit_of_a_stream_is_found_too() {
    let to = Disk::with(2 * MIB, 512, Faults { corrupt: Some(MIB + 77), ..Faults::default() });
    let input = Source::stream("-", Reader::new(Cursor::new(noise(2 * MIB))));
    let error = copy(input, destination(&to), options()).error();
    assert!(matches!(error, Error::Mismatch { offset: MIB, .. }));
}

#[test]
fn a_sample_finds_a_fault_at_either_end_with_any_seed() {
    for (seed, byte) in [(1, 0), (2, 2 * MIB - 1)] {
        let to = Disk::with(2 * MIB, 512, Faults { corrupt: Some(byte), ..Faults::default() });
        let options = Options { verify: Verify::Sample, verify_seed: seed, ..options() };
        let error = copy(source(&full(Faults::default())), destination(&to), options).error();
        assert!(matches!(error, Error::Mismatch { .. }));
    }
}

#[test]
fn an_interruption_before_the_first_write_leaves_the_destination_untouched() {
    let to = Disk::new(2 * MIB);
    let copy =
        copy_until(source(&full(Faults::default())), destination(&to), options(), std::future::ready(()));
    let failure = copy.outcome.unwrap_err();
    assert!(matches!(failure.error, Error::Interrupted));
    assert_eq!(failure.destination, DestinationState::Untouched);
    assert_eq!(to.asked().written_bytes, 0);
}

#[test]
fn an_interruption_waits_for_what_is_under_way_and_says_what_is_left() {
    let to = Disk::new(2 * MIB);
    let watched = std::sync::Arc::clone(&to);
    let first_write = std::future::poll_fn(move |context| {
        context.waker().wake_by_ref();
        match watched.asked().written_bytes {
            0 => std::task::Poll::Pending,
            _ => std::task::Poll::Ready(()),
        }
    });
    let input = full(Faults::default());
    let failure = copy_until(source(&input), destination(&to), options(), first_write).outcome.unwrap_err();
    assert!(matches!(failure.error, Error::Interrupted));
    assert_eq!(failure.destination, DestinationState::Incomplete);
    assert!(to.asked().written_bytes < 2 * MIB);
}

/// Input that never comes and never ends.
struct Silence(std::sync::mpsc::Receiver<()>);

impl std::io::Read for Silence {
    fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
        let _ = self.0.recv();
        Ok(0)
    }
}

#[test]
fn an_interruption_does_not_wait_for_input_that_never_comes() {
    let (sender, receiver) = std::sync::mpsc::channel();
    let silence = || Source::stream("-", Reader::new(Silence(receiver)));
    let copy = copy_until(silence(), destination(&Disk::new(MIB)), options(), std::future::ready(()));
    assert!(matches!(copy.error(), Error::Interrupted));
    drop(sender);
}

#[test]
fn an_interruption_does_not_wait_for_the_other_end_of_a_pipe() {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let from = Source::path(&pipe, &engine()).unwrap();
    let copy = copy_until(from, destination(&Disk::new(MIB)), options(), std::future::ready(()));
    assert!(matches!(copy.error(), Error::Interrupted));
    let to = Destination::path(&pipe, &engine()).unwrap();
    let copy = copy_until(source(&full(Faults::default())), to, options(), std::future::ready(()));
    assert!(matches!(copy.error(), Error::Interrupted));
}
