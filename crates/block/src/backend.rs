//! The interface of all block devices, and its promises.

use crate::error::{BlockError, BlockErrorKind};
use crate::extent::{ByteRange, Extent};
use crate::payload::Payload;
use crate::pending::Pending;
use crate::slab::Buffer;

/// A block device. Operations go in; completions come out later, possibly on another thread.
///
/// # Promises
/// * An operation runs from [`submit`](Backend::submit) on, whether its [`Pending`] is polled, kept or dropped.
/// * Concurrent operations have no order. Overlapping ones leave each block with the data of either.
/// * A read submitted after the completion of a write sees that write.
/// * A [`Flush`](Operation::Flush) makes durable every operation that *completed* before its submission, and no others
///   (SBC-3 §5.20 SYNCHRONIZE CACHE).
/// * Nothing larger than a block is atomic: the caller must order commands such as COMPARE AND WRITE.
pub trait Backend: Send + Sync {
    /// The device's properties, constant while it is open.
    fn properties(&self) -> Properties;

    /// Starts an operation. All errors come in the [`Completion`], including the caller's ([`Properties::check`]).
    fn submit(&self, operation: Operation) -> Pending;

    /// Lends the beginning of a range without copying it, if the device holds it in memory: at most `bytes` bytes, in
    /// their present state, whatever is written later. `None`: read it.
    ///
    /// A write to lent memory may force the device to copy much more than is lent; borrow long ranges, and briefly.
    fn lend(&self, _offset: u64, _bytes: u32) -> Option<Payload> {
        None
    }
}

/// The shortest logical block of any disk.
const BLOCK_BYTES_MIN: u32 = 512;

/// The longest logical block: Linux's limit for disks.
const BLOCK_BYTES_MAX: u32 = 64 << 10;

/// The constant facts of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Properties {
    /// Bytes of a logical block: the unit of every offset and length. A power of two.
    pub block_bytes: u32,
    /// The number of logical blocks.
    pub blocks: u64,
    /// Writes of every kind are refused.
    pub read_only: bool,
    /// The device's thin provisioning; `None` if every block is always allocated.
    pub thin: Option<Thin>,
    /// Completed writes may be lost until a flush (WCE of the caching mode page, SBC-3 §6.4.5).
    pub volatile_cache: bool,
}

/// Logical block provisioning (SBC-3 §4.7, VPD page B2h).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thin {
    /// Unmapping less than this, or across its bounds, may free nothing.
    pub granularity_bytes: u32,
    /// Unmapped blocks read as zeroes (LBPRZ).
    pub reads_zero: bool,
}

impl Properties {
    /// The length of the whole device.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.blocks.saturating_mul(u64::from(self.block_bytes))
    }

    /// Checks that a device can have these properties; every backend does so when it opens.
    ///
    /// # Errors
    /// [`Unsupported`](BlockErrorKind::Unsupported) if a block is not a power of two between 512 bytes and 64 KiB,
    /// [`OutOfRange`](BlockErrorKind::OutOfRange) if the capacity exceeds 2^63 − 1 bytes, the limit of a file.
    pub fn validate(&self) -> Result<(), BlockError> {
        if !self.block_bytes.is_power_of_two()
            || !(BLOCK_BYTES_MIN..=BLOCK_BYTES_MAX).contains(&self.block_bytes)
        {
            let context = format!("blocks of {} bytes", self.block_bytes);
            return Err(BlockError::new(BlockErrorKind::Unsupported, context));
        }
        match self.blocks.checked_mul(u64::from(self.block_bytes)) {
            Some(bytes) if i64::try_from(bytes).is_ok() => Ok(()),
            _ => Err(BlockError::new(
                BlockErrorKind::OutOfRange,
                format!("capacity of {} blocks", self.blocks),
            )),
        }
    }

    /// Checks that the device allows this operation; every backend does so first.
    ///
    /// # Errors
    /// [`ReadOnly`](BlockErrorKind::ReadOnly), [`Misaligned`](BlockErrorKind::Misaligned) to blocks, or
    /// [`OutOfRange`](BlockErrorKind::OutOfRange), in this order; [`Unsupported`](BlockErrorKind::Unsupported) for an
    /// unmap or a space query of a device that is not thin.
    pub fn check(&self, operation: &Operation) -> Result<(), BlockError> {
        let refuse = |kind| Err(BlockError::new(kind, operation.name()));
        if self.read_only && operation.changes_data() {
            return refuse(BlockErrorKind::ReadOnly);
        }
        if matches!(operation, Operation::Unmap { .. } | Operation::Space) && self.thin.is_none() {
            return refuse(BlockErrorKind::Unsupported);
        }
        let Some(range) = operation.range() else { return Ok(()) };
        let block_bytes = u64::from(self.block_bytes);
        if !range.offset.is_multiple_of(block_bytes) || !range.bytes.is_multiple_of(block_bytes) {
            return refuse(BlockErrorKind::Misaligned);
        }
        match range.offset.checked_add(range.bytes) {
            Some(end) if end <= self.bytes() => Ok(()),
            _ => refuse(BlockErrorKind::OutOfRange),
        }
    }
}

/// An operation. Offsets and lengths are in bytes, offsets from the start of the device.
#[derive(Debug)]
#[expect(missing_docs, reason = "the description of the enum says what offsets and lengths are")]
pub enum Operation {
    /// Fills the whole buffer, which returns with the completion.
    Read {
        offset: u64,
        /// The length of the buffer is the length of the read.
        buffer: Buffer,
    },
    /// Writes the payload. Keep a clone to have it afterwards.
    Write {
        offset: u64,
        /// Dropped when the device has finished reading it.
        payload: Payload,
        /// Force unit access: durable before it completes.
        fua: bool,
    },
    /// Makes a range read as zeroes.
    WriteZeroes {
        offset: u64,
        bytes: u64,
        /// The range may also be deallocated, if deallocated blocks read as zeroes.
        may_unmap: bool,
    },
    /// Deallocates a range (SBC-3 §5.28 UNMAP).
    Unmap { offset: u64, bytes: u64 },
    /// Makes every completed write durable.
    Flush,
    /// Queries the allocation of a range (`SEEK_HOLE`; remotely GET LBA STATUS, SBC-3 §5.6).
    Extents { offset: u64, bytes: u64 },
    /// Queries the allocated space of a thin device. The answer is an estimate, cheap enough for regular queries, but
    /// not for one per write.
    Space,
}

impl Operation {
    /// The range that the operation touches; `None` if it concerns the whole device.
    #[must_use]
    pub fn range(&self) -> Option<ByteRange> {
        let (offset, bytes) = match self {
            Self::Read { offset, buffer } => (*offset, buffer.len() as u64),
            Self::Write { offset, payload, .. } => (*offset, payload.len() as u64),
            Self::WriteZeroes { offset, bytes, .. }
            | Self::Unmap { offset, bytes }
            | Self::Extents { offset, bytes } => (*offset, *bytes),
            Self::Flush | Self::Space => return None,
        };
        Some(ByteRange { offset, bytes })
    }

    /// Whether blocks may read differently afterwards.
    #[must_use]
    pub fn changes_data(&self) -> bool {
        matches!(self, Self::Write { .. } | Self::WriteZeroes { .. } | Self::Unmap { .. })
    }

    /// The operation's name in messages.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Read { .. } => "read",
            Self::Write { .. } => "write",
            Self::WriteZeroes { .. } => "write zeroes",
            Self::Unmap { .. } => "unmap",
            Self::Flush => "flush",
            Self::Extents { .. } => "extents",
            Self::Space => "space",
        }
    }
}

/// The end of an operation.
#[derive(Debug)]
pub struct Completion {
    /// The result of the operation.
    pub result: Result<Done, BlockError>,
    /// The buffer of a read, returned in any case: filled on success, otherwise with unspecified bytes. (Lost only with
    /// a device that disappears.)
    pub buffer: Option<Buffer>,
}

/// The result of a successful operation.
#[derive(Debug, PartialEq, Eq)]
pub enum Done {
    /// The whole operation was carried out.
    Complete,
    /// The answer to [`Operation::Extents`]: ascending and without gaps, from the requested offset. It may end before
    /// the range does, but is never empty for a range that is not; ask again from its end.
    Extents(Vec<Extent>),
    /// The answer to [`Operation::Space`].
    Space(Space),
}

/// The allocated and the available space of a thin device (SBC-3, LBA mapping resources).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// Allocated bytes, at most the capacity.
    pub used_bytes: u64,
    /// Bytes that can still be allocated: the rest of the capacity, or the free space that the device shares with
    /// others, if that is less.
    pub available_bytes: u64,
}

impl Space {
    /// The space of a device of this capacity that uses `used_bytes`, on a medium with `free_bytes` left.
    pub(crate) fn of(capacity_bytes: u64, used_bytes: u64, free_bytes: u64) -> Self {
        let used_bytes = used_bytes.min(capacity_bytes);
        Self { used_bytes, available_bytes: (capacity_bytes - used_bytes).min(free_bytes) }
    }
}

impl Completion {
    /// Success of any operation except a read and the queries.
    #[must_use]
    pub fn complete() -> Self {
        Self { result: Ok(Done::Complete), buffer: None }
    }

    /// Success of a read.
    #[must_use]
    pub fn read(buffer: Buffer) -> Self {
        Self { result: Ok(Done::Complete), buffer: Some(buffer) }
    }

    /// The answer to [`Operation::Extents`].
    #[must_use]
    pub fn extents(extents: Vec<Extent>) -> Self {
        Self { result: Ok(Done::Extents(extents)), buffer: None }
    }

    /// The answer to [`Operation::Space`].
    #[must_use]
    pub fn space(space: Space) -> Self {
        Self { result: Ok(Done::Space(space)), buffer: None }
    }

    /// Failure of anything but a read, or of a read whose buffer is lost.
    #[must_use]
    pub fn failed(error: BlockError) -> Self {
        Self { result: Err(error), buffer: None }
    }

    /// The refusal of an operation that was not started, with its buffer if it has one.
    #[must_use]
    pub fn refused(operation: Operation, error: BlockError) -> Self {
        let buffer = match operation {
            Operation::Read { buffer, .. } => Some(buffer),
            _ => None,
        };
        Self { result: Err(error), buffer }
    }

    /// Success of an operation on zero bytes.
    #[cfg(feature = "file")]
    pub(crate) fn of_nothing(operation: Operation) -> Self {
        match operation {
            Operation::Read { buffer, .. } => Self::read(buffer),
            Operation::Extents { .. } => Self::extents(Vec::new()),
            _ => Self::complete(),
        }
    }

    /// The filled buffer of a read.
    ///
    /// # Errors
    /// The operation's error; [`BlockErrorKind::Unsupported`] if it was not a read.
    pub fn into_buffer(self) -> Result<Buffer, BlockError> {
        self.result?;
        self.buffer.ok_or_else(|| BlockError::new(BlockErrorKind::Unsupported, "not a read"))
    }

    /// The extents of an extents query.
    ///
    /// # Errors
    /// The operation's error; [`BlockErrorKind::Unsupported`] if it was another operation.
    pub fn into_extents(self) -> Result<Vec<Extent>, BlockError> {
        match self.result? {
            Done::Extents(extents) => Ok(extents),
            _ => Err(BlockError::new(BlockErrorKind::Unsupported, "not an extents query")),
        }
    }

    /// The space of a space query.
    ///
    /// # Errors
    /// The operation's error; [`BlockErrorKind::Unsupported`] if it was another operation.
    pub fn into_space(self) -> Result<Space, BlockError> {
        match self.result? {
            Done::Space(space) => Ok(space),
            _ => Err(BlockError::new(BlockErrorKind::Unsupported, "not a query of space")),
        }
    }
}
