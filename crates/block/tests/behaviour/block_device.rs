//! Block devices, by a loop device: needs root, and says so where it is skipped.

use crate::device;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::device::on_disk::by_each_engine;
use crate::device::{Device, MIB, kind, pattern};
use requirement::{Need, skip};
use ropewalk_block::{Backend, BlockErrorKind, Engine, EngineChoice, ExtentState, File, FileOptions};

/// A loop device over a file of 8 MiB with 512-byte sectors, detached at the end.
struct Loop {
    device: PathBuf,
    _folder: tempfile::TempDir,
}

impl Loop {
    fn attach() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let image = folder.path().join("image");
        std::fs::File::create(&image).unwrap().set_len(8 * MIB as u64).unwrap();
        let output = Command::new("losetup").args(["--find", "--show"]).arg(&image).output();
        let Some(output) = output.ok().filter(|output| output.status.success()) else {
            skip(Need::Root, "attaching a loop device needs root and losetup");
            return None;
        };
        let device = PathBuf::from(String::from_utf8(output.stdout).unwrap().trim());
        Some(Self { device, _folder: folder })
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup").arg("--detach").arg(&self.device).status();
    }
}

fn open(path: &Path, options: &FileOptions) -> Result<File, BlockErrorKind> {
    let engine = Engine::new(EngineChoice::Threads).unwrap();
    File::open(path, options, &engine).map_err(|error| error.kind())
}

#[test]
fn a_block_device_reads_writes_zeroes_and_unmaps() {
    let Some(disk) = Loop::attach() else { return };
    for direct in [false, true] {
        by_each_engine(|engine| {
            let options = FileOptions { direct, thin: true, block_bytes: 4096, ..FileOptions::default() };
            let disk: Device = device::on_disk::device(&disk.device, &options, engine);
            assert_eq!(disk.backend.properties().bytes(), 8 * MIB as u64);
            let data = pattern(1, 2 * MIB);
            disk.write(4096, &data);
            disk.write_fua(4 * MIB as u64, &data);
            disk.flush();
            assert_eq!(disk.read(4096, data.len()), data);
            disk.write_zeroes(4096, 8192, false);
            disk.unmap(4 * MIB as u64, MIB as u64);
            assert_eq!(disk.read(4096, 12288)[..8192], [0; 8192]);
            assert_eq!(disk.read(4096, data.len())[8192..], data[8192..]);
            assert_eq!(disk.read(4 * MIB as u64, MIB), vec![0; MIB]);
            assert_eq!(disk.read(5 * MIB as u64, MIB), data[MIB..]);
            assert_eq!(disk.extents(0, 8 * MIB as u64), [(0, 8 * MIB as u64, ExtentState::Data)]);
        });
    }
}

#[test]
fn a_block_device_has_one_writer_and_a_size_of_its_own() {
    let Some(disk) = Loop::attach() else { return };
    let larger = FileOptions { size_bytes: Some(16 * MIB as u64), ..FileOptions::default() };
    assert_eq!(open(&disk.device, &larger).err(), Some(BlockErrorKind::OutOfRange));
    let writer = open(&disk.device, &FileOptions::default()).unwrap();
    assert_eq!(writer.properties().blocks, 8 * MIB as u64 / 512);
    assert_eq!(open(&disk.device, &FileOptions::default()).err(), Some(BlockErrorKind::InUse));
}

#[test]
fn a_failed_open_says_which_device_and_why() {
    let engine = Engine::new(EngineChoice::Threads).unwrap();
    let error = File::open("/dev/no-such-disk", &FileOptions::default(), &engine).map(|_| ()).unwrap_err();
    assert_eq!(error.to_string(), "opening /dev/no-such-disk: not found");
    assert_eq!(kind::<()>(Err(error)), BlockErrorKind::NotFound);
}
