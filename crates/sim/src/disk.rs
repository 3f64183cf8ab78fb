//! A disk that takes its time, fails, tears, and forgets at a crash what was not flushed.
//!
//! Operations in flight end in any order. A write takes effect when it ends, block by block; one that fails, or is
//! under way at a crash, has taken effect on some of its blocks. With a volatile cache, an acknowledged block reaches
//! the medium at some time before the end of the next flush that is submitted, or not at all if there is a crash
//! before. A flush promises nothing about a write that ends after its submission. Nor does a block reach the medium if
//! a flush, or a write with FUA, fails before: as Linux does, the disk then forgets some of what it could not write,
//! and the next flush succeeds.

mod cache;

use crate::agenda::Agenda;
use crate::clock::Clock;
use crate::random::Random;
use atomic_refcell::{AtomicRefCell, AtomicRefMut};
use block::{
    Backend, BlockError, BlockErrorKind, ByteRange, Completer, Completion, Extent, ExtentState, Operation,
    Pending, Properties, Thin,
};
use cache::{Cache, Flush};
use pdu::{Duration, Instant};
use std::sync::Arc;

/// How many of a hundred acknowledged blocks reach the medium by themselves, before any flush.
const DESTAGED_PERCENT: u64 = 30;

/// How rare a slow operation is, and how many times longer it takes than an ordinary one.
const SLOW_ONE_IN: u64 = 50;
const SLOW_FACTOR: u64 = 20;

/// What a disk is like.
#[derive(Clone, Debug)]
pub struct Geometry {
    /// Bytes of a logical block.
    pub block_bytes: u32,
    /// The capacity, in logical blocks.
    pub blocks: u64,
    /// Whether acknowledged writes may be lost until a flush.
    pub volatile_cache: bool,
    /// The longest that an ordinary operation takes.
    pub latency_max: Duration,
}

/// A simulated disk. It outlives the target that serves it.
pub struct Disk {
    geometry: Geometry,
    clock: Clock,
    state: AtomicRefCell<State>,
}

struct State {
    random: Random,
    block_bytes: usize,
    pending: Agenda<InFlight>,
    /// What reads see.
    current: Vec<u8>,
    cache: Cache,
    /// Operations to fail.
    failures: u32,
    /// Flushes and writes with FUA to fail.
    forced_failures: u32,
    /// The cache was lost, which nobody has asked about.
    has_lost_cache: bool,
    failed: u32,
    crashes: u64,
    /// Blocks that a loss of the cache changed.
    lost_blocks: u64,
    stalled_until: Instant,
    /// How many of a hundred operations wait for that.
    stalled_percent: u64,
}

struct InFlight {
    operation: Operation,
    /// What it is to write, if it is a flush.
    flush: Option<Flush>,
    completer: Completer,
}

impl Disk {
    /// A disk full of zeroes.
    #[must_use]
    pub fn new(geometry: Geometry, clock: Clock, random: Random) -> Self {
        let (blocks, block_bytes) = (index(geometry.blocks), geometry.block_bytes as usize);
        let bytes = blocks * block_bytes;
        let state = State {
            random,
            block_bytes,
            pending: Agenda::default(),
            current: vec![0; bytes],
            cache: Cache::default(),
            failures: 0,
            forced_failures: 0,
            has_lost_cache: false,
            failed: 0,
            crashes: 0,
            lost_blocks: 0,
            stalled_until: Instant::ZERO,
            stalled_percent: 0,
        };
        Self { geometry, clock, state: AtomicRefCell::new(state) }
    }

    fn lock(&self) -> AtomicRefMut<'_, State> {
        self.state.borrow_mut()
    }

    /// When an operation ends.
    #[must_use]
    pub fn next_at(&self) -> Option<Instant> {
        self.lock().pending.next_at()
    }

    /// Ends the operations that are due.
    pub fn run(&self, now: Instant) {
        loop {
            let mut state = self.lock();
            let Some(InFlight { operation, flush, completer }) = state.pending.pop_due(now) else { return };
            let completion = state.carry_out(operation, flush, self.geometry.volatile_cache);
            drop(state);
            completer.complete(completion);
        }
    }

    /// The power fails: what was under way has happened in part, and what the cache held is lost in part.
    pub fn crash(&self) {
        let mut state = self.lock();
        let mut unanswered = Vec::new();
        while let Some((_, in_flight)) = state.pending.pop() {
            if in_flight.operation.changes_data() {
                state.tear(&in_flight.operation);
            }
            unanswered.push(in_flight);
        }
        state.crashes += 1;
        state.lose_cache();
        state.stalled_until = Instant::ZERO;
        (state.failures, state.forced_failures) = (0, 0);
        drop(state);
        // Whoever waits for them is woken now, and finds the disk detached.
        drop(unanswered);
    }

    /// The disk for as long as the power stays: after the next crash, everything that is asked of this fails.
    #[must_use]
    pub fn attach(self: Arc<Self>) -> Attached {
        let crashes = self.lock().crashes;
        Attached { disk: self, crashes }
    }

    /// The next operations fail.
    pub fn fail(&self, operations: u32) {
        self.lock().failures += operations;
    }

    /// The next flushes and writes with FUA fail.
    pub fn fail_forced(&self, operations: u32) {
        self.lock().forced_failures += operations;
    }

    /// Whether a failure has lost what the cache held, since this was asked last.
    pub fn take_cache_loss(&self) -> bool {
        std::mem::take(&mut self.lock().has_lost_cache)
    }

    /// Holds operations that begin before `until` back until then: `percent` of them, drawn at random. Later ones may
    /// overtake them.
    pub fn stall(&self, until: Instant, percent: u64) {
        let mut state = self.lock();
        state.stalled_until = state.stalled_until.max(until);
        state.stalled_percent = percent;
    }

    /// No more faults.
    pub fn heal(&self) {
        let mut state = self.lock();
        (state.failures, state.forced_failures) = (0, 0);
    }

    /// Whether its own cache may lose acknowledged writes until a flush.
    #[must_use]
    pub fn is_volatile(&self) -> bool {
        self.geometry.volatile_cache
    }

    /// How many blocks read differently after crashes than before.
    #[must_use]
    pub fn lost_blocks(&self) -> u64 {
        self.lock().lost_blocks
    }

    /// How many operations have failed.
    #[must_use]
    pub fn failed(&self) -> u32 {
        self.lock().failed
    }
}

impl Backend for Disk {
    fn properties(&self) -> Properties {
        Properties {
            block_bytes: self.geometry.block_bytes,
            blocks: self.geometry.blocks,
            read_only: false,
            thin: Some(Thin { granularity_bytes: self.geometry.block_bytes, reads_zero: true }),
            volatile_cache: self.geometry.volatile_cache,
        }
    }

    fn submit(&self, operation: Operation) -> Pending {
        if let Err(error) = self.properties().check(&operation) {
            return Pending::ready(Completion::refused(operation, error));
        }
        let (completer, pending) = Pending::channel();
        let now = self.clock.now();
        let mut state = self.lock();
        let latency_max = pdu::nanoseconds(self.geometry.latency_max);
        let slow = if state.random.one_in(SLOW_ONE_IN) { SLOW_FACTOR } else { 1 };
        let latency = Duration::from_nanos(state.random.between(1, latency_max) * slow);
        let percent = if now < state.stalled_until { state.stalled_percent } else { 0 };
        let begins = if state.random.percent(percent) { state.stalled_until } else { now };
        let at = begins + latency;
        let flush = matches!(operation, Operation::Flush).then(|| state.submit_flush());
        state.pending.push(at, InFlight { operation, flush, completer });
        pending
    }
}

/// A disk as it is between two crashes. A cache before it, which dies with the target, cannot write later.
pub struct Attached {
    disk: Arc<Disk>,
    /// The disk's count of crashes when it was attached.
    crashes: u64,
}

impl Backend for Attached {
    fn properties(&self) -> Properties {
        self.disk.properties()
    }

    fn submit(&self, operation: Operation) -> Pending {
        if self.disk.lock().crashes == self.crashes {
            return self.disk.submit(operation);
        }
        let error = BlockError::new(BlockErrorKind::Disconnected, "simulated");
        Pending::ready(Completion::refused(operation, error))
    }
}

impl State {
    fn submit_flush(&self) -> Flush {
        self.cache.submit_flush(|block| &self.current[block * self.block_bytes..][..self.block_bytes])
    }

    fn carry_out(&mut self, operation: Operation, flush: Option<Flush>, volatile_cache: bool) -> Completion {
        let is_forced = matches!(operation, Operation::Flush | Operation::Write { fua: true, .. });
        if self.takes_failure(is_forced) {
            self.failed += 1;
            if operation.changes_data() {
                self.tear(&operation);
            }
            if is_forced && volatile_cache {
                self.lose_cache();
                self.has_lost_cache = true;
            }
            return Completion::refused(operation, BlockError::new(BlockErrorKind::Medium, "simulated"));
        }
        match operation {
            Operation::Read { offset, mut buffer } => {
                let (start, bytes) = (index(offset), buffer.len());
                buffer.copy_from_slice(&self.current[start..start + bytes]);
                Completion::read(buffer)
            }
            Operation::Extents { offset, bytes } => {
                let range = ByteRange { offset, bytes };
                Completion::extents(vec![Extent { range, state: ExtentState::Data }])
            }
            Operation::Flush => {
                flush.into_iter().for_each(|flush| self.cache.end_flush(flush));
                Completion::complete()
            }
            change => {
                self.change(&change, volatile_cache, |_| true);
                Completion::complete()
            }
        }
    }

    /// Whether the next operation is to fail.
    fn takes_failure(&mut self, is_forced: bool) -> bool {
        let failures = match self.failures {
            0 if is_forced => &mut self.forced_failures,
            _ => &mut self.failures,
        };
        let fails = *failures > 0;
        *failures -= u32::from(fails);
        fails
    }

    /// Of what the cache holds, some has reached the medium, and the rest is lost.
    fn lose_cache(&mut self) {
        for (block, medium) in self.cache.take() {
            if !self.random.one_in(2) {
                let current = &mut self.current[block * self.block_bytes..][..self.block_bytes];
                self.lost_blocks += u64::from(*current != *medium);
                current.copy_from_slice(&medium);
            }
        }
    }

    /// Does a part of an operation.
    fn tear(&mut self, operation: &Operation) {
        let mut random = self.random.clone();
        let share = random.below(101);
        self.change(operation, true, |_| random.percent(share));
        self.random = random;
    }

    fn change(
        &mut self,
        operation: &Operation,
        volatile_cache: bool,
        mut happens: impl FnMut(usize) -> bool,
    ) {
        let Some(range) = operation.range() else { return };
        let durable = !volatile_cache || matches!(operation, Operation::Write { fua: true, .. });
        let block_bytes = self.block_bytes;
        let first = index(range.offset) / block_bytes;
        for (at, block) in (first..first + index(range.bytes) / block_bytes).enumerate() {
            if !happens(block) {
                continue;
            }
            let current = &mut self.current[block * block_bytes..][..block_bytes];
            if durable || self.random.percent(DESTAGED_PERCENT) {
                self.cache.write_through(block);
            } else {
                self.cache.keep(block, current);
            }
            match operation {
                Operation::Write { payload, .. } => {
                    current.copy_from_slice(&payload[at * block_bytes..][..block_bytes]);
                }
                _ => current.fill(0),
            }
        }
    }
}

/// Offsets were checked against the size of the disk, which is in memory.
fn index(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use block::Slab;

    fn disk(volatile_cache: bool) -> (Disk, Clock) {
        let clock = Clock::default();
        let latency_max = Duration::from_micros(100);
        let geometry = Geometry { block_bytes: 512, blocks: 64, volatile_cache, latency_max };
        (Disk::new(geometry, clock.clone(), Random::new(1, "disk")), clock)
    }

    fn write(disk: &Disk, block: u64, value: u8, fua: bool) -> Pending {
        let mut buffer = Slab::new(1 << 20).allocate(512).unwrap();
        buffer.fill(value);
        disk.submit(Operation::Write { offset: block * 512, payload: buffer.share(), fua })
    }

    fn finish(disk: &Disk, clock: &Clock) {
        while let Some(at) = disk.next_at() {
            clock.advance(at);
            disk.run(at);
        }
    }

    fn read(disk: &Disk, clock: &Clock, block: u64) -> u8 {
        let buffer = Slab::new(1 << 20).allocate(512).unwrap();
        let pending = disk.submit(Operation::Read { offset: block * 512, buffer });
        finish(disk, clock);
        pending.try_take().ok().unwrap().into_buffer().unwrap()[0]
    }

    #[test]
    fn a_flushed_write_survives_a_crash_and_one_with_fua_needs_no_flush() {
        for block in 0..32 {
            let (disk, clock) = disk(true);
            let acknowledged = write(&disk, block, 7, block % 2 == 0);
            finish(&disk, &clock);
            assert!(acknowledged.try_take().ok().unwrap().result.is_ok());
            if block % 2 == 1 {
                let _flush = disk.submit(Operation::Flush);
                finish(&disk, &clock);
            }
            disk.crash();
            assert_eq!(read(&disk, &clock, block), 7);
        }
    }

    #[test]
    fn a_flush_promises_nothing_about_a_write_that_ends_after_its_submission() {
        let (disk, clock) = disk(true);
        let _before: Vec<Pending> = (0..64).map(|block| write(&disk, block, 7, false)).collect();
        finish(&disk, &clock);
        let flush = disk.submit(Operation::Flush);
        // Half of the blocks change before the flush ends.
        let mut state = disk.lock();
        for block in 0..32 {
            let mut buffer = Slab::new(1 << 20).allocate(512).unwrap();
            buffer.fill(8);
            let later = Operation::Write { offset: block * 512, payload: buffer.share(), fua: false };
            state.change(&later, true, |_| true);
        }
        drop(state);
        finish(&disk, &clock);
        assert!(flush.try_take().ok().unwrap().result.is_ok());
        disk.crash();
        let found: Vec<u8> = (0..64).map(|block| read(&disk, &clock, block)).collect();
        assert!(found[..32].contains(&7) && found[..32].contains(&8), "{found:?}");
        assert!(found[..32].iter().all(|value| [7, 8].contains(value)), "{found:?}");
        assert!(found[32..].iter().all(|value| *value == 7), "{found:?}");
    }

    #[test]
    fn a_flush_that_fails_loses_some_of_what_it_should_have_written_and_the_next_succeeds() {
        let (disk, clock) = disk(true);
        let _pending: Vec<Pending> = (0..64).map(|block| write(&disk, block, 7, false)).collect();
        finish(&disk, &clock);
        disk.fail_forced(1);
        for succeeds in [false, true] {
            let flush = disk.submit(Operation::Flush);
            finish(&disk, &clock);
            assert_eq!(flush.try_take().ok().unwrap().result.is_ok(), succeeds);
            assert_eq!(disk.take_cache_loss(), !succeeds);
        }
        let left = (0..64).filter(|block| read(&disk, &clock, *block) == 7).count();
        assert!((1..64).contains(&left), "{left}");
    }

    #[test]
    fn of_what_was_not_flushed_a_crash_leaves_some() {
        let (disk, clock) = disk(true);
        let _pending: Vec<Pending> = (0..64).map(|block| write(&disk, block, 7, false)).collect();
        finish(&disk, &clock);
        disk.crash();
        let left = (0..64).filter(|block| read(&disk, &clock, *block) == 7).count();
        assert!((1..64).contains(&left), "{left}");
    }

    #[test]
    fn what_was_attached_before_a_crash_writes_nothing_after_it() {
        let (disk, clock) = disk(false);
        let disk = Arc::new(disk);
        let cache = block::Volatile::new(Arc::new(Arc::clone(&disk).attach()), 1 << 20);
        for value in 1..3 {
            let mut buffer = Slab::new(1 << 20).allocate(512).unwrap();
            buffer.fill(value);
            let written = cache.submit(Operation::Write { offset: 0, payload: buffer.share(), fua: false });
            assert!(written.try_take().ok().unwrap().result.is_ok());
            let flush = cache.submit(Operation::Flush);
            if value == 1 {
                finish(&disk, &clock);
                assert!(flush.try_take().ok().unwrap().result.is_ok());
            }
        }
        let waiting = cache.submit(Operation::Flush);
        disk.crash();
        assert!(waiting.try_take().ok().unwrap().result.is_err());
        assert_eq!(disk.next_at(), None);
    }
}
