//! Whether a block device is in use: mounted for writing, swapped to, or part of something that is.
//!
//! Read from `/proc/self/mountinfo`, `/proc/swaps` and sysfs (proc(5), sysfs-block in Linux's ABI documentation).

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// A block device's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct DeviceNumber {
    pub(super) major: u32,
    pub(super) minor: u32,
}

/// How a device is in use by this machine, for people.
pub(super) fn use_of(device: DeviceNumber) -> Option<String> {
    let related = related(Path::new("/sys/dev/block"), device);
    mounted_for_writing(&related).or_else(|| swapped_to(&related))
}

/// The kernel name of what is built on the device: a volume manager, a RAID or an encrypted volume.
pub(super) fn holder_of(device: DeviceNumber) -> Option<String> {
    holder(Path::new("/sys/dev/block"), device)
}

/// The number of the block device at `path`, if it is one.
pub(super) fn device_number(path: &Path) -> Option<DeviceNumber> {
    fs::metadata(path).ok().and_then(|metadata| number_of(&metadata))
}

/// The number of a block device.
pub(super) fn number_of(metadata: &fs::Metadata) -> Option<DeviceNumber> {
    let number = Some(metadata.rdev()).filter(|_| metadata.file_type().is_block_device())?;
    Some(DeviceNumber { major: rustix::fs::major(number), minor: rustix::fs::minor(number) })
}

fn mounted_for_writing(devices: &BTreeSet<DeviceNumber>) -> Option<String> {
    let mountinfo = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let mount = mountinfo.lines().filter_map(Mount::parse).find(|mount| {
        // Filesystems on several devices (btrfs) show a number of their own, and name a device only as their source.
        let source = || device_number(&mount.source).is_some_and(|number| devices.contains(&number));
        mount.for_writing && (devices.contains(&mount.device) || source())
    })?;
    Some(format!("mounted for writing at {}", mount.point.display()))
}

fn swapped_to(devices: &BTreeSet<DeviceNumber>) -> Option<String> {
    let swaps = fs::read_to_string("/proc/swaps").ok()?;
    let mut areas = swaps.lines().skip(1).filter_map(|line| line.split_whitespace().next());
    areas
        .find(|area| {
            device_number(Path::new(&unescape(area))).is_some_and(|number| devices.contains(&number))
        })
        .map(|_| "used as swap space".to_owned())
}

/// One line of mountinfo.
#[derive(Debug, PartialEq, Eq)]
struct Mount {
    device: DeviceNumber,
    point: PathBuf,
    source: PathBuf,
    for_writing: bool,
}

impl Mount {
    /// `36 35 98:0 /root /mountpoint options optional... - type source superoptions`
    fn parse(line: &str) -> Option<Self> {
        let (before, after) = line.split_once(" - ")?;
        let mut before = before.split(' ').skip(2);
        let device = DeviceNumber::parse(before.next()?)?;
        let point = unescape(before.nth(1)?);
        let source = unescape(after.split(' ').nth(1)?);
        // A read-only mount does not prevent changes of the device if the filesystem itself is writable.
        let super_options = after.split(' ').nth(2)?;
        let for_writing = super_options.split(',').all(|option| option != "ro");
        Some(Self { device, point: point.into(), source: source.into(), for_writing })
    }
}

impl DeviceNumber {
    fn parse(text: &str) -> Option<Self> {
        let (major, minor) = text.trim().split_once(':')?;
        Some(Self { major: major.parse().ok()?, minor: minor.parse().ok()? })
    }
}

/// Decodes space, tab, newline and backslash, which are written as a backslash and three octal digits.
fn unescape(text: &str) -> String {
    let escapes = [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")];
    escapes.iter().fold(text.to_owned(), |text, (escaped, letter)| text.replace(escaped, letter))
}

/// The device, its partitions, and every device that is built on any of them.
fn related(sys_dev_block: &Path, device: DeviceNumber) -> BTreeSet<DeviceNumber> {
    let mut found = BTreeSet::new();
    let mut unvisited = vec![device];
    while let Some(device) = unvisited.pop() {
        if found.insert(device) {
            let folder = folder(sys_dev_block, device);
            unvisited.extend(
                entries(&folder).filter(|entry| entry.join("partition").exists()).filter_map(number_in),
            );
            unvisited.extend(entries(&folder.join("holders")).filter_map(number_in));
        }
    }
    found
}

fn holder(sys_dev_block: &Path, device: DeviceNumber) -> Option<String> {
    let folder = folder(sys_dev_block, device);
    let parts = entries(&folder).filter(|entry| entry.join("partition").exists());
    let mut holders =
        std::iter::once(folder.clone()).chain(parts).flat_map(|part| entries(&part.join("holders")));
    holders.find_map(|holder| Some(holder.file_name()?.to_string_lossy().into_owned()))
}

fn folder(sys_dev_block: &Path, device: DeviceNumber) -> PathBuf {
    sys_dev_block.join(format!("{}:{}", device.major, device.minor))
}

fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok).map(|entry| entry.path())
}

fn number_in(folder: impl AsRef<Path>) -> Option<DeviceNumber> {
    DeviceNumber::parse(&fs::read_to_string(folder.as_ref().join("dev")).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(major: u32, minor: u32) -> DeviceNumber {
        DeviceNumber { major, minor }
    }

    #[test]
    fn a_line_of_mountinfo_is_understood() {
        let line = r"29 1 8:2 / /mnt/my\040disk rw,relatime shared:1 - ext4 /dev/sda2 rw,errors=remount-ro";
        let mount = Mount::parse(line).unwrap();
        assert_eq!(mount.device, number(8, 2));
        assert_eq!(mount.point, Path::new("/mnt/my disk"));
        assert_eq!(mount.source, Path::new("/dev/sda2"));
        assert!(mount.for_writing);
    }

    #[test]
    fn only_a_filesystem_that_is_read_only_itself_keeps_still() {
        let bind = "30 1 8:2 / /ro ro,relatime - ext4 /dev/sda2 rw";
        assert!(Mount::parse(bind).unwrap().for_writing);
        let still = "30 1 8:2 / /ro ro,relatime - ext4 /dev/sda2 ro,norecovery";
        assert!(!Mount::parse(still).unwrap().for_writing);
    }

    #[test]
    fn partitions_and_what_is_built_on_them_belong_to_a_disk() {
        let sys = tempfile::tempdir().unwrap();
        let add = |folder: &str, dev: &str| {
            let folder = sys.path().join(folder);
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("dev"), dev).unwrap();
            folder
        };
        add("8:0", "8:0\n");
        fs::write(add("8:0/sda1", "8:1\n").join("partition"), "1\n").unwrap();
        add("8:1", "8:1\n");
        add("8:1/holders/dm-0", "253:0\n");
        add("8:0/sda1/holders/dm-0", "253:0\n");
        add("253:0", "253:0\n");
        add("8:0/queue", "9:9\n");
        let all = [number(8, 0), number(8, 1), number(253, 0)];
        assert_eq!(related(sys.path(), number(8, 0)), BTreeSet::from(all));
        assert_eq!(related(sys.path(), number(253, 0)), BTreeSet::from([number(253, 0)]));
        assert_eq!(holder(sys.path(), number(8, 0)).as_deref(), Some("dm-0"));
        assert_eq!(holder(sys.path(), number(253, 0)), None);
    }
}
