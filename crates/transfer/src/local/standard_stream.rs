//! Standard input and output, by their descriptors.
//!
//! Rust's own handles treat a closed or unsuitable descriptor as an empty or bottomless stream: they ignore EBADF, and
//! the runtime opens `/dev/null` for reading and writing in place of a descriptor that is closed at the start.

use crate::Refusal;
use crate::local::Kind;
use rustix::fs::OFlags;
use std::fs::{File, Metadata};
use std::io::{Result, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};

/// Standard input, which must be open for reading.
pub(super) fn input() -> std::result::Result<(File, Kind), Refusal> {
    open(std::io::stdin().as_fd(), "standard input", OFlags::WRONLY, "open for writing only")
}

/// Standard output, which must be open for writing.
pub(super) fn output() -> std::result::Result<(Output, Kind), Refusal> {
    let (file, kind) =
        open(std::io::stdout().as_fd(), "standard output", OFlags::RDONLY, "not open for writing")?;
    let is_durable = matches!(kind, Kind::File { .. } | Kind::Device(_));
    Ok((Output { file, is_durable }, kind))
}

/// Opens a descriptor. `wrong_mode` is the unsuitable access mode, `wrong` describes it for people.
fn open(
    descriptor: BorrowedFd<'_>,
    name: &'static str,
    wrong_mode: OFlags,
    wrong: &'static str,
) -> std::result::Result<(File, Kind), Refusal> {
    let refusal = |why: &str| Refusal::Descriptor { name, why: why.to_owned() };
    let mode = rustix::fs::fcntl_getfl(descriptor).map_err(|errno| refusal(&errno.to_string()))?;
    let mode = mode & OFlags::RWMODE;
    if mode == wrong_mode {
        return Err(refusal(wrong));
    }
    let opened = descriptor.try_clone_to_owned().map(File::from);
    let opened = opened.and_then(|file| file.metadata().map(|metadata| (file, metadata)));
    let (file, metadata) = opened.map_err(|error| refusal(&error.to_string()))?;
    if mode == OFlags::RDWR && is_null(&metadata) {
        return Err(refusal("closed"));
    }
    Ok((file, Kind::of(&metadata)))
}

/// Whether the descriptor is `/dev/null`, whose number is the same on every Linux (devices.txt in the kernel's
/// documentation).
fn is_null(metadata: &Metadata) -> bool {
    let number = (rustix::fs::major(metadata.rdev()), rustix::fs::minor(metadata.rdev()));
    metadata.file_type().is_char_device() && number == (1, 3)
}

/// Standard output; a flush of a file or block device reaches the medium.
pub(super) struct Output {
    file: File,
    is_durable: bool,
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> Result<()> {
        if self.is_durable { self.file.sync_all() } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::io::Errno;

    /// A flush of an output over a pipe, which the system refuses to sync: `fsync(2)` answers EINVAL.
    fn flushed(is_durable: bool) -> Result<()> {
        let (_reader, writer) = std::io::pipe()?;
        Output { file: File::from(std::os::fd::OwnedFd::from(writer)), is_durable }.flush()
    }

    #[test]
    fn a_durable_output_is_synced_and_a_pipe_is_not() {
        assert_eq!(
            flushed(true).map_err(|error| error.raw_os_error()),
            Err(Some(Errno::INVAL.raw_os_error()))
        );
        assert!(flushed(false).is_ok());
    }
}
