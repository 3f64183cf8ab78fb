//! Streams as sources: how long they must be, and what they look like.

use crate::world;
use crate::world::{Disk, KIB, MIB, copy, destination, engine, filled, length, noise, options};
use requirement::{Requirement, require};
use ropewalk_transfer::{
    Destination, DestinationState, Error, ImageFormat, Options, Reader, Refusal, Source,
};
use std::io::Cursor;
use std::os::unix::fs::MetadataExt;
use std::process::Command;

fn stream(data: Vec<u8>) -> Source {
    Source::stream("-", Reader::new(Cursor::new(data)))
}

fn of_length(source_bytes: u64) -> Options {
    Options { source_bytes: Some(source_bytes), ..options() }
}

#[test]
fn an_empty_stream_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (new, old) = (folder.path().join("new"), folder.path().join("old"));
    std::fs::write(&old, "a letter").unwrap();
    let overwriting = Options { overwrite: true, ..of_length(MIB) };
    let disk = Disk::new(MIB);
    for to in [
        destination(&disk),
        Destination::path(&new, &engine()).unwrap(),
        Destination::path(&old, &engine()).unwrap(),
    ] {
        let failure = copy(stream(vec![]), to, overwriting.clone()).outcome.unwrap_err();
        assert!(matches!(failure.error, Error::NoInput));
        assert_eq!(failure.destination, DestinationState::Untouched);
    }
    assert_eq!((disk.asked().written_bytes, disk.asked().zeroed_bytes), (0, 0));
    assert_eq!(std::fs::read(&old).unwrap(), b"a letter");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn a_stream_that_ends_too_early_is_a_failure() {
    let copy = copy(stream(noise(MIB - 1)), destination(&Disk::new(2 * MIB)), of_length(MIB));
    let failure = copy.outcome.unwrap_err();
    assert!(
        matches!(failure.error, Error::InputTooShort { expected_bytes: MIB, found_bytes } if found_bytes == MIB - 1)
    );
    assert_eq!(failure.destination, DestinationState::Incomplete);
}

#[test]
fn a_stream_that_ends_too_early_at_the_end_of_a_request_is_a_failure() {
    let error = copy(stream(noise(64 * KIB)), destination(&Disk::new(MIB)), of_length(65 * KIB)).error();
    assert!(matches!(error, Error::InputTooShort { .. }), "{error}");
}

#[test]
fn a_stream_that_goes_on_is_a_failure() {
    for bytes in [64 * KIB, MIB] {
        let error =
            copy(stream(noise(bytes + 1)), destination(&Disk::new(2 * MIB)), of_length(bytes)).error();
        assert!(matches!(error, Error::InputTooLong { expected_bytes } if expected_bytes == bytes));
    }
}

#[test]
fn a_stream_into_a_stream_has_its_length_checked_too() {
    let to = || world::Sink::default().destination();
    assert!(matches!(
        copy(stream(noise(MIB)), to(), of_length(MIB + 1)).error(),
        Error::InputTooShort { .. }
    ));
    assert!(matches!(copy(stream(noise(MIB)), to(), of_length(MIB - 1)).error(), Error::InputTooLong { .. }));
    copy(stream(noise(MIB)), to(), of_length(MIB)).outcome.unwrap();
}

#[test]
fn a_stream_of_known_length_becomes_a_sparse_file() {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("to");
    let mut data = filled(0, 8 * MIB + 3);
    data[length(MIB)..length(2 * MIB)].copy_from_slice(&noise(MIB));
    let destination = Destination::path(&to, &engine()).unwrap();
    copy(stream(data.clone()), destination, of_length(8 * MIB + 3)).outcome.unwrap();
    assert!(std::fs::read(&to).unwrap() == data);
    assert!(std::fs::metadata(&to).unwrap().blocks() * 512 < 4 * MIB);
}

#[test]
fn a_stream_that_must_be_too_long_for_the_destination_is_not_begun() {
    let error = copy(stream(noise(MIB)), destination(&Disk::new(MIB)), of_length(2 * MIB)).error();
    assert!(matches!(error, Error::Refused(Refusal::TooSmall { .. })), "{error}");
}

#[test]
fn an_image_in_a_container_is_recognised_in_a_stream_and_in_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("from");
    for (magic, format) in [
        (&b"QFI\xfb"[..], Some(ImageFormat::Qcow2)),
        (b"KDMV", Some(ImageFormat::Vmdk)),
        (b"vhdxfile", Some(ImageFormat::Vhdx)),
        (b"\x1f\x8b\x08", Some(ImageFormat::Gzip)),
        (b"\x28\xb5\x2f\xfd", Some(ImageFormat::Zstd)),
        (b"\xfd7zXZ\0", Some(ImageFormat::Xz)),
        (b"\xeb\x3c\x90", None),
    ] {
        let image = [magic, &noise(100 * KIB)].concat();
        std::fs::write(&path, &image).unwrap();
        for from in [stream(image.clone()), Source::path(&path, &engine()).unwrap()] {
            let to = Disk::new(MIB);
            let copy = copy(from, destination(&to), options());
            copy.outcome.unwrap();
            assert_eq!(copy.progress.source_format, format);
            assert!(to.contents()[..image.len()] == image);
        }
    }
}

#[test]
fn an_image_that_qemu_makes_is_recognised_as_a_source() {
    if !require(&[Requirement::Peers(&["qemu-img"])]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("from");
    for (arguments, format) in [
        (&["-f", "qcow2"][..], ImageFormat::Qcow2),
        (&["-f", "vmdk"], ImageFormat::Vmdk),
        (&["-f", "vmdk", "-o", "subformat=monolithicFlat"], ImageFormat::Vmdk),
        (&["-f", "vhdx"], ImageFormat::Vhdx),
        (&["-f", "vpc"], ImageFormat::Vhd),
        (&["-f", "vpc", "-o", "subformat=fixed"], ImageFormat::Vhd),
        (&["-f", "vdi"], ImageFormat::Vdi),
    ] {
        let mut command = Command::new("qemu-img");
        command.args(["create", "-q"]).args(arguments).arg(&path).arg("1M");
        assert!(command.status().unwrap().success(), "{arguments:?}");
        let from = Source::path(&path, &engine()).unwrap();
        let copy = copy(from, destination(&Disk::new(32 * MIB)), options());
        assert_eq!(copy.progress.source_format, Some(format), "{arguments:?}");
    }
}
