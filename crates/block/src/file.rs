//! Regular files and block devices.

mod engine;
mod medium;
mod pool;
mod ring;
mod space;
mod transfer;

use std::borrow::Cow;
use std::io;
use std::path::Path;
use std::sync::Arc;

pub use engine::{ENGINE_VARIABLE, Engine, EngineChoice};

use crate::backend::{Backend, Completion, Operation, Properties};
use crate::error::{BlockError, BlockErrorKind};
use crate::extent::ByteRange;
use crate::pending::Pending;
use medium::Medium;
use space::Zeroing;
use transfer::{Transfer, Work};

/// The options of a [`File`]. The default: read and write, through the page cache, 512-byte blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileOptions {
    /// Bypass the page cache (`O_DIRECT`). Blocks must then be as long as the medium requires.
    pub direct: bool,
    /// Refuse writes, and share the file with other readers.
    pub read_only: bool,
    /// Let unmapping punch holes.
    pub thin: bool,
    /// Create the file if it is missing, and extend it (sparsely) if it is shorter. It is never truncated.
    pub size_bytes: Option<u64>,
    /// Length of a logical block.
    pub block_bytes: u32,
}

impl Default for FileOptions {
    fn default() -> Self {
        Self { direct: false, read_only: false, thin: false, size_bytes: None, block_bytes: 512 }
    }
}

/// A regular file or a block device.
///
/// While it is open for writing, no other process that uses the lock (`flock`) can open it; a mounted block device
/// cannot be opened for writing. A remainder shorter than one block at the end is not part of the device.
///
/// Linux may drop data that it could not write back. It reports that once for each open file, to the first flush or FUA
/// write that asks. After either fails, earlier completed writes may be lost even if later or concurrent flushes
/// succeed: repeat every write since the last successful flush.
pub struct File {
    medium: Arc<Medium>,
    engine: Engine,
}

impl File {
    /// Opens a file. Blocks on the filesystem meanwhile.
    ///
    /// # Errors
    /// `NotFound`, `PermissionDenied` or `InUse`; `Misaligned` if direct I/O or the device needs longer blocks;
    /// `OutOfRange` if `size_bytes` exceeds a device that cannot be extended; `Unsupported` for anything but a regular
    /// file or a block device, for a filesystem without direct I/O, and for impossible blocks.
    pub fn open(path: impl AsRef<Path>, options: &FileOptions, engine: &Engine) -> Result<Self, BlockError> {
        let medium = Medium::open(path.as_ref(), options)?;
        Ok(Self { medium: Arc::new(medium), engine: engine.clone() })
    }

    /// Takes over a regular file that is open as `options` say; `path` names it in errors. A lock that its open file
    /// description holds already ([`Self::lock`]) stays.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn adopt(
        file: std::fs::File,
        path: impl AsRef<Path>,
        options: &FileOptions,
        engine: &Engine,
    ) -> Result<Self, BlockError> {
        let medium = Medium::adopt(file, path.as_ref(), options, false)?;
        Ok(Self { medium: Arc::new(medium), engine: engine.clone() })
    }

    /// Takes the lock of whoever writes, for files that must be looked at under it before they are changed.
    ///
    /// # Errors
    /// `InUse` if another process reads or writes it.
    pub fn lock(file: &std::fs::File, path: impl AsRef<Path>) -> Result<(), BlockError> {
        medium::lock(file, path.as_ref(), false)
    }

    /// The same open file by another engine: each shard uses its own.
    #[must_use]
    pub fn on(&self, engine: &Engine) -> Self {
        Self { medium: Arc::clone(&self.medium), engine: engine.clone() }
    }

    fn transfer(&self, work: Work) -> Pending {
        let (completer, pending) = Pending::channel();
        self.engine.start(Transfer::new(Arc::clone(&self.medium), work, completer));
        pending
    }

    fn on_thread(
        &self,
        job: impl FnOnce(&Medium) -> Result<Completion, BlockError> + Send + 'static,
    ) -> Pending {
        let (completer, pending) = Pending::channel();
        let medium = Arc::clone(&self.medium);
        self.engine.run(move || completer.complete(job(&medium).unwrap_or_else(Completion::failed)));
        pending
    }

    fn zero(&self, range: ByteRange, zeroing: Zeroing) -> Pending {
        self.on_thread(move |medium| medium.zero(range, zeroing).map(|()| Completion::complete()))
    }

    /// Only a part of a buffer can be misaligned: whole buffers suit every device.
    fn check_memory(&self, operation: &Operation) -> Result<(), BlockError> {
        match operation {
            Operation::Write { payload, .. }
                if !payload.as_ptr().addr().is_multiple_of(self.medium.memory_alignment_bytes) =>
            {
                let needed_bytes = self.medium.memory_alignment_bytes;
                let context =
                    format!("memory of a direct write, which must start at a multiple of {needed_bytes}");
                Err(BlockError::new(BlockErrorKind::Misaligned, context))
            }
            _ => Ok(()),
        }
    }
}

impl Backend for File {
    fn properties(&self) -> Properties {
        self.medium.properties
    }

    fn submit(&self, operation: Operation) -> Pending {
        let properties = &self.medium.properties;
        if let Err(error) = properties.check(&operation).and_then(|()| self.check_memory(&operation)) {
            return Pending::ready(Completion::refused(operation, error));
        }
        if operation.range().is_some_and(|range| range.bytes == 0) {
            return Pending::ready(Completion::of_nothing(operation));
        }
        match operation {
            Operation::Read { offset, buffer } => self.transfer(Work::Read { offset, buffer }),
            Operation::Write { offset, payload, fua } => self.transfer(Work::Write { offset, payload, fua }),
            Operation::Flush if properties.read_only => Pending::ready(Completion::complete()),
            Operation::Flush => self.transfer(Work::Flush),
            Operation::WriteZeroes { offset, bytes, may_unmap } => {
                let punch = may_unmap && properties.thin.is_some();
                self.zero(ByteRange { offset, bytes }, if punch { Zeroing::Punch } else { Zeroing::Keep })
            }
            Operation::Unmap { offset, bytes } => self.zero(ByteRange { offset, bytes }, Zeroing::Punch),
            Operation::Extents { offset, bytes } => self.on_thread(move |medium| {
                medium.extents(ByteRange { offset, bytes }).map(Completion::extents)
            }),
            Operation::Space => self.on_thread(|medium| medium.space().map(Completion::space)),
        }
    }
}

fn error_of(error: io::Error, context: impl Into<Cow<'static, str>>) -> BlockError {
    let kind = match error.kind() {
        io::ErrorKind::NotFound => BlockErrorKind::NotFound,
        io::ErrorKind::PermissionDenied => BlockErrorKind::PermissionDenied,
        io::ErrorKind::ResourceBusy => BlockErrorKind::InUse,
        io::ErrorKind::ReadOnlyFilesystem => BlockErrorKind::ReadOnly,
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
            BlockErrorKind::NoSpace
        }
        io::ErrorKind::Unsupported | io::ErrorKind::InvalidInput => BlockErrorKind::Unsupported,
        _ => BlockErrorKind::Medium,
    };
    BlockError::new(kind, context).with_source(error)
}
