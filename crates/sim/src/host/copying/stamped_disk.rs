//! A disk in the host's memory, full of stamps, to be copied.

use crate::checker::Stamp;
use crate::host::runtime::Runtime;
use crate::random::Random;
use crate::shared_cell::SharedCell;
use block::{
    Backend, BlockError, BlockErrorKind, ByteRange, Completion, Extent, ExtentState, Operation, Pending,
    Properties,
};
use client::Host;
use pdu::Duration;

/// Extents of one answer.
const EXTENTS_MAX: usize = 3;

/// The longest that an operation takes.
const LATENCY_MAX: (u64, u64) = (1, 20_000_000);

/// A source that takes its time and answers in any order.
pub(super) struct StampedDisk {
    runtime: Runtime,
    contents: Vec<u8>,
    block_bytes: usize,
    latency_ns_max: u64,
    /// Whether it says where it holds zeroes.
    tells_extents: bool,
    random: SharedCell<Random>,
}

impl StampedDisk {
    pub fn new(stamps: &[Stamp], block_bytes: usize, runtime: Runtime, random: &mut Random) -> Self {
        let mut contents = vec![0; stamps.len() * block_bytes];
        for (lba, (block, stamp)) in (0..).zip(contents.chunks_mut(block_bytes).zip(stamps)) {
            stamp.fill_block(block, lba);
        }
        Self {
            runtime,
            contents,
            block_bytes,
            latency_ns_max: random.between(LATENCY_MAX.0, LATENCY_MAX.1),
            tells_extents: random.one_in(2),
            random: SharedCell::new(Random::new(random.word(), "source")),
        }
    }

    fn answer(&self, operation: Operation) -> Completion {
        match operation {
            Operation::Read { offset, mut buffer } => {
                let (start, bytes) = (usize::try_from(offset).unwrap_or(usize::MAX), buffer.len());
                buffer.copy_from_slice(&self.contents[start..start + bytes]);
                Completion::read(buffer)
            }
            Operation::Extents { offset, bytes } if self.tells_extents => {
                Completion::extents(self.extents(ByteRange { offset, bytes }))
            }
            Operation::Flush => Completion::complete(),
            other => {
                let error = BlockError::new(BlockErrorKind::Unsupported, other.name());
                Completion::refused(other, error)
            }
        }
    }

    /// The first few extents of a range.
    fn extents(&self, range: ByteRange) -> Vec<Extent> {
        let block_bytes = self.block_bytes as u64;
        let mut extents: Vec<Extent> = Vec::new();
        for offset in (range.offset..range.end()).step_by(self.block_bytes) {
            let start = usize::try_from(offset).unwrap_or(usize::MAX);
            let is_zero = self.contents[start..start + self.block_bytes].iter().all(|byte| *byte == 0);
            let state = if is_zero { ExtentState::Zero } else { ExtentState::Data };
            let is_full = extents.len() == EXTENTS_MAX;
            match extents.last_mut() {
                Some(last) if last.state == state => last.range.bytes += block_bytes,
                _ if is_full => break,
                _ => extents.push(Extent { range: ByteRange { offset, bytes: block_bytes }, state }),
            }
        }
        extents
    }
}

impl Backend for StampedDisk {
    fn properties(&self) -> Properties {
        Properties {
            block_bytes: u32::try_from(self.block_bytes).unwrap_or(u32::MAX),
            blocks: (self.contents.len() / self.block_bytes) as u64,
            read_only: true,
            thin: None,
            volatile_cache: false,
        }
    }

    fn submit(&self, operation: Operation) -> Pending {
        if let Err(error) = self.properties().check(&operation) {
            return Pending::ready(Completion::refused(operation, error));
        }
        let latency = Duration::from_nanos(self.random.lock().between(1, self.latency_ns_max));
        let done = self.runtime.sleep_until(self.runtime.now() + latency);
        let completion = self.answer(operation);
        let (completer, pending) = Pending::channel();
        self.runtime.spawn(Box::pin(async move {
            done.await;
            completer.complete(completion);
        }));
        pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;

    #[test]
    fn a_source_says_where_it_holds_zeroes_a_few_extents_at_a_time() {
        let (data, zero) = (Stamp::anywhere(0, 1), Stamp::ZERO);
        let runtime = Runtime::new(Clock::default(), 1);
        let stamps = [data, data, zero, data, zero, zero];
        let disk = StampedDisk::new(&stamps, 512, runtime, &mut Random::new(1, "test"));
        let extents = disk.extents(ByteRange { offset: 512, bytes: 5 * 512 });
        let found: Vec<_> =
            extents.iter().map(|extent| (extent.range.offset / 512, extent.range.bytes / 512)).collect();
        assert_eq!(found, [(1, 1), (2, 1), (3, 1)]);
        let states: Vec<_> = extents.iter().map(|extent| extent.state).collect();
        assert_eq!(states, [ExtentState::Data, ExtentState::Zero, ExtentState::Data]);
    }
}
