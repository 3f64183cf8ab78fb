//! Regular files as destinations: what is kept of those that are there, and what becomes of new ones.

use crate::world::{Disk, Faults, KIB, MIB, copy, copy_until, engine, filled, noise, options, source};
use ropewalk_transfer::{Destination, DestinationState, Error, Failure, Options, Reader, Refusal, Source};
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn to(&self, name: &str) -> Destination {
        Destination::path(&self.path(name), &engine()).unwrap()
    }

    fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap()
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.0.path()).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }
}

fn full() -> Arc<Disk> {
    with(Faults::default())
}

fn with(faults: Faults) -> Arc<Disk> {
    let disk = Disk::with(MIB, 512, faults);
    disk.fill(0, &noise(MIB));
    disk
}

fn overwriting() -> Options {
    Options { overwrite: true, ..options() }
}

fn failure(source: Source, destination: Destination, options: Options) -> Failure {
    copy(source, destination, options).outcome.unwrap_err()
}

#[track_caller]
fn refusal(failure: Failure) -> Refusal {
    assert_eq!(failure.destination, DestinationState::Untouched);
    match failure.error {
        Error::Refused(refusal) => refusal,
        other => panic!("{other}"),
    }
}

#[test]
fn a_new_file_is_its_owners_alone_and_has_only_its_own_name() {
    let folder = Folder::new();
    copy(source(&full()), folder.to("to"), options()).outcome.unwrap();
    assert_eq!(folder.names(), ["to"]);
    assert_eq!(fs::metadata(folder.path("to")).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(folder.read("to") == noise(MIB));
}

#[test]
fn a_failed_copy_into_a_new_file_leaves_another_name() {
    let folder = Folder::new();
    let broken = with(Faults { unreadable: Some(MIB - 1), ..Faults::default() });
    let failure = failure(source(&broken), folder.to("to"), options());
    assert_eq!(
        (failure.destination, failure.partial),
        (DestinationState::Incomplete, Some(folder.path("to.partial").into()))
    );
    assert_eq!(folder.names(), ["to.partial"]);
}

#[test]
fn a_copy_that_wrote_nothing_leaves_no_file() {
    let folder = Folder::new();
    let copy = copy_until(source(&full()), folder.to("to"), options(), std::future::ready(()));
    assert_eq!(copy.outcome.unwrap_err().destination, DestinationState::Untouched);
    assert_eq!(folder.names(), [""; 0]);
}

#[test]
fn a_copy_begins_again_where_a_failed_one_left_its_file_only_on_demand() {
    let folder = Folder::new();
    fs::write(folder.path("to.partial"), filled(7, 3 * MIB)).unwrap();
    let refused = refusal(failure(source(&full()), folder.to("to"), options()));
    assert!(matches!(refused, Refusal::PartialExists { .. }), "{refused}");
    let from = Disk::new(MIB);
    from.fill(0, &noise(100 * KIB));
    copy(source(&from), folder.to("to"), overwriting()).outcome.unwrap();
    assert_eq!(folder.names(), ["to"]);
    assert!(folder.read("to") == from.contents());
    assert_eq!(fs::metadata(folder.path("to")).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn a_second_copy_into_a_new_file_is_refused() {
    let folder = Folder::new();
    fs::write(folder.path("to.partial"), noise(MIB)).unwrap();
    let first = File::options().write(true).open(folder.path("to.partial")).unwrap();
    block::File::lock(&first, "to.partial").unwrap();
    let refused = refusal(failure(source(&full()), folder.to("to"), overwriting()));
    assert!(matches!(refused, Refusal::DestinationInUse { .. }), "{refused}");
    assert_eq!(folder.names(), ["to.partial"]);
    assert!(folder.read("to.partial") == noise(MIB));
}

#[test]
fn a_file_that_appears_during_the_copy_is_kept() {
    let folder = Folder::new();
    let to = folder.to("to");
    fs::write(folder.path("to"), "a letter").unwrap();
    let failure = failure(source(&full()), to, options());
    assert!(matches!(failure.error, Error::Rename { .. }));
    assert_eq!(failure.destination, DestinationState::Unnamed);
    assert!(folder.read("to") == b"a letter" && folder.read("to.partial") == noise(MIB));
}

#[test]
fn a_file_that_holds_anything_is_refused_unless_it_may_be_overwritten() {
    let folder = Folder::new();
    fs::write(folder.path("notes.txt"), "do not lose this").unwrap();
    for source in [source(&full()), Source::stream("-", Reader::new(&b"data"[..]))] {
        let refused = refusal(failure(source, folder.to("notes.txt"), options()));
        assert!(matches!(refused, Refusal::NotEmpty { .. }), "{refused}");
    }
    assert!(folder.read("notes.txt") == b"do not lose this");
    copy(source(&full()), folder.to("notes.txt"), overwriting()).outcome.unwrap();
    assert!(folder.read("notes.txt") == noise(MIB));
}

#[test]
fn a_longer_file_is_cut_to_the_length_of_the_copy() {
    let folder = Folder::new();
    let length = 100 * KIB + 3;
    fs::write(folder.path("from"), noise(length)).unwrap();
    let from_file = || Source::path(&folder.path("from"), &engine()).unwrap();
    let from_stream = || Source::stream("-", Reader::new(std::io::Cursor::new(noise(length))));
    for from in [from_file(), from_stream()] {
        fs::write(folder.path("to"), filled(7, 200 * KIB)).unwrap();
        copy(from, folder.to("to"), overwriting()).outcome.unwrap();
        assert!(folder.read("to") == noise(length));
    }
}

#[test]
fn a_file_that_was_empty_when_it_was_looked_at_must_be_so_when_it_is_locked() {
    let folder = Folder::new();
    File::create(folder.path("to")).unwrap();
    let to = folder.to("to");
    fs::write(folder.path("to"), "a letter").unwrap();
    let refused = refusal(failure(source(&full()), to, options()));
    assert!(matches!(refused, Refusal::DestinationInUse { .. }), "{refused}");
    assert!(folder.read("to") == b"a letter");
}

#[test]
fn an_empty_file_is_filled_where_it_is() {
    let folder = Folder::new();
    let mode = fs::Permissions::from_mode(0o640);
    File::create(folder.path("to")).unwrap().set_permissions(mode).unwrap();
    copy(source(&full()), folder.to("to"), options()).outcome.unwrap();
    assert_eq!(fs::metadata(folder.path("to")).unwrap().permissions().mode() & 0o777, 0o640);
    assert!(folder.read("to") == noise(MIB));
}

#[test]
fn a_link_to_nothing_is_no_name_for_a_copy() {
    let folder = Folder::new();
    std::os::unix::fs::symlink(folder.path("nothing"), folder.path("to")).unwrap();
    let error = Destination::path(&folder.path("to"), &engine()).err().unwrap();
    assert!(matches!(error, Error::File { .. }), "{error}");
}
