//! A sparse device in memory.

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::backend::{Backend, Completion, Operation, Properties, Space, Thin};
use crate::error::{BlockError, BlockErrorKind};
use crate::extent::{self, ByteRange, EXTENTS_MAX, Extent, ExtentState};
use crate::mapping::Mapping;
use crate::payload::Payload;
use crate::pending::Pending;
use crate::slab::Buffer;

/// Memory is allocated and unmapped in chunks of this length (untouched pages cost nothing). Long enough to make the
/// look-up negligible beside the copying, short enough that writers to different places seldom meet.
const CHUNK_BYTES: u32 = 256 << 10;

/// From this many whole chunks on, zeroing visits the existing chunks instead of all possible ones, so that discarding
/// a huge empty disk takes no time.
const SWEEP_CHUNKS_MIN: u64 = 4096;

/// The locks over which chunks are spread: more than the processors that could write at the same time.
const SHARDS: usize = 64;

/// A sparse RAM disk. An operation is finished, at the speed of copying, when [`submit`](Backend::submit) returns.
///
/// Every block reads as zero until written. Each 256 KiB chunk has its own lock, so overlapping operations from several
/// threads are sound, and atomic within a chunk. `NoSpace` reports a shortage of memory, if the system reports it in
/// time.
pub struct Ram {
    properties: Properties,
    shards: Box<[Shard]>,
}

/// On its own cache line, so that taking a lock does not slow its neighbour.
#[repr(align(64))]
#[derive(Default)]
struct Shard {
    chunks: RwLock<HashMap<u64, Payload>>,
}

impl Ram {
    /// A device of `blocks` zero blocks of `block_bytes` each.
    ///
    /// # Errors
    /// Those of [`Properties::validate`].
    pub fn new(block_bytes: u32, blocks: u64) -> Result<Self, BlockError> {
        let thin = Some(Thin { granularity_bytes: CHUNK_BYTES.max(block_bytes), reads_zero: true });
        let properties = Properties { block_bytes, blocks, read_only: false, thin, volatile_cache: false };
        properties.validate()?;
        Ok(Self { properties, shards: (0..SHARDS).map(|_| Shard::default()).collect() })
    }

    /// Memory in use. A chunk counts once any byte of it was written.
    #[must_use]
    pub fn allocated_bytes(&self) -> u64 {
        let chunks = self.shards.iter().map(|shard| shard.read().len() as u64).sum::<u64>();
        chunks * u64::from(CHUNK_BYTES)
    }

    fn shard(&self, piece: &Piece) -> &Shard {
        // The remainder of a division by `SHARDS` fits any `usize`.
        #[expect(clippy::cast_possible_truncation)]
        &self.shards[(piece.chunk % SHARDS as u64) as usize]
    }

    fn read(&self, offset: u64, buffer: &mut [u8]) {
        let mut rest = buffer;
        for piece in Piece::of(offset, rest.len() as u64) {
            let (part, after) = rest.split_at_mut(piece.len());
            match self.shard(&piece).read().get(&piece.chunk) {
                Some(chunk) => part.copy_from_slice(&chunk[piece.start..piece.end]),
                None => part.fill(0),
            }
            rest = after;
        }
    }

    fn write(&self, offset: u64, data: &[u8]) -> Result<(), BlockError> {
        let mut rest = data;
        for piece in Piece::of(offset, rest.len() as u64) {
            let (part, after) = rest.split_at(piece.len());
            let mut chunks = self.shard(&piece).write();
            if let Some(chunk) = chunks.get_mut(&piece.chunk) {
                writable(chunk)?[piece.start..piece.end].copy_from_slice(part);
            } else {
                let mut chunk = new_chunk()?;
                chunk[piece.start..piece.end].copy_from_slice(part);
                chunks.insert(piece.chunk, Buffer::of_device(chunk).share());
            }
            rest = after;
        }
        Ok(())
    }

    fn zero(&self, offset: u64, bytes: u64) -> Result<(), BlockError> {
        let chunk_bytes = u64::from(CHUNK_BYTES);
        let whole = offset.div_ceil(chunk_bytes)..(offset + bytes) / chunk_bytes;
        if whole.end.saturating_sub(whole.start) < SWEEP_CHUNKS_MIN {
            return self.zero_pieces(offset, bytes);
        }
        for shard in &self.shards {
            let released = shard.write().extract_if(|chunk, _| whole.contains(chunk)).collect::<Vec<_>>();
            drop(released);
        }
        let (start, end) = (whole.start * chunk_bytes, whole.end * chunk_bytes);
        self.zero_pieces(offset, start - offset)?;
        self.zero_pieces(end, offset + bytes - end)
    }

    fn zero_pieces(&self, offset: u64, bytes: u64) -> Result<(), BlockError> {
        for piece in Piece::of(offset, bytes) {
            let shard = self.shard(&piece);
            if !shard.read().contains_key(&piece.chunk) {
                continue;
            }
            let mut chunks = shard.write();
            if piece.len() == CHUNK_BYTES as usize {
                let released = chunks.remove(&piece.chunk);
                drop(chunks);
                drop(released);
            } else if let Some(chunk) = chunks.get_mut(&piece.chunk) {
                writable(chunk)?[piece.start..piece.end].fill(0);
            }
        }
        Ok(())
    }

    fn extents(&self, offset: u64, bytes: u64) -> Vec<Extent> {
        let mut extents = Vec::new();
        for piece in Piece::of(offset, bytes).take(EXTENT_CHUNKS_MAX) {
            let allocated = self.shard(&piece).read().contains_key(&piece.chunk);
            let state = if allocated { ExtentState::Data } else { ExtentState::Zero };
            let range = ByteRange { offset: piece.offset(), bytes: piece.len() as u64 };
            extent::append(&mut extents, Extent { range, state });
            if extents.len() == EXTENTS_MAX {
                break;
            }
        }
        extents
    }
}

/// The most chunks that one extents query visits (16 GiB), because it runs on the caller's thread.
const EXTENT_CHUNKS_MAX: usize = 1 << 16;

impl Backend for Ram {
    fn properties(&self) -> Properties {
        self.properties
    }

    fn submit(&self, operation: Operation) -> Pending {
        if let Err(error) = self.properties.check(&operation) {
            return Pending::ready(Completion::refused(operation, error));
        }
        Pending::ready(match operation {
            Operation::Read { offset, mut buffer } => {
                self.read(offset, &mut buffer);
                Completion::read(buffer)
            }
            Operation::Write { offset, payload, .. } => finished(self.write(offset, &payload)),
            Operation::WriteZeroes { offset, bytes, .. } | Operation::Unmap { offset, bytes } => {
                finished(self.zero(offset, bytes))
            }
            Operation::Flush => Completion::complete(),
            Operation::Extents { offset, bytes } => Completion::extents(self.extents(offset, bytes)),
            // The system does not tell how much memory it would still give.
            Operation::Space => {
                Completion::space(Space::of(self.properties.bytes(), self.allocated_bytes(), u64::MAX))
            }
        })
    }

    fn lend(&self, offset: u64, bytes: u32) -> Option<Payload> {
        let end = offset.checked_add(bytes.into()).filter(|end| *end <= self.properties.bytes())?;
        let piece = Piece::of(offset, end - offset).next()?;
        self.shard(&piece).read().get(&piece.chunk)?.slice(piece.start..piece.end)
    }
}

fn finished(result: Result<(), BlockError>) -> Completion {
    match result {
        Ok(()) => Completion::complete(),
        Err(error) => Completion::failed(error),
    }
}

fn new_chunk() -> Result<Mapping, BlockError> {
    Mapping::new(CHUNK_BYTES as usize)
        .ok_or_else(|| BlockError::new(BlockErrorKind::NoSpace, "memory for a written chunk"))
}

/// The chunk's bytes. If some are lent, the borrowers keep the old chunk, and a copy replaces it.
fn writable(chunk: &mut Payload) -> Result<&mut [u8], BlockError> {
    if chunk.get_mut().is_none() {
        let mut copy = new_chunk()?;
        copy.copy_from_slice(chunk);
        *chunk = Buffer::of_device(copy).share();
    }
    chunk.get_mut().ok_or_else(|| BlockError::new(BlockErrorKind::NoSpace, "a chunk of its own"))
}

impl Shard {
    fn read(&self) -> RwLockReadGuard<'_, HashMap<u64, Payload>> {
        self.chunks.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, HashMap<u64, Payload>> {
        self.chunks.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The part of a range that lies in one chunk: `start..end` within it.
struct Piece {
    chunk: u64,
    start: usize,
    end: usize,
}

impl Piece {
    fn of(offset: u64, bytes: u64) -> impl Iterator<Item = Self> {
        let chunk_bytes = u64::from(CHUNK_BYTES);
        let end = offset + bytes;
        let chunks = if bytes == 0 { 0..0 } else { offset / chunk_bytes..end.div_ceil(chunk_bytes) };
        // Differences within one chunk fit any `usize`.
        #[expect(clippy::cast_possible_truncation)]
        chunks.map(move |chunk| {
            let first = chunk * chunk_bytes;
            let start = offset.saturating_sub(first) as usize;
            Self { chunk, start, end: (end - first).min(chunk_bytes) as usize }
        })
    }

    fn len(&self) -> usize {
        self.end - self.start
    }

    fn offset(&self) -> u64 {
        self.chunk * u64::from(CHUNK_BYTES) + self.start as u64
    }
}
