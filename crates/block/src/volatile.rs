//! A write-back cache in the memory of the process: unflushed writes are lost when the process is killed.
//!
//! It makes a server's promises testable. Writes that a copy relied on without a flush are gone after kill −9, as after
//! a power failure.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::backend::{Backend, Completion, Operation, Properties};
use crate::detached::detached;
use crate::dirty::{DirtyMap, Piece};
use crate::error::BlockError;
use crate::extent::ByteRange;
use crate::payload::Payload;
use crate::pending::Pending;
use crate::slab::{Buffer, Slab};
use crate::turn::Turn;

/// When the cache is full, this part of it is written back, the oldest first: seldom enough to be efficient.
const WRITE_BACK_DIVISOR: usize = 4;

/// A write-back cache over any device.
///
/// Writes stay in memory until a flush, until the cache is full, or until an operation that bypasses the cache (a FUA
/// write, zeroes, an unmap, a query of extents) touches their blocks. If writing back fails, the data stays in the
/// cache, the operation that caused it fails, and the next flush tries again.
pub struct Volatile {
    shared: Arc<Shared>,
}

struct Shared {
    inner: Arc<dyn Backend>,
    memory: Slab,
    cache: Mutex<Cache>,
    /// Only one write-back runs at a time, so that two versions of a block are never on their way at once.
    turn: Turn,
}

/// Reads look at the device, then here, at `in_flight` before `dirty`.
#[derive(Default)]
struct Cache {
    /// Being written back by the holder of the turn.
    in_flight: DirtyMap,
    dirty: DirtyMap,
}

impl Volatile {
    /// Caches at most `cache_bytes` of unflushed writes (each of at least one page, rounded up to a power of two).
    #[must_use]
    pub fn new(inner: Arc<dyn Backend>, cache_bytes: usize) -> Self {
        let memory = Slab::new(cache_bytes);
        let shared = Shared { inner, memory, cache: Mutex::default(), turn: Turn::default() };
        Self { shared: Arc::new(shared) }
    }
}

impl Backend for Volatile {
    fn properties(&self) -> Properties {
        let inner = self.shared.inner.properties();
        Properties { volatile_cache: !inner.read_only, ..inner }
    }

    fn submit(&self, operation: Operation) -> Pending {
        if let Err(error) = self.properties().check(&operation) {
            return Pending::ready(Completion::refused(operation, error));
        }
        let shared = Arc::clone(&self.shared);
        match operation {
            Operation::Read { offset, buffer } => self.read(offset, buffer),
            Operation::Write { offset, payload, fua: false } => match shared.memory.allocate(payload.len()) {
                Some(buffer) => {
                    shared.keep(offset, &payload, buffer);
                    Pending::ready(Completion::complete())
                }
                None => detached(async move { shared.write_when_full(offset, payload).await }),
            },
            Operation::Flush => detached(async move { shared.flush().await }),
            // Does not count data that is only here: an estimate.
            Operation::Space => shared.inner.submit(Operation::Space),
            // A FUA write, zeroes, an unmap; or a query of extents, which the inner device can only answer after a
            // write-back.
            past => detached(async move {
                let _turn = shared.turn.take().await;
                shared.go_past(past).await
            }),
        }
    }
}

impl Volatile {
    fn read(&self, offset: u64, buffer: Buffer) -> Pending {
        let range = ByteRange { offset, bytes: buffer.len() as u64 };
        // Now, not after the device has answered: the cached data may be written back and forgotten by then.
        let cached = self.shared.lock().overlapping(range);
        let read = self.shared.inner.submit(Operation::Read { offset, buffer });
        if cached.is_empty() {
            return read;
        }
        detached(async move {
            let mut completion = read.await;
            if let (Ok(_), Some(buffer)) = (&completion.result, &mut completion.buffer) {
                for piece in cached {
                    piece.copy_into(offset, buffer);
                }
            }
            completion
        })
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Cache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Copies the data: the caller's memory has another budget, and would be held until some flush.
    fn keep(&self, offset: u64, data: &[u8], mut buffer: Buffer) {
        buffer.copy_from_slice(data);
        self.lock().dirty.insert(offset, buffer.share());
    }

    async fn write_when_full(&self, offset: u64, payload: Payload) -> Completion {
        let _turn = self.turn.take().await;
        if let Some(buffer) = self.memory.allocate(payload.len()) {
            self.keep(offset, &payload, buffer);
            return Completion::complete();
        }
        let oldest = self.start_write_back(|cache, memory| {
            cache.dirty.take_oldest((memory.budget_bytes() / WRITE_BACK_DIVISOR).max(payload.len()))
        });
        if let Err(error) = self.write_back(oldest).await {
            return Completion::failed(error);
        }
        match self.memory.allocate(payload.len()) {
            Some(buffer) => {
                self.keep(offset, &payload, buffer);
                Completion::complete()
            }
            // Longer than the whole cache, or reads under way still hold the data that was written back.
            None => self.go_past(Operation::Write { offset, payload, fua: false }).await,
        }
    }

    /// Every operation that completed before the flush was submitted is in the cache at its turn, or on the device.
    async fn flush(&self) -> Completion {
        let _turn = self.turn.take().await;
        let all = self.start_write_back(|cache, _| cache.dirty.take_all());
        match self.write_back(all).await {
            Ok(()) => self.inner.submit(Operation::Flush).await,
            Err(error) => Completion::failed(error),
        }
    }

    /// Runs the operation on the device. Older writes to its range go first: while it runs, a read may see them or the
    /// outcome, but nothing older. The caller must hold the turn.
    async fn go_past(&self, operation: Operation) -> Completion {
        if let Some(range) = operation.range() {
            let older = self.start_write_back(|cache, _| cache.dirty.take(range));
            if let Err(error) = self.write_back(older).await {
                return Completion::failed(error);
            }
        }
        self.inner.submit(operation).await
    }

    fn start_write_back(&self, choose: impl FnOnce(&mut Cache, &Slab) -> Vec<Piece>) -> Vec<Piece> {
        let mut cache = self.lock();
        let pieces = choose(&mut cache, &self.memory);
        for piece in &pieces {
            cache.in_flight.insert(piece.offset, piece.data.clone());
        }
        pieces
    }

    /// Writes the pieces that [`start_write_back`](Self::start_write_back) chose. Pieces that fail become dirty again,
    /// unless newer data covers them.
    async fn write_back(&self, pieces: Vec<Piece>) -> Result<(), BlockError> {
        let write = |piece: Piece| {
            let (offset, payload) = (piece.offset, piece.data.clone());
            (piece, self.inner.submit(Operation::Write { offset, payload, fua: false }))
        };
        let writes = pieces.into_iter().map(write).collect::<Vec<_>>();
        let mut failed = Vec::new();
        let mut outcome = Ok(());
        for (piece, pending) in writes {
            if let Err(error) = pending.await.result {
                failed.push(piece);
                outcome = Err(error);
            }
        }
        let mut cache = self.lock();
        for piece in &failed {
            cache.dirty.insert_beneath(piece);
        }
        let written = std::mem::take(&mut cache.in_flight);
        drop(cache);
        drop(written);
        outcome
    }
}

impl Cache {
    fn overlapping(&self, range: ByteRange) -> Vec<Piece> {
        let mut pieces = self.in_flight.overlapping(range);
        pieces.extend(self.dirty.overlapping(range));
        pieces
    }
}
