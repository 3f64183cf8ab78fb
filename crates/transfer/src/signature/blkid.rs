//! An independent judge of the table: util-linux's `blkid` names what our magic numbers make of an empty device.

use super::all;
use requirement::{Requirement, require};
use std::collections::BTreeSet;
use std::io;
use std::os::unix::fs::FileExt;
use std::process::Command;

/// Our names of the formats that `blkid` knows by the magic number alone, and its own names. It checks the structure
/// around other magic numbers, too.
const NAMES: &[(&str, &[&str])] = &[
    ("a LUKS volume", &["crypto_LUKS"]),
    ("an LVM1 physical volume", &["LVM1_member"]),
    ("a snapshot of device mapper", &["DM_snapshot_cow"]),
    ("a VDO volume", &["vdo"]),
    ("a Ceph BlueStore device", &["ceph_bluestore"]),
    ("a VMFS volume", &["VMFS_volume_member"]),
    ("an Oracle ASM disk", &["oracleasm"]),
    ("a hibernated system", &["swsuspend"]),
    ("a swap area", &["swap"]),
    ("a Linux software RAID member", &["linux_raid_member"]),
    ("a DDF RAID member", &["ddf_raid_member"]),
    ("an Intel Matrix RAID member", &["isw_raid_member"]),
    ("an LSI MegaRAID member", &["lsi_mega_raid_member"]),
    ("an NVIDIA RAID member", &["nvidia_raid_member"]),
    ("a Promise FastTrak RAID member", &["promise_fasttrack_raid_member"]),
    ("a HighPoint RAID member", &["hpt37x_raid_member", "hpt45x_raid_member"]),
    ("a btrfs filesystem", &["btrfs"]),
    ("an F2FS filesystem", &["f2fs"]),
    ("a Reiser4 filesystem", &["reiser4"]),
    ("an EROFS filesystem", &["erofs"]),
    ("a squashfs filesystem", &["squashfs3"]),
    ("a cramfs filesystem", &["cramfs"]),
    ("a romfs filesystem", &["romfs"]),
    ("a UBI device", &["ubi"]),
    ("a UBIFS filesystem", &["ubifs"]),
    ("a zonefs filesystem", &["zonefs"]),
    ("an OCFS filesystem", &["ocfs"]),
    ("an OCFS2 filesystem", &["ocfs2"]),
    ("a VMFS filesystem", &["VMFS"]),
    ("an exFAT filesystem", &["exfat"]),
    ("a ReFS filesystem", &["ReFS"]),
    ("a UFS filesystem", &["ufs"]),
    ("a VxFS filesystem", &["vxfs"]),
    ("an SCO BFS filesystem", &["bfs"]),
    ("a System V filesystem", &["sysv"]),
    ("an NSS filesystem", &["nss"]),
    ("a High Sierra filesystem", &["iso9660"]),
    ("an AIX volume label", &["aix"]),
    ("a partition table or boot sector", &["dos"]),
];

/// Long enough for every place, and not a multiple of any unit.
const DEVICE_BYTES: u64 = (300 << 30) + 3 * 512;

/// The name that `blkid` has for a file that is zero except for these bytes; empty if it has none.
fn name(at: u64, bytes: &[u8]) -> io::Result<String> {
    let image = tempfile::NamedTempFile::new()?;
    image.as_file().set_len(DEVICE_BYTES)?;
    image.as_file().write_all_at(bytes, at)?;
    let blkid = requirement::find("blkid").ok_or(io::ErrorKind::NotFound)?;
    let arguments = ["-p", "-o", "value", "-s", "TYPE", "-s", "PTTYPE"];
    let output = Command::new(blkid).args(arguments).arg(image.path()).output()?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// The names that `blkid` has for the magic numbers of a format, each at each place.
fn names(ours: &str) -> io::Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    for signature in all().filter(|signature| signature.name == ours && signature.check.is_none()) {
        for at in signature.places.iter().filter_map(|place| place.offset(DEVICE_BYTES)) {
            for magic in signature.magics {
                names.insert(name(at, magic)?);
            }
        }
    }
    // It may look at fewer places than we do.
    names.remove("");
    Ok(names)
}

#[test]
fn blkid_gives_the_magic_numbers_of_the_table_the_same_meaning() -> io::Result<()> {
    if !require(&[Requirement::Peers(&["blkid"])]) {
        return Ok(());
    }
    for (ours, theirs) in NAMES {
        let theirs = theirs.iter().map(ToString::to_string).collect();
        assert_eq!(names(ours)?, theirs, "{ours}");
    }
    Ok(())
}
