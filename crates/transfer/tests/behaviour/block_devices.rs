//! Block devices in use, by loop devices: needs root, and says so where it is skipped.

use crate::world;
use crate::world::{Disk, MIB, copy, engine, noise, options, source};
use requirement::{Need, skip};
use ropewalk_transfer::{Destination, Error, Refusal, Source};
use std::path::PathBuf;
use std::process::Command;

/// A loop device over a file of 8 MiB with an ext4 filesystem, which can be mounted.
struct Loop {
    device: PathBuf,
    folder: tempfile::TempDir,
}

impl Loop {
    fn attach() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let image = folder.path().join("image");
        std::fs::File::create(&image).unwrap().set_len(8 * MIB).unwrap();
        let output = Command::new("losetup").args(["--find", "--show"]).arg(&image).output();
        let Some(output) = output.ok().filter(|output| output.status.success()) else {
            skip(Need::Root, "attaching a loop device needs root and losetup");
            return None;
        };
        let device = PathBuf::from(String::from_utf8(output.stdout).unwrap().trim());
        let disk = Self { device, folder };
        disk.run("mkfs.ext4", &["-q"]);
        Some(disk)
    }

    /// Runs a program with the device as its last argument.
    fn run(&self, program: &str, arguments: &[&str]) {
        assert!(Command::new(program).args(arguments).arg(&self.device).status().unwrap().success());
    }

    fn mount(&self, how: &str) {
        let point = self.folder.path().join("mount");
        std::fs::create_dir_all(&point).unwrap();
        let status = Command::new("mount").args(["-o", how]).arg(&self.device).arg(point).status();
        assert!(status.unwrap().success());
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        if mounts.lines().any(|line| line.split(' ').next() == self.device.to_str()) {
            let _ = Command::new("umount").arg(&self.device).status();
        }
        let _ = Command::new("losetup").arg("--detach").arg(&self.device).status();
    }
}

#[test]
fn a_device_that_is_mounted_for_writing_is_neither_source_nor_destination() {
    let Some(disk) = Loop::attach() else { return };
    disk.mount("rw");
    let refused = Source::path(&disk.device, &engine()).err().unwrap();
    assert!(matches!(refused, Error::Refused(Refusal::SourceInUse { .. })), "{refused}");
    let refused = Destination::path(&disk.device, &engine()).err().unwrap();
    assert!(matches!(refused, Error::Refused(Refusal::DestinationInUse { .. })), "{refused}");
}

#[test]
fn a_device_that_is_mounted_for_reading_is_a_source_but_no_destination() {
    let Some(disk) = Loop::attach() else { return };
    disk.mount("ro,noload");
    let from = Disk::new(8 * MIB);
    from.fill(0, &noise(8 * MIB));
    let overwriting = || ropewalk_transfer::Options { overwrite: true, ..options() };
    let to = Destination::path(&disk.device, &engine()).unwrap();
    let refused = copy(source(&from), to, overwriting()).error();
    assert!(matches!(refused, Error::Refused(Refusal::DestinationInUse { .. })), "{refused}");
    let to = Disk::new(8 * MIB);
    let from = Source::path(&disk.device, &engine()).unwrap();
    copy(from, world::destination(&to), overwriting()).outcome.unwrap();
    assert!(to.contents() == std::fs::read(disk.folder.path().join("image")).unwrap());
}

#[test]
fn a_free_device_with_a_filesystem_is_overwritten_only_on_demand() {
    let Some(disk) = Loop::attach() else { return };
    let from = Disk::new(8 * MIB);
    from.fill(0, &noise(8 * MIB));
    let to = || Destination::path(&disk.device, &engine()).unwrap();
    let refused = copy(source(&from), to(), options()).error();
    assert!(matches!(refused, Error::Refused(Refusal::Occupied { .. })), "{refused}");
    let options = ropewalk_transfer::Options { overwrite: true, ..options() };
    copy(source(&from), to(), options).outcome.unwrap();
    assert!(std::fs::read(disk.folder.path().join("image")).unwrap() == from.contents());
}
