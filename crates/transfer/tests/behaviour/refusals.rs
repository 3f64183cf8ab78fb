//! What must not be copied is refused, and nothing is written.

use crate::world::{Disk, Faults, MIB, copy, destination, engine, noise, options, source};
use ropewalk_transfer::{Destination, DestinationState, Error, Identity, Options, Refusal, Source};
use std::sync::Arc;

fn refusal(source: Source, destination: Destination, options: Options) -> Refusal {
    let failure = copy(source, destination, options).outcome.unwrap_err();
    assert_eq!(failure.destination, DestinationState::Untouched);
    match failure.error {
        Error::Refused(refusal) => refusal,
        other => panic!("{other}"),
    }
}

fn full() -> Arc<Disk> {
    let disk = Disk::new(4 * MIB);
    disk.fill(0, &noise(4 * MIB));
    disk
}

fn named(disk: &Arc<Disk>, name: &str, designator: &str) -> (Identity, Arc<Disk>) {
    (Identity { name: name.to_owned(), designator: Some(designator.to_owned()) }, Arc::clone(disk))
}

#[test]
fn a_destination_with_a_filesystem_is_refused_unless_it_may_be_overwritten() {
    let to = Disk::new(4 * MIB);
    to.fill(1024, &{
        let mut superblock = [0; 512];
        superblock[4..6].copy_from_slice(&4096_u16.to_le_bytes());
        superblock[56..58].copy_from_slice(b"\x53\xef");
        superblock
    });
    let refusal = refusal(source(&full()), destination(&to), options());
    assert!(matches!(refusal, Refusal::Occupied { found: "an ext2, ext3 or ext4 filesystem", .. }));
    assert_eq!((to.asked().written_bytes, to.asked().zeroed_bytes), (0, 0));
    copy(source(&full()), destination(&to), Options { overwrite: true, ..options() }).outcome.unwrap();
}

#[test]
fn the_backup_partition_table_at_the_end_counts_too() {
    let to = Disk::new(4 * MIB);
    let mut sector = [0; 512];
    sector[..8].copy_from_slice(b"EFI PART");
    to.fill(4 * MIB - 512, &sector);
    let refusal = refusal(source(&full()), destination(&to), options());
    assert!(matches!(refusal, Refusal::Occupied { found: "a GUID partition table", .. }));
}

#[test]
fn a_real_filesystem_in_a_file_is_recognised() {
    let folder = tempfile::tempdir().unwrap();
    let image = folder.path().join("image");
    std::fs::File::create(&image).unwrap().set_len(8 * MIB).unwrap();
    let made = std::process::Command::new("mkfs.ext4").arg("-q").arg(&image).status();
    assert!(made.is_ok_and(|status| status.success()), "mkfs.ext4 is needed for this test");
    let before = std::fs::read(&image).unwrap();
    let refusal = refusal(source(&full()), Destination::path(&image, &engine()).unwrap(), options());
    assert!(matches!(refusal, Refusal::Occupied { found: "an ext2, ext3 or ext4 filesystem", .. }));
    assert!(std::fs::read(&image).unwrap() == before);
}

#[test]
fn a_destination_that_is_too_small_is_refused() {
    let refusal = refusal(source(&full()), destination(&Disk::new(4 * MIB - 512)), options());
    assert!(matches!(refusal, Refusal::TooSmall { .. }));
}

#[test]
fn a_read_only_destination_is_refused() {
    let to = Disk::with(4 * MIB, 512, Faults { read_only: true, ..Faults::default() });
    assert!(matches!(refusal(source(&full()), destination(&to), options()), Refusal::ReadOnly(_)));
}

#[test]
fn a_copy_onto_itself_is_refused_under_any_name() {
    let disk = full();
    let (one, backend) = named(&disk, "iscsi://a/iqn.x/0", "naa.1");
    let from = Source::device(one, backend);
    let (other, backend) = named(&disk, "iscsi://b/iqn.x/0", "NAA.1");
    assert!(matches!(refusal(from, Destination::device(other, backend), options()), Refusal::Same(_)));
    let folder = tempfile::tempdir().unwrap();
    let (file, link) = (folder.path().join("file"), folder.path().join("link"));
    std::fs::write(&file, noise(MIB)).unwrap();
    std::fs::hard_link(&file, &link).unwrap();
    let ends = (Source::path(&file, &engine()).unwrap(), Destination::path(&link, &engine()).unwrap());
    assert!(matches!(refusal(ends.0, ends.1, options()), Refusal::Same(_)));
}

#[test]
fn another_device_than_expected_is_refused() {
    let expecting = |id: &str| Options { expect_id: Some(id.to_owned()), ..options() };
    let to = |designator: &str| {
        let (identity, backend) = named(&Disk::new(4 * MIB), "to", designator);
        Destination::device(identity, backend)
    };
    let refused = refusal(source(&full()), to("naa.2"), expecting("naa.1"));
    assert!(matches!(refused, Refusal::OtherIdentity { .. }));
    copy(source(&full()), to("naa.1"), expecting("NAA.1")).outcome.unwrap();
    let refused = refusal(source(&full()), destination(&Disk::new(4 * MIB)), expecting("naa.1"));
    assert!(matches!(refused, Refusal::OtherIdentity { .. }));
}

#[test]
fn where_the_destination_is_a_file_the_source_is_expected() {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("to");
    let (identity, backend) = named(&full(), "from", "naa.3");
    let options = Options { expect_id: Some("naa.4".to_owned()), ..options() };
    let destination = Destination::path(&to, &engine()).unwrap();
    assert!(matches!(
        refusal(Source::device(identity, backend), destination, options),
        Refusal::OtherIdentity { .. }
    ));
    assert!(!to.exists());
}

#[test]
fn a_file_that_somebody_serves_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("to");
    std::fs::write(&to, noise(MIB)).unwrap();
    let _serving = block::File::open(&to, &block::FileOptions::default(), &engine()).unwrap();
    let error = Destination::path(&to, &engine()).err().unwrap();
    assert!(matches!(error, Error::Refused(Refusal::DestinationInUse { .. })));
}
