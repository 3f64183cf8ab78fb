//! Formats that other people's programs make are recognised, and what is no format is not.
//!
//! Every image is made by the format's own program and looked at by `blkid`, too. A program that is not installed is
//! skipped, unless `REQUIRE` names `peers`.

use crate::world::{Disk, JumpingClock, MIB, engine, source};
use requirement::{Need, skip};
use ropewalk_transfer::{Destination, Error, Job, Options, Progress, Refusal};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

/// How a format is made.
struct Recipe {
    /// The name that the refusal has for it.
    found: &'static str,
    /// The name that `blkid` has for it, or nothing where it has none.
    blkid: &'static str,
    mib: u64,
    /// Shell commands. `$IMAGE` is a file of zeroes, the working folder has a folder `tree` with a file.
    script: &'static str,
}

const fn recipe(found: &'static str, blkid: &'static str, mib: u64, script: &'static str) -> Recipe {
    Recipe { found, blkid, mib, script }
}

/// What `blkid` would call a format that it does not know.
const UNKNOWN: &str = "";

const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Whether a program of another project is installed. The test skips what needs it if not.
fn has(program: &str) -> bool {
    let is_there = requirement::find(program).is_some();
    if !is_there {
        skip(Need::Peers, &format!("{program} is not installed"));
    }
    is_there
}

/// A folder with an image.
struct Image {
    folder: tempfile::TempDir,
    path: PathBuf,
}

impl Image {
    fn blank(mib: u64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("image");
        File::create(&path).unwrap().set_len(mib * MIB).unwrap();
        std::fs::create_dir(folder.path().join("tree")).unwrap();
        std::fs::write(folder.path().join("tree/file"), "contents").unwrap();
        Self { folder, path }
    }

    fn shell(&self, script: &str, image: &Path) {
        let path = format!("{}:{PATH}", std::env::var("PATH").unwrap_or_default());
        let mut shell = Command::new("sh");
        shell.args(["-ec", script]).env("IMAGE", image).env("PATH", path).current_dir(self.folder.path());
        let output = shell.output().unwrap();
        assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

/// The format for which a copy to this destination is refused.
fn occupant(destination: &Path) -> Option<&'static str> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let destination = Destination::path(destination, &engine()).unwrap();
    let from = source(&Disk::new(MIB / 2));
    let (clock, progress) = (Arc::new(JumpingClock::default()), Arc::new(Progress::default()));
    let prepared = Job::prepare(from, destination, Options::default(), clock, progress);
    match runtime.block_on(prepared) {
        // A file that holds something of no known format is refused for that reason.
        Ok(_) | Err(Error::Refused(Refusal::NotEmpty { .. })) => None,
        Err(Error::Refused(Refusal::Occupied { found, .. })) => Some(found),
        Err(error) => panic!("{error}"),
    }
}

/// The names that `blkid` has for what an image holds; `None` if it is not installed.
fn blkid(image: &Path) -> Option<String> {
    let Some(blkid) = requirement::find("blkid") else {
        skip(Need::Peers, "blkid is not installed");
        return None;
    };
    let arguments = ["-p", "-o", "value", "-s", "TYPE", "-s", "PTTYPE"];
    let output = Command::new(blkid).args(arguments).arg(image).output().unwrap();
    Some(String::from_utf8(output.stdout).unwrap())
}

/// Expects that `blkid`, if it is installed, has this name among those for what the image holds.
#[track_caller]
fn expect_blkid(image: &Path, known_as: &str, script: &str) {
    let Some(names) = blkid(image) else { return };
    assert!(known_as.is_empty() || names.lines().any(|name| name == known_as), "{script}: {names}");
}

fn expect(recipes: &[Recipe]) {
    for Recipe { found, blkid: known_as, mib, script } in recipes {
        let program = script.split_whitespace().next().unwrap();
        if !has(program) {
            continue;
        }
        let image = Image::blank(*mib);
        image.shell(script, &image.path);
        assert_eq!(occupant(&image.path), Some(*found), "{script}");
        expect_blkid(&image.path, known_as, script);
    }
}

#[test]
fn filesystems_of_linux_are_recognised() {
    expect(&[
        recipe("an ext2, ext3 or ext4 filesystem", "ext2", 16, "mkfs.ext2 -q $IMAGE"),
        recipe("an ext2, ext3 or ext4 filesystem", "ext4", 16, "mkfs.ext4 -q $IMAGE"),
        recipe("an ext2, ext3 or ext4 filesystem", "jbd", 16, "mke2fs -q -O journal_dev $IMAGE"),
        recipe("an XFS filesystem", "xfs", 512, "mkfs.xfs -q $IMAGE"),
        recipe(
            "an external log of XFS",
            "xfs_external_log",
            512,
            "mkfs.xfs -q -l logdev=$IMAGE,size=64m -d file,name=data,size=512m",
        ),
        recipe("a btrfs filesystem", "btrfs", 256, "mkfs.btrfs -q $IMAGE"),
        recipe("an F2FS filesystem", "f2fs", 128, "mkfs.f2fs -q $IMAGE"),
        recipe("a JFS filesystem", "jfs", 64, "mkfs.jfs -q $IMAGE"),
        recipe("a ReiserFS filesystem", "reiserfs", 64, "mkreiserfs -q -f --format 3.5 $IMAGE"),
        recipe("a ReiserFS filesystem", "reiserfs", 64, "mkreiserfs -q -f --format 3.6 $IMAGE"),
        recipe(
            "a ReiserFS filesystem",
            UNKNOWN,
            64,
            "mkreiserfs -V; truncate -s 64M log; mkreiserfs -q -f -j log $IMAGE",
        ),
        recipe("a Reiser4 filesystem", "reiser4", 64, "mkfs.reiser4 -y -f $IMAGE"),
        recipe("a NILFS2 filesystem", "nilfs2", 256, "mkfs.nilfs2 -q $IMAGE"),
        recipe("a GFS or GFS2 filesystem", "gfs2", 128, "mkfs.gfs2 -O -p lock_nolock $IMAGE"),
        recipe("a MINIX filesystem", "minix", 16, "mkfs.minix -1 -n 14 $IMAGE"),
        recipe("a MINIX filesystem", "minix", 16, "mkfs.minix -1 -n 30 $IMAGE"),
        recipe("a MINIX filesystem", "minix", 16, "mkfs.minix -2 -n 14 $IMAGE"),
        recipe("a MINIX filesystem", "minix", 16, "mkfs.minix -2 -n 30 $IMAGE"),
        recipe("a MINIX filesystem", "minix", 16, "mkfs.minix -3 -n 60 $IMAGE"),
    ]);
}

#[test]
fn a_cluster_filesystem_is_recognised_whatever_its_blocks_are() {
    let recipe = |script| recipe("an OCFS2 filesystem", "ocfs2", 256, script);
    expect(&[
        recipe("mkfs.ocfs2 -q -x -M local -b 512 $IMAGE </dev/null"),
        recipe("mkfs.ocfs2 -q -x -M local -b 4096 $IMAGE </dev/null"),
    ]);
}

#[test]
fn filesystems_of_other_systems_are_recognised() {
    expect(&[
        recipe("a FAT filesystem", "vfat", 4, "mkfs.fat -F 12 $IMAGE"),
        recipe("a FAT filesystem", "vfat", 16, "mkfs.fat -F 16 $IMAGE"),
        recipe("a FAT filesystem", "vfat", 64, "mkfs.fat -F 32 $IMAGE"),
        recipe("an exFAT filesystem", "exfat", 64, "mkfs.exfat $IMAGE"),
        recipe("an NTFS filesystem", "ntfs", 64, "mkntfs -F -q $IMAGE"),
        recipe("an HFS filesystem", "hfs", 16, "hformat -f -l volume $IMAGE"),
        recipe("an SCO BFS filesystem", "bfs", 4, "mkfs.bfs $IMAGE"),
        recipe("a UFS filesystem", "ufs", 16, "makefs -t ffs -s 16m -B le -o version=1 $IMAGE tree"),
        recipe("a UFS filesystem", "ufs", 16, "makefs -t ffs -s 16m -B be -o version=1 $IMAGE tree"),
        recipe("a UFS filesystem", "ufs", 16, "makefs -t ffs -s 16m -B le -o version=2 $IMAGE tree"),
        recipe("a UFS filesystem", "ufs", 16, "makefs -t ffs -s 16m -B be -o version=2 $IMAGE tree"),
    ]);
}

#[test]
fn a_fat_filesystem_without_name_and_boot_signature_is_recognised() {
    expect(&[recipe(
        "a FAT filesystem",
        UNKNOWN,
        16,
        "mkfs.fat -F 16 $IMAGE; \
         dd if=/dev/zero of=$IMAGE bs=1 seek=54 count=8 conv=notrunc status=none; \
         dd if=/dev/zero of=$IMAGE bs=1 seek=510 count=2 conv=notrunc status=none",
    )]);
}

#[test]
fn optical_and_packed_filesystems_are_recognised() {
    expect(&[
        recipe("a UDF filesystem", "udf", 64, "mkudffs --media-type=hd --blocksize=512 $IMAGE"),
        recipe("a UDF filesystem", "udf", 64, "mkudffs --media-type=hd --blocksize=4096 $IMAGE"),
        recipe("a UDF filesystem", "udf", 64, "mkudffs --media-type=cdrw $IMAGE"),
        recipe("an ISO 9660 filesystem", "iso9660", 4, "genisoimage -quiet -o $IMAGE tree"),
        recipe(
            "a squashfs filesystem",
            "squashfs",
            4,
            "mksquashfs tree $IMAGE -noappend -quiet -no-progress",
        ),
        recipe("an EROFS filesystem", "erofs", 4, "mkfs.erofs $IMAGE tree"),
        // Cut off after its last kilobyte, as genromfs leaves it.
        recipe("a romfs filesystem", UNKNOWN, 4, "genromfs -f $IMAGE -d tree"),
        recipe("a cramfs filesystem", "cramfs", 4, "mkfs.cramfs tree $IMAGE"),
        recipe("a cramfs filesystem", UNKNOWN, 4, "mkfs.cramfs -N big -p tree $IMAGE"),
        recipe("a UBIFS filesystem", "ubifs", 4, "mkfs.ubifs -y -r tree -m 2048 -e 126976 -c 100 -o $IMAGE"),
        recipe(
            "a UBI device",
            UNKNOWN,
            4,
            "ubinize --version; \
             printf '[a]\nmode=ubi\nvol_id=0\nvol_size=1MiB\nvol_type=dynamic\nvol_name=a\n' >config; \
             ubinize -o $IMAGE -p 128KiB -m 2048 config",
        ),
    ]);
}

#[test]
fn images_of_virtual_disks_are_recognised() {
    expect(&[
        recipe("a QCOW image", UNKNOWN, 0, "qemu-img create -q -f qcow2 $IMAGE 16M"),
        recipe("a VMDK image", UNKNOWN, 0, "qemu-img create -q -f vmdk $IMAGE 16M"),
        recipe("a VHDX image", UNKNOWN, 0, "qemu-img create -q -f vhdx $IMAGE 16M"),
        recipe("a VHD image", UNKNOWN, 0, "qemu-img create -q -f vpc $IMAGE 16M"),
        recipe("a VHD image", UNKNOWN, 0, "qemu-img create -q -f vpc -o subformat=fixed $IMAGE 16M"),
    ]);
}

#[test]
fn encrypted_and_hashed_volumes_are_recognised() {
    const LUKS: &str = "a LUKS volume";
    expect(&[
        recipe(
            LUKS,
            "crypto_LUKS",
            32,
            "cryptsetup --version; echo secret | cryptsetup -q luksFormat --type luks1 --pbkdf-force-iterations 1000 $IMAGE -",
        ),
        recipe(
            LUKS,
            "crypto_LUKS",
            32,
            "cryptsetup --version; echo secret | cryptsetup -q luksFormat --type luks2 --pbkdf pbkdf2 --pbkdf-force-iterations 1000 $IMAGE -",
        ),
        recipe(
            "a hash tree of dm-verity",
            "DM_verity_hash",
            16,
            "veritysetup --version; truncate -s 4M data; veritysetup format data $IMAGE",
        ),
    ]);
}

#[test]
fn swap_areas_are_recognised_whatever_the_page_is() {
    let recipe = |script| recipe("a swap area", "swap", 16, script);
    expect(&[
        recipe("mkswap -p 4096 $IMAGE"),
        recipe("mkswap -p 16384 $IMAGE"),
        recipe("mkswap -p 65536 $IMAGE"),
    ]);
}

#[test]
fn partition_tables_are_recognised() {
    const MBR: &str = "a partition table or boot sector";
    expect(&[
        recipe(MBR, "dos", 16, "parted -s $IMAGE mklabel msdos"),
        recipe(MBR, "dos", 16, "parted -s $IMAGE mklabel pc98"),
        recipe("a GUID partition table", "gpt", 16, "parted -s $IMAGE mklabel gpt"),
        recipe("a GUID partition table", "gpt", 16, "sgdisk -o $IMAGE"),
        recipe("an Apple partition map", "mac", 16, "parted -s $IMAGE mklabel mac"),
        recipe("a Sun disk label", "sun", 16, "parted -s $IMAGE mklabel sun"),
        recipe("an SGI volume header", "sgi", 16, "parted -s $IMAGE mklabel dvh"),
        recipe("a BSD disk label", UNKNOWN, 16, "parted -s $IMAGE mklabel bsd"),
        recipe("an Amiga partition table", UNKNOWN, 16, "parted -s $IMAGE mklabel amiga"),
        recipe(
            "an Atari partition table",
            "atari",
            16,
            "parted -s $IMAGE mklabel atari mkpart primary fat16 1MiB 8MiB",
        ),
        recipe("a loop label of Parted", UNKNOWN, 16, "parted -s $IMAGE mklabel loop"),
    ]);
}

#[test]
fn metadata_at_the_end_is_recognised_when_the_start_was_wiped() {
    expect(&[
        recipe(
            "a GUID partition table",
            UNKNOWN,
            16,
            "sgdisk -o $IMAGE; dd if=/dev/zero of=$IMAGE bs=1M count=1 conv=notrunc status=none",
        ),
        recipe(
            "a NILFS2 filesystem",
            "nilfs2",
            256,
            "mkfs.nilfs2 -q $IMAGE; dd if=/dev/zero of=$IMAGE bs=1M count=1 conv=notrunc status=none",
        ),
        recipe("a DRBD device", "drbd", 256, "drbdmeta --force 0 v08 $IMAGE internal create-md"),
        recipe("a DRBD device", "drbd", 256, "drbdmeta --force 0 v09 $IMAGE internal create-md 1"),
    ]);
}

#[test]
fn the_second_header_of_luks_is_recognised_when_the_first_was_wiped() {
    expect(&[recipe(
        "a LUKS volume",
        "crypto_LUKS",
        32,
        "cryptsetup --version; \
         echo secret | cryptsetup -q luksFormat --type luks2 --pbkdf pbkdf2 --pbkdf-force-iterations 1000 $IMAGE -; \
         dd if=/dev/zero of=$IMAGE bs=4096 count=4 conv=notrunc status=none",
    )]);
}

/// An image behind a loop device, for programs that take no files.
fn expect_on_a_loop_device(recipes: &[Recipe]) {
    for Recipe { found, blkid: known_as, mib, script } in recipes {
        if !has(script.split_whitespace().next().unwrap()) {
            continue;
        }
        let image = Image::blank(*mib);
        let output = Command::new("/sbin/losetup").args(["--find", "--show"]).arg(&image.path).output();
        let Some(output) = output.ok().filter(|output| output.status.success()) else {
            return skip(Need::Root, "attaching a loop device needs root and losetup");
        };
        let device = PathBuf::from(String::from_utf8(output.stdout).unwrap().trim());
        let made = std::panic::catch_unwind(|| image.shell(script, &device));
        assert!(Command::new("/sbin/losetup").arg("--detach").arg(&device).status().unwrap().success());
        made.unwrap();
        assert_eq!(occupant(&image.path), Some(*found), "{script}");
        expect_blkid(&image.path, known_as, script);
    }
}

#[test]
fn members_of_volume_groups_and_caches_are_recognised() {
    let pvcreate = "pvcreate -q -ff -y --config 'devices{use_devicesfile=0 obtain_device_list_from_udev=0} \
                    activation{udev_sync=0 udev_rules=0}' $IMAGE";
    expect_on_a_loop_device(&[
        recipe("an LVM2 physical volume", "LVM2_member", 16, pvcreate),
        recipe("a bcache device", "bcache", 64, "make-bcache -B $IMAGE"),
        recipe("a bcache device", "bcache", 64, "make-bcache -C $IMAGE"),
    ]);
}

/// Metadata where no program of the system can write it: this machine's kernel may lack the driver that the format's
/// own program asks for. Offsets and fields are those of the format's documentation.
#[test]
fn members_of_arrays_are_recognised() {
    const BYTES: u64 = 8 * MIB + 3 * 512;
    let planted = |at: u64, magic: &[u8]| {
        let image = Image::blank(0);
        let file = File::options().write(true).open(&image.path).unwrap();
        file.set_len(BYTES).unwrap();
        std::os::unix::fs::FileExt::write_all_at(&file, magic, at).unwrap();
        occupant(&image.path)
    };
    let (magic, linux) = (b"\xfc\x4e\x2b\xa9", Some("a Linux software RAID member"));
    assert_eq!(planted(0, magic), linux, "1.1");
    assert_eq!(planted(4096, magic), linux, "1.2");
    assert_eq!(planted(BYTES / 4096 * 4096 - 8192, magic), linux, "1.0");
    assert_eq!(planted(BYTES / 65536 * 65536 - 65536, magic), linux, "0.90");
    assert_eq!(planted(BYTES - 512, b"\xde\x11\xde\x11"), Some("a DDF RAID member"));
    assert_eq!(planted(BYTES - 1024, b"Intel Raid ISM Cfg Sig. "), Some("an Intel Matrix RAID member"));
    assert_eq!(planted(0, b"bluestore block device\n"), Some("a Ceph BlueStore device"));
    assert_eq!(planted(MIB, b"\x0d\xd0\x01\xc0"), Some("a VMFS volume"));
    assert_eq!(planted(16 * 1024 + 20, b"\0\0\0\x07version\0"), Some("a ZFS pool"));
    let last_label = BYTES / (256 * 1024) * (256 * 1024) - 256 * 1024;
    assert_eq!(planted(last_label + 16 * 1024 + 20, b"\0\0\0\x07version\0"), Some("a ZFS pool"));
}

#[test]
fn zeroes_and_random_bytes_are_no_format() {
    let image = Image::blank(64);
    assert_eq!(occupant(&image.path), None);
    for seed in 1..=4_u64 {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let words = std::iter::repeat_with(|| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state.to_le_bytes()
        });
        let bytes: Vec<u8> = words.take(8 << 20).flatten().collect();
        std::fs::write(&image.path, bytes).unwrap();
        assert_eq!(occupant(&image.path), None, "seed {seed}");
        assert_eq!(blkid(&image.path).unwrap_or_default(), "", "seed {seed}");
    }
}
