//! Zeroes, holes and free space: calls that may take long, so they run on the engine's threads.

use std::sync::atomic::Ordering;

use rustix::fs::{FallocateFlags, FileType, SeekFrom};
use rustix::io::Errno;

use super::error_of;
use super::medium::Medium;
use crate::backend::Space;
use crate::error::{BlockError, BlockErrorKind};
use crate::extent::{self, ByteRange, EXTENTS_MAX, Extent, ExtentState};

/// Written repeatedly if the system cannot zero a range by itself. Static, and aligned for direct I/O.
static ZEROES: Zeroes = Zeroes([0; ZEROES_BYTES]);

/// Long enough to be efficient, short enough to fit the executable's zero pages.
const ZEROES_BYTES: usize = 256 << 10;

#[repr(align(4096))]
struct Zeroes([u8; ZEROES_BYTES]);

/// The way to zero a range.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Zeroing {
    /// The range stays allocated.
    Keep,
    /// The range becomes a hole.
    Punch,
}

impl Medium {
    /// Makes a range read as zeroes, by writing them if the system offers nothing better. (On block devices Linux maps
    /// both calls to the device's own commands, and promises zeroes.)
    pub(super) fn zero(&self, range: ByteRange, zeroing: Zeroing) -> Result<(), BlockError> {
        let (unsupported, mode) = match zeroing {
            Zeroing::Keep => (&self.no_zero_range, FallocateFlags::ZERO_RANGE),
            Zeroing::Punch => (&self.no_punch_hole, FallocateFlags::PUNCH_HOLE),
        };
        if !unsupported.load(Ordering::Relaxed) {
            match self.fallocate(mode | FallocateFlags::KEEP_SIZE, range) {
                Err(Errno::OPNOTSUPP | Errno::NOSYS) => unsupported.store(true, Ordering::Relaxed),
                done => return done.map_err(|errno| error_of(errno.into(), "zeroing a range of a file")),
            }
        }
        self.write_zeroes(range)
    }

    fn fallocate(&self, mode: FallocateFlags, range: ByteRange) -> rustix::io::Result<()> {
        loop {
            match rustix::fs::fallocate(&self.file, mode, range.offset, range.bytes) {
                Err(Errno::INTR) => {}
                outcome => return outcome,
            }
        }
    }

    fn write_zeroes(&self, range: ByteRange) -> Result<(), BlockError> {
        let mut offset = range.offset;
        while offset < range.end() {
            let bytes = usize::try_from(range.end() - offset).unwrap_or(usize::MAX).min(ZEROES_BYTES);
            match rustix::io::pwrite(&self.file, &ZEROES.0[..bytes], offset) {
                Ok(written) => offset += written as u64,
                Err(Errno::INTR | Errno::AGAIN) => {}
                Err(errno) => return Err(error_of(errno.into(), "writing zeroes to a file")),
            }
        }
        Ok(())
    }

    /// The file's allocated space, and the filesystem's free space for unprivileged users. A block device knows
    /// neither.
    pub(super) fn space(&self) -> Result<Space, BlockError> {
        /// The unit of `st_blocks`, whatever the filesystem's block size.
        const STAT_BLOCK_BYTES: u64 = 512;
        let failed = |errno: Errno| error_of(errno.into(), "asking for the space of a file");
        let facts = rustix::fs::fstat(&self.file).map_err(failed)?;
        if !FileType::from_raw_mode(facts.st_mode).is_file() {
            return Err(BlockError::new(BlockErrorKind::Unsupported, "the space of a block device"));
        }
        let filesystem = rustix::fs::fstatvfs(&self.file).map_err(failed)?;
        let used_bytes = u64::try_from(facts.st_blocks).unwrap_or(0).saturating_mul(STAT_BLOCK_BYTES);
        let free_bytes = filesystem.f_bavail.saturating_mul(filesystem.f_frsize);
        Ok(Space::of(self.properties.bytes(), used_bytes, free_bytes))
    }

    /// Asks the filesystem for holes. If it has no answer (block devices), everything counts as data.
    pub(super) fn extents(&self, range: ByteRange) -> Result<Vec<Extent>, BlockError> {
        let mut extents = Vec::new();
        let mut offset = range.offset;
        while offset < range.end() && extents.len() < EXTENTS_MAX {
            let (state, end) = self.extent_at(offset)?;
            let end = end.min(range.end());
            let bytes = end - offset;
            extent::append(&mut extents, Extent { range: ByteRange { offset, bytes }, state });
            offset = end;
        }
        Ok(extents)
    }

    /// The state at `offset` and its end, in whole blocks. A block with any data is data.
    fn extent_at(&self, offset: u64) -> Result<(ExtentState, u64), BlockError> {
        let block_bytes = u64::from(self.properties.block_bytes);
        let failed = |errno: Errno| error_of(errno.into(), "looking for holes in a file");
        let data = match rustix::fs::seek(&self.file, SeekFrom::Data(offset)) {
            Ok(data) => data - data % block_bytes,
            Err(Errno::NXIO) => u64::MAX,
            Err(Errno::INVAL | Errno::OPNOTSUPP) => return Ok((ExtentState::Data, u64::MAX)),
            Err(errno) => return Err(failed(errno)),
        };
        if data > offset {
            return Ok((ExtentState::Zero, data));
        }
        let hole = match rustix::fs::seek(&self.file, SeekFrom::Hole(offset)) {
            Ok(hole) => hole,
            // Punched since the last query: a hole now, up to an end that the next query will find.
            Err(Errno::NXIO) => offset,
            Err(errno) => return Err(failed(errno)),
        };
        Ok((ExtentState::Data, hole.next_multiple_of(block_bytes).max(offset + block_bytes)))
    }
}
