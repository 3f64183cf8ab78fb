//! A device that loses, when the test says so, what was not flushed.

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard};

use ropewalk_block::{
    Backend, BlockError, BlockErrorKind, Completion, Extent, ExtentState, Operation, Pending, Properties,
    Thin,
};

/// Clones are the same device.
#[derive(Clone)]
pub struct Forgetful(Arc<Mutex<State>>);

struct State {
    cached: Vec<u8>,
    durable: Vec<u8>,
    /// Somebody must hear of a loss.
    lost: bool,
    /// Loses its cache again when it is flushed, so often.
    losses_to_come: u32,
    /// Fails to write its cache to the medium, loses it and says so once, so often.
    failures_to_come: u32,
    flushes: u32,
}

impl Forgetful {
    pub fn new(bytes: usize) -> Self {
        let (cached, durable) = (vec![0; bytes], vec![0; bytes]);
        Self(Arc::new(Mutex::new(State {
            cached,
            durable,
            lost: false,
            losses_to_come: 0,
            failures_to_come: 0,
            flushes: 0,
        })))
    }

    pub fn lose(&self) {
        self.state().lose();
    }

    /// Loses what was not flushed by each of the next flushes.
    pub fn lose_at_flushes(&self, flushes: u32) {
        self.state().losses_to_come = flushes;
    }

    /// Each of the next flushes fails, and loses what was not flushed.
    pub fn fail_at_flushes(&self, flushes: u32) {
        self.state().failures_to_come = flushes;
    }

    pub fn durable(&self) -> Vec<u8> {
        self.state().durable.clone()
    }

    pub fn flushes(&self) -> u32 {
        self.state().flushes
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }
}

impl State {
    fn lose(&mut self) {
        self.cached.clone_from(&self.durable);
        self.lost = true;
    }

    fn flush(&mut self) -> Completion {
        self.flushes += 1;
        if self.failures_to_come > 0 {
            self.failures_to_come -= 1;
            self.cached.clone_from(&self.durable);
            return Completion::failed(BlockError::new(BlockErrorKind::Medium, "forgetful"));
        }
        if self.losses_to_come > 0 {
            self.losses_to_come -= 1;
            self.lose();
        }
        if std::mem::take(&mut self.lost) {
            return Completion::failed(BlockError::new(BlockErrorKind::WritesLost, "forgetful"));
        }
        self.durable.clone_from(&self.cached);
        Completion::complete()
    }
}

impl Backend for Forgetful {
    fn properties(&self) -> Properties {
        let blocks = self.state().cached.len() as u64 / 512;
        let thin = Some(Thin { granularity_bytes: 512, reads_zero: true });
        Properties { block_bytes: 512, blocks, read_only: false, thin, volatile_cache: true }
    }

    fn submit(&self, operation: Operation) -> Pending {
        if let Err(error) = self.properties().check(&operation) {
            return Pending::ready(Completion::refused(operation, error));
        }
        let mut state = self.state();
        let place = operation.range().map_or(0..0, |range| at(range.offset)..at(range.end()));
        Pending::ready(match operation {
            Operation::Read { mut buffer, .. } => {
                buffer.copy_from_slice(&state.cached[place]);
                Completion::read(buffer)
            }
            Operation::Write { payload, fua, .. } => {
                state.cached[place.clone()].copy_from_slice(&payload);
                if fua && std::mem::take(&mut state.lost) {
                    return Pending::ready(Completion::failed(BlockError::new(
                        BlockErrorKind::WritesLost,
                        "forgetful",
                    )));
                }
                if fua {
                    state.durable[place].copy_from_slice(&payload);
                }
                Completion::complete()
            }
            Operation::WriteZeroes { .. } | Operation::Unmap { .. } => {
                state.cached[place].fill(0);
                Completion::complete()
            }
            Operation::Flush => state.flush(),
            Operation::Extents { offset, bytes } => {
                Completion::extents(extents(&state.cached, offset, bytes))
            }
            Operation::Space => Completion::failed(BlockError::new(BlockErrorKind::Unsupported, "space")),
        })
    }
}

/// Zero or not, block by block: what is told must be true later, too.
fn extents(contents: &[u8], offset: u64, bytes: u64) -> Vec<Extent> {
    let block = |number: u64| {
        let range = ropewalk_block::ByteRange { offset: offset + number * 512, bytes: 512 };
        let place: Range<usize> = at(range.offset)..at(range.end());
        let is_zero = contents[place].iter().all(|byte| *byte == 0);
        Extent { range, state: if is_zero { ExtentState::Zero } else { ExtentState::Data } }
    };
    (0..bytes / 512).map(block).collect()
}

fn at(offset: u64) -> usize {
    usize::try_from(offset).unwrap()
}
