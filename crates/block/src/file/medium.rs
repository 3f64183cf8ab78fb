//! An open file or block device: opened once, locked, measured.

use std::fs::{File as StdFile, FileType, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, FlockOperation, OFlags, SeekFrom, StatxFlags};

use super::{FileOptions, error_of};
use crate::backend::{Properties, Thin};
use crate::error::{BlockError, BlockErrorKind};
use crate::slab::BUFFER_ALIGNMENT_BYTES;

/// The alignment of direct I/O if the system cannot report it (before Linux 6.1): every disk accepts this.
const DIRECT_ALIGNMENT_BYTES: u32 = 4096;

/// The unit in which filesystems usually free space.
const HOLE_BYTES: u32 = 4096;

/// The time for which opening a file in use is retried. The system closes the files of a killed process's io_uring only
/// a moment after the process is gone, and an immediate restart must not fail for it.
const IN_USE_PATIENCE: Duration = Duration::from_secs(2);

/// The pause between two tries.
const IN_USE_PAUSE: Duration = Duration::from_millis(10);

pub(super) struct Medium {
    pub(super) file: StdFile,
    pub(super) properties: Properties,
    /// The required alignment of a transfer's memory.
    pub(super) memory_alignment_bytes: usize,
    /// Set at the first refusal.
    pub(super) no_zero_range: AtomicBool,
    pub(super) no_punch_hole: AtomicBool,
}

impl Medium {
    pub(super) fn open(path: &Path, options: &FileOptions) -> Result<Self, BlockError> {
        let failed = |error| error_of(error, format!("opening {}", path.display()));
        // Checked before opening, because opening a named pipe would wait for its other end.
        let is_device = match std::fs::metadata(path) {
            Ok(metadata) => is_block_device(path, metadata.file_type())?,
            Err(_) => false,
        };
        let file = while_in_use(|| open_file(path, options, is_device)).map_err(failed)?;
        Self::adopt(file, path, options, is_device)
    }

    /// Locks and measures a file that is open.
    pub(super) fn adopt(
        file: StdFile,
        path: &Path,
        options: &FileOptions,
        is_device: bool,
    ) -> Result<Self, BlockError> {
        let failed = |error| error_of(error, format!("opening {}", path.display()));
        lock(&file, path, options.read_only)?;
        if let Some(bytes) = options.size_bytes {
            extend(&file, path, bytes, is_device, options)?;
        }
        let bytes = rustix::fs::seek(&file, SeekFrom::End(0)).map_err(|errno| failed(errno.into()))?;
        let block_bytes = options.block_bytes;
        let properties = Properties {
            block_bytes,
            blocks: bytes / u64::from(block_bytes.max(1)),
            read_only: options.read_only,
            thin: (options.thin && !options.read_only)
                .then_some(Thin { granularity_bytes: HOLE_BYTES.max(block_bytes), reads_zero: true }),
            volatile_cache: !options.read_only,
        };
        properties.validate()?;
        let memory_alignment_bytes = check_alignment(&file, path, options, is_device)?;
        Ok(Self {
            file,
            properties,
            memory_alignment_bytes,
            no_zero_range: AtomicBool::new(false),
            no_punch_hole: AtomicBool::new(false),
        })
    }
}

fn is_block_device(path: &Path, kind: FileType) -> Result<bool, BlockError> {
    if kind.is_block_device() || kind.is_file() {
        return Ok(kind.is_block_device());
    }
    let context = format!("opening {}, which is neither a regular file nor a block device", path.display());
    Err(BlockError::new(BlockErrorKind::Unsupported, context))
}

/// Opens the file. A new file is accessible only to its owner, because it holds a disk's data.
fn open_file(path: &Path, options: &FileOptions, is_device: bool) -> io::Result<StdFile> {
    const OWNER_ONLY: u32 = 0o600;
    let mut flags = OFlags::empty();
    flags.set(OFlags::DIRECT, options.direct);
    // On a block device, without CREATE: refused if it is mounted or otherwise in use by the kernel.
    flags.set(OFlags::EXCL, is_device && !options.read_only);
    OpenOptions::new()
        .read(true)
        .write(!options.read_only)
        .create(!options.read_only && !is_device && options.size_bytes.is_some())
        .mode(OWNER_ONLY)
        .custom_flags(flags.bits().cast_signed())
        .open(path)
}

/// One writer or many readers, across processes.
pub(super) fn lock(file: &StdFile, path: &Path, read_only: bool) -> Result<(), BlockError> {
    let operation = if read_only {
        FlockOperation::NonBlockingLockShared
    } else {
        FlockOperation::NonBlockingLockExclusive
    };
    while_in_use(|| Ok(rustix::fs::flock(file, operation)?)).map_err(|error| match error.kind() {
        ErrorKind::WouldBlock => BlockError::new(
            BlockErrorKind::InUse,
            format!("locking {}, which another process serves", path.display()),
        ),
        _ => error_of(error, format!("locking {}", path.display())),
    })
}

/// Retries while another process holds the file.
fn while_in_use<T>(attempt: impl Fn() -> io::Result<T>) -> io::Result<T> {
    let deadline = Instant::now() + IN_USE_PATIENCE;
    loop {
        match attempt() {
            Err(error) if is_in_use(&error) && Instant::now() < deadline => thread::sleep(IN_USE_PAUSE),
            outcome => return outcome,
        }
    }
}

/// The errors of `flock` and of an exclusive `open` for a file in use.
fn is_in_use(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::ResourceBusy)
}

/// Makes the file at least `bytes` long; never shortens it.
fn extend(
    file: &StdFile,
    path: &Path,
    bytes: u64,
    is_device: bool,
    options: &FileOptions,
) -> Result<(), BlockError> {
    let failed = |error| error_of(error, format!("extending {} to {bytes} bytes", path.display()));
    let present_bytes = rustix::fs::seek(file, SeekFrom::End(0)).map_err(|errno| failed(errno.into()))?;
    if present_bytes >= bytes {
        return Ok(());
    }
    if options.read_only || is_device {
        let context =
            format!("{} has {present_bytes} bytes and cannot be extended to {bytes}", path.display());
        return Err(BlockError::new(BlockErrorKind::OutOfRange, context));
    }
    file.set_len(bytes).map_err(failed)
}

/// Checks that the blocks suit the device; returns the required alignment of memory.
fn check_alignment(
    file: &StdFile,
    path: &Path,
    options: &FileOptions,
    is_device: bool,
) -> Result<usize, BlockError> {
    let mut needed_bytes = 1;
    let mut memory_bytes = 1;
    if is_device {
        needed_bytes = rustix::fs::ioctl_blksszget(file).map_err(|errno| {
            error_of(errno.into(), format!("asking {} for its block size", path.display()))
        })?;
    }
    if options.direct {
        let alignment = direct_alignment(file);
        needed_bytes = needed_bytes.max(alignment.offset_bytes);
        memory_bytes = alignment.memory_bytes;
    }
    if !options.block_bytes.is_multiple_of(needed_bytes) {
        let context = format!(
            "blocks of {} bytes on {}, which needs multiples of {needed_bytes}",
            options.block_bytes,
            path.display()
        );
        return Err(BlockError::new(BlockErrorKind::Misaligned, context));
    }
    Ok(usize::try_from(memory_bytes).unwrap_or(BUFFER_ALIGNMENT_BYTES))
}

struct DirectAlignment {
    offset_bytes: u32,
    memory_bytes: u32,
}

fn direct_alignment(file: &StdFile) -> DirectAlignment {
    match rustix::fs::statx(file, c"", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN) {
        Ok(facts) if facts.stx_dio_offset_align > 0 && facts.stx_dio_mem_align > 0 => DirectAlignment {
            offset_bytes: facts.stx_dio_offset_align,
            memory_bytes: facts.stx_dio_mem_align,
        },
        _ => DirectAlignment { offset_bytes: DIRECT_ALIGNMENT_BYTES, memory_bytes: DIRECT_ALIGNMENT_BYTES },
    }
}
