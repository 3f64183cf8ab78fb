//! Local files, block devices and streams: the only part of this crate that does I/O by itself.

mod end;
mod file;
mod mount;
mod standard_stream;
mod thread;
mod watch;

use crate::disk::Disk;
use crate::identity::Node;
use crate::place::FILE_BLOCK_BYTES;
use crate::{Error, Identity, Refusal};
use block::{BlockError, BlockErrorKind, Engine, File, FileOptions};
use mount::DeviceNumber;
use rustix::io::Errno;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The kind of file that a path leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A block device.
    Device(DeviceNumber),
    /// A regular file.
    File { bytes: u64, inode: (u64, u64) },
    /// A pipe or a character device, which is read or written from beginning to end.
    Stream,
    /// A file that does not exist, in a directory that does.
    Absent,
}

impl Kind {
    /// The kind of an existing file other than a directory.
    fn of(metadata: &fs::Metadata) -> Self {
        if metadata.is_file() {
            return Self::File { bytes: metadata.len(), inode: (metadata.dev(), metadata.ino()) };
        }
        mount::number_of(metadata).map_or(Self::Stream, Self::Device)
    }

    /// The identity of the file or device, independent of its name.
    fn node(self) -> Option<Node> {
        match self {
            Self::Device(DeviceNumber { major, minor }) => Some(Node::Device { major, minor }),
            Self::File { inode: (device, inode), .. } => Some(Node::File { device, inode }),
            Self::Stream | Self::Absent => None,
        }
    }
}

/// Block lengths to try, in bytes, the most usual first.
const BLOCK_BYTES: [u32; 2] = [FILE_BLOCK_BYTES, 4096];

fn kind_of(path: &Path) -> Result<Kind, Error> {
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == ErrorKind::NotFound && has_folder(path) => {
            return match path.symlink_metadata() {
                Ok(_) => Err(cannot_open(path, std::io::Error::other("it is a dangling symbolic link"))),
                Err(_) => Ok(Kind::Absent),
            };
        }
        Err(error) => return Err(cannot_open(path, error)),
    };
    if metadata.is_dir() {
        return Err(cannot_open(path, ErrorKind::IsADirectory.into()));
    }
    Ok(Kind::of(&metadata))
}

fn has_folder(path: &Path) -> bool {
    path.file_name().is_some() && folder_of(path).is_dir()
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Makes the directory entry of a new file durable, where the system can.
fn sync_folder(path: &Path) -> Result<(), Error> {
    let synced = fs::File::open(folder_of(path)).and_then(|folder| folder.sync_all());
    unless_unsupported(synced)
        .map_err(|source| Error::FolderSync { name: path.display().to_string(), source })
}

/// Forgives a sync of a directory that cannot be asked for. Not every filesystem supports the call (`fsync(2)`: EINVAL),
/// and a user who may create a file in a directory may lack the right to open it (EACCES). Any other error, such as EIO,
/// means that the entry may be lost.
fn unless_unsupported(synced: std::io::Result<()>) -> std::io::Result<()> {
    match synced {
        Err(error) => match Errno::from_io_error(&error) {
            Some(Errno::INVAL | Errno::OPNOTSUPP | Errno::ACCESS) => Ok(()),
            _ => Err(error),
        },
        Ok(()) => Ok(()),
    }
}

/// Opens a file or device for reading. A file's bytes beyond its last whole block become the disk's tail.
fn open_to_read(path: &Path, engine: &Engine) -> Result<Disk, Error> {
    let options = FileOptions { read_only: true, ..FileOptions::default() };
    let file = open(path, &options, engine)?;
    let tail = fs::File::open(path).and_then(|file| tail(&file)).map_err(|error| cannot_open(path, error))?;
    Ok(Disk { name: path.display().to_string(), backend: Arc::new(file), tail: tail.into() })
}

/// Opens a block device for writing.
fn open_to_write(path: &Path, engine: &Engine) -> Result<Disk, Error> {
    let options = FileOptions { thin: true, ..FileOptions::default() };
    let file = open(path, &options, engine).map_err(in_use)?;
    Ok(Disk::new(path.display().to_string(), Arc::new(file)))
}

/// Turns the error for a destination that is in use into a refusal.
fn in_use(error: Error) -> Error {
    match error {
        Error::Open { name, source } if source.kind() == BlockErrorKind::InUse => {
            Refusal::DestinationInUse { name, used: "in use by another process, or mounted".to_owned() }
                .into()
        }
        other => other,
    }
}

fn open(path: &Path, options: &FileOptions, engine: &Engine) -> Result<File, Error> {
    let mut outcome = Err(BlockError::new(BlockErrorKind::Misaligned, "opening"));
    for block_bytes in BLOCK_BYTES {
        outcome = File::open(path, &FileOptions { block_bytes, ..options.clone() }, engine);
        if !matches!(&outcome, Err(error) if error.kind() == BlockErrorKind::Misaligned) {
            break;
        }
    }
    outcome.map_err(|source| Error::Open { name: path.display().to_string(), source })
}

/// A file's bytes beyond its last whole block.
fn tail(file: &fs::File) -> std::io::Result<Vec<u8>> {
    let metadata = file.metadata()?;
    let bytes = if metadata.is_file() { metadata.len() % u64::from(BLOCK_BYTES[0]) } else { 0 };
    let mut tail = vec![0; usize::try_from(bytes).unwrap_or(0)];
    file.read_exact_at(&mut tail, metadata.len() - bytes)?;
    Ok(tail)
}

fn identity(path: &Path, kind: Kind) -> Identity {
    let designator = match kind {
        Kind::Device(number) => designator(number),
        _ => None,
    };
    Identity { name: path.display().to_string(), designator }
}

/// The designator that the kernel read from the device's VPD page 83h, or the identifier of an `NVMe` namespace.
fn designator(number: DeviceNumber) -> Option<String> {
    let folder = PathBuf::from(format!("/sys/dev/block/{}:{}", number.major, number.minor));
    let text = ["device/wwid", "wwid"].iter().find_map(|file| fs::read_to_string(folder.join(file)).ok())?;
    let text = text.trim().to_lowercase();
    (text.starts_with("naa.") || text.starts_with("eui.")).then_some(text)
}

fn cannot_open(path: &Path, source: std::io::Error) -> Error {
    Error::File { name: path.display().to_string(), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn forgiven(errno: Errno) -> bool {
        unless_unsupported(Err(errno.into())).is_ok()
    }

    #[test]
    fn a_directory_that_cannot_be_synced_fails_a_copy_unless_the_system_does_not_offer_it() {
        assert!([Errno::INVAL, Errno::OPNOTSUPP, Errno::ACCESS].into_iter().all(forgiven));
        assert!(![Errno::IO, Errno::NOSPC, Errno::ROFS, Errno::NOENT].into_iter().any(forgiven));
    }

    #[test]
    fn a_directory_that_is_gone_fails_a_copy() {
        let folder = tempfile::tempdir().expect("a folder");
        assert!(sync_folder(&folder.path().join("file")).is_ok());
        let error = sync_folder(&folder.path().join("gone/file")).err();
        assert!(matches!(error, Some(Error::FolderSync { .. })), "{error:?}");
    }
}
