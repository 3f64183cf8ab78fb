//! A device that may lose what it has acknowledged, made one that does not.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::backend::{Backend, Completion, Operation, Properties};
use crate::detached::detached;
use crate::dirty::{DirtyMap, Piece};
use crate::error::{BlockError, BlockErrorKind};
use crate::extent::{ByteRange, Extent, ExtentState};
use crate::payload::Payload;
use crate::pending::Pending;
use crate::slab::{Buffer, Slab};
use crate::turn::Turn;
use crate::writers::Writers;

/// What is written anew at a time.
const REWRITES_AT_ONCE: usize = 256;

/// A device that loses its cache again while it is written anew is not tried more often than this by one flush.
const ATTEMPTS: usize = 8;

/// More zeroed ranges than this are not remembered: a flush makes them durable first.
const ZEROED_MAX: usize = 4096;

/// Keeps what is written until a flush has made it durable. If the device says that it has lost acknowledged writes
/// ([`WritesLost`](BlockErrorKind::WritesLost)), it writes them again and flushes again, and nobody hears of it.
///
/// Reads find what was written, wherever it is: what may be lost is read from memory. When the memory is half full, it
/// flushes by itself; when it is full, writes wait for that.
pub struct Rewriting {
    shared: Arc<Shared>,
}

struct Shared {
    inner: Arc<dyn Backend>,
    memory: Slab,
    kept: Mutex<Kept>,
    /// One flush at a time: while one writes anew, another one's success would promise too much.
    flushing: Turn,
    /// Writes that are not acknowledged stay out while lost ones are repeated, which must not come after them.
    writers: Writers,
    flushes_by_itself: AtomicBool,
}

/// What is acknowledged and not known to be durable.
#[derive(Default)]
struct Kept {
    data: DirtyMap,
    /// All older than the data in their ranges.
    zeroed: Vec<Zeroed>,
    /// Flushes that have begun, and the last of them that succeeded.
    begun: u64,
    succeeded: u64,
    /// The device has told of a failure, which it tells once: what is kept may be lost.
    must_rewrite: bool,
}

#[derive(Clone, Copy)]
struct Zeroed {
    range: ByteRange,
    may_unmap: bool,
    age: u64,
}

impl Rewriting {
    /// Keeps at most `memory_bytes` (each write rounded up to a power of two, and at least a page).
    #[must_use]
    pub fn new(inner: Arc<dyn Backend>, memory_bytes: usize) -> Self {
        let shared = Shared {
            inner,
            memory: Slab::new(memory_bytes),
            kept: Mutex::default(),
            flushing: Turn::default(),
            writers: Writers::default(),
            flushes_by_itself: AtomicBool::new(false),
        };
        Self { shared: Arc::new(shared) }
    }
}

impl Backend for Rewriting {
    fn properties(&self) -> Properties {
        self.shared.inner.properties()
    }

    fn submit(&self, operation: Operation) -> Pending {
        if let Err(error) = self.properties().check(&operation) {
            return Pending::ready(Completion::refused(operation, error));
        }
        let shared = Arc::clone(&self.shared);
        match operation {
            Operation::Read { offset, buffer } => shared.read(offset, buffer),
            Operation::Write { offset, payload, fua } => {
                detached(async move { shared.write(offset, payload, fua).await })
            }
            Operation::WriteZeroes { offset, bytes, may_unmap } => {
                let range = ByteRange { offset, bytes };
                detached(async move { shared.zero(range, may_unmap).await })
            }
            Operation::Unmap { offset, bytes } => {
                detached(async move { shared.unmap(ByteRange { offset, bytes }).await })
            }
            Operation::Flush => {
                let before = shared.kept().begun;
                detached(async move { shared.flush_after(before).await })
            }
            Operation::Extents { offset, bytes } => shared.extents(ByteRange { offset, bytes }),
            Operation::Space => shared.inner.submit(Operation::Space),
        }
    }
}

impl Shared {
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read(&self, offset: u64, buffer: Buffer) -> Pending {
        let range = ByteRange { offset, bytes: buffer.len() as u64 };
        // Now: what becomes durable meanwhile is forgotten, and the device may answer from before.
        let (zeroed, data) = self.kept().overlapping(range);
        let read = self.inner.submit(Operation::Read { offset, buffer });
        if zeroed.is_empty() && data.is_empty() {
            return read;
        }
        detached(async move {
            let mut completion = read.await;
            if let (Ok(_), Some(buffer)) = (&completion.result, &mut completion.buffer) {
                zeroed.iter().for_each(|zeroed| zeroed.fill(offset, buffer));
                data.iter().for_each(|piece| piece.copy_into(offset, buffer));
            }
            completion
        })
    }

    async fn write(self: Arc<Self>, offset: u64, payload: Payload, fua: bool) -> Completion {
        let mut copy = match self.room(payload.len()).await {
            Ok(copy) => copy,
            Err(error) => return Completion::failed(error),
        };
        copy.copy_from_slice(&payload);
        let writing = self.writers.write().await;
        let completion = self.inner.submit(Operation::Write { offset, payload, fua }).await;
        let hears_of_loss = self.written(offset, copy, fua, &completion);
        drop(writing);
        if hears_of_loss {
            return self.flush().await;
        }
        self.flush_ahead();
        completion
    }

    /// Keeps what was written. A forced write that fails may be the only one that hears of a loss. Returns whether it does:
    /// it is then in the cache itself, and a flush makes up for both.
    fn written(&self, offset: u64, copy: Buffer, fua: bool, completion: &Completion) -> bool {
        let loss = completion.result.as_ref().err().map(BlockError::kind);
        let hears_of_loss = fua && loss == Some(BlockErrorKind::WritesLost);
        let mut kept = self.kept();
        kept.must_rewrite |= fua && loss.is_some();
        if loss.is_none() || hears_of_loss {
            // A forced write, too: zeroes that were made before it would else be made again over it.
            kept.data.insert(offset, copy.share());
        }
        hears_of_loss
    }

    async fn zero(&self, range: ByteRange, may_unmap: bool) -> Completion {
        if let Err(error) = self.room_for_zeroes().await {
            return Completion::failed(error);
        }
        let _writing = self.writers.write().await;
        let zeroes = Operation::WriteZeroes { offset: range.offset, bytes: range.bytes, may_unmap };
        let completion = self.inner.submit(zeroes).await;
        if completion.result.is_ok() {
            self.kept().zero(range, may_unmap);
        }
        completion
    }

    /// What is unmapped reads as zeroes; or, where the device promises nothing, as anything, also as it was before.
    async fn unmap(&self, range: ByteRange) -> Completion {
        if let Err(error) = self.room_for_zeroes().await {
            return Completion::failed(error);
        }
        let reads_zero = self.inner.properties().thin.is_some_and(|thin| thin.reads_zero);
        let _writing = self.writers.write().await;
        let unmap = Operation::Unmap { offset: range.offset, bytes: range.bytes };
        let completion = self.inner.submit(unmap).await;
        if completion.result.is_ok() && reads_zero {
            self.kept().zero(range, true);
        } else if completion.result.is_ok() {
            self.kept().data.take(range);
        }
        completion
    }

    fn extents(&self, range: ByteRange) -> Pending {
        let (zeroed, data) = self.kept().overlapping(range);
        if range.bytes == 0 || zeroed.is_empty() && data.is_empty() {
            return self.inner.submit(Operation::Extents { offset: range.offset, bytes: range.bytes });
        }
        // The device may have lost what it would tell of.
        Pending::ready(Completion::extents(vec![Extent { range, state: ExtentState::Data }]))
    }

    /// Memory for a copy, as soon as there is some.
    async fn room(&self, bytes: usize) -> Result<Buffer, BlockError> {
        loop {
            if let Some(buffer) = self.memory.allocate(bytes) {
                return Ok(buffer);
            }
            if bytes > self.memory.budget_bytes() / 2 {
                return Err(BlockError::new(
                    BlockErrorKind::NoSpace,
                    "memory for a write until it is durable",
                ));
            }
            self.flush().await.result?;
        }
    }

    async fn room_for_zeroes(&self) -> Result<(), BlockError> {
        if self.kept().zeroed.len() < ZEROED_MAX {
            return Ok(());
        }
        self.flush().await.result.map(|_| ())
    }

    /// Flushes in time, so that no write has to wait for it.
    fn flush_ahead(self: &Arc<Self>) {
        let is_half_full = self.memory.in_use_bytes() > self.memory.budget_bytes() / 2;
        if is_half_full && !self.flushes_by_itself.swap(true, Ordering::AcqRel) {
            let shared = Arc::clone(self);
            // If it fails, the next flush that somebody asks for writes everything again.
            drop(detached(async move {
                let completion = shared.flush().await;
                shared.flushes_by_itself.store(false, Ordering::Release);
                completion
            }));
        }
    }

    async fn flush(&self) -> Completion {
        let before = self.kept().begun;
        self.flush_after(before).await
    }

    /// Flushes, unless a flush that has begun after these `before` succeeds meanwhile: it covers all that this one would.
    async fn flush_after(&self, before: u64) -> Completion {
        let _turn = self.flushing.take().await;
        if self.kept().succeeded > before {
            return Completion::complete();
        }
        for _ in 0..ATTEMPTS {
            let must_rewrite = self.kept().must_rewrite;
            if must_rewrite && let Err(error) = self.rewrite().await {
                return Completion::failed(error);
            }
            let (number, age) = self.kept().begin_flush();
            let flushed = self.inner.submit(Operation::Flush).await.result;
            let mut kept = self.kept();
            match flushed {
                Ok(_) if !kept.must_rewrite => {
                    kept.flushed(number, age);
                    return Completion::complete();
                }
                // A forced write has heard of a loss meanwhile.
                Ok(_) => {}
                Err(error) => {
                    kept.must_rewrite = true;
                    if error.kind() != BlockErrorKind::WritesLost {
                        return Completion::failed(error);
                    }
                }
            }
        }
        let context = "a device that loses its cache again and again";
        Completion::failed(BlockError::new(BlockErrorKind::WritesLost, context))
    }

    /// Writes everything again that is not known to be durable.
    async fn rewrite(&self) -> Result<(), BlockError> {
        let _alone = self.writers.exclude().await;
        let (zeroed, data) = {
            let kept = self.kept();
            (kept.zeroed.clone(), kept.data.all())
        };
        for Zeroed { range: ByteRange { offset, bytes }, may_unmap, .. } in zeroed {
            self.inner.submit(Operation::WriteZeroes { offset, bytes, may_unmap }).await.result?;
        }
        let write = |piece: Piece| {
            self.inner.submit(Operation::Write { offset: piece.offset, payload: piece.data, fua: false })
        };
        let mut writes = data.into_iter().map(write);
        loop {
            let some: Vec<_> = writes.by_ref().take(REWRITES_AT_ONCE).collect();
            if some.is_empty() {
                self.kept().must_rewrite = false;
                return Ok(());
            }
            let mut outcome = Ok(());
            for pending in some {
                outcome = outcome.and(pending.await.result.map(|_| ()));
            }
            outcome?;
        }
    }
}

impl Kept {
    /// What lies in the range: zeroes, and the data on top of them.
    fn overlapping(&self, range: ByteRange) -> (Vec<Zeroed>, Vec<Piece>) {
        let touches =
            |zeroed: &&Zeroed| zeroed.range.offset < range.end() && range.offset < zeroed.range.end();
        (self.zeroed.iter().filter(touches).copied().collect(), self.data.overlapping(range))
    }

    fn zero(&mut self, range: ByteRange, may_unmap: bool) {
        self.data.take(range);
        let age = self.data.pass();
        self.zeroed.push(Zeroed { range, may_unmap, age });
    }

    /// The number of a flush that begins, and the age of what it does not cover.
    fn begin_flush(&mut self) -> (u64, u64) {
        self.begun += 1;
        (self.begun, self.data.next_age())
    }

    fn flushed(&mut self, number: u64, age: u64) {
        self.succeeded = number;
        self.data.forget(age);
        self.zeroed.retain(|zeroed| zeroed.age >= age);
    }
}

impl Zeroed {
    /// Makes its part of read data zero, which starts at `offset`.
    fn fill(&self, offset: u64, read: &mut [u8]) {
        let within = |position: u64| {
            usize::try_from(position.saturating_sub(offset)).unwrap_or(usize::MAX).min(read.len())
        };
        let (start, end) = (within(self.range.offset), within(self.range.end()));
        read[start..end].fill(0);
    }
}
