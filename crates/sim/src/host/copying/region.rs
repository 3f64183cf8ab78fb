//! A part of a logical unit, as a device by itself.

use crate::checker::Stamp;
use crate::host::runtime::Runtime;
use block::{Backend, Completion, Done, Operation, Payload, Pending, Properties, Slab};
use client::{Host, Lun};

/// Memory for payloads that are spoilt.
const MEMORY_BYTES: usize = 16 << 20;

/// So many blocks of a unit, from one on.
pub(super) struct Region {
    lun: Lun,
    runtime: Runtime,
    first: u64,
    blocks: u64,
    spoilt: Option<Spoilt>,
}

/// A block that never arrives as it was sent.
struct Spoilt {
    block: u64,
    block_bytes: usize,
    stamp: Stamp,
    slab: Slab,
}

impl Region {
    pub fn new(lun: Lun, runtime: Runtime, first: u64, blocks: u64) -> Self {
        Self { lun, runtime, first, blocks, spoilt: None }
    }

    /// From now on, data that is written to `block` of this region is replaced.
    pub fn spoil(&mut self, block: u64, stamp: Stamp) {
        let block_bytes = self.lun.unit().block_bytes() as usize;
        self.spoilt = Some(Spoilt { block, block_bytes, stamp, slab: Slab::new(MEMORY_BYTES) });
    }

    /// The same extents, counted from the beginning of the region.
    fn extents(&self, offset: u64, bytes: u64) -> Pending {
        let start = self.start();
        let answer = self.lun.submit(Operation::Extents { offset: start + offset, bytes });
        let (completer, pending) = Pending::channel();
        self.runtime.spawn(Box::pin(async move {
            let mut completion = answer.await;
            if let Ok(Done::Extents(extents)) = &mut completion.result {
                extents.iter_mut().for_each(|extent| extent.range.offset -= start);
            }
            completer.complete(completion);
        }));
        pending
    }

    /// Bytes of the unit before it.
    fn start(&self) -> u64 {
        self.first * u64::from(self.lun.unit().block_bytes())
    }
}

impl Spoilt {
    fn apply(&self, offset: u64, payload: Payload) -> Payload {
        let at = (self.block * self.block_bytes as u64).checked_sub(offset).map(usize::try_from);
        let Some(Ok(at)) = at.filter(|at| matches!(at, Ok(at) if *at < payload.len())) else {
            return payload;
        };
        let Some(mut buffer) = self.slab.allocate(payload.len()) else { return payload };
        buffer.copy_from_slice(&payload);
        self.stamp.fill_block(&mut buffer[at..at + self.block_bytes], self.block);
        buffer.share()
    }
}

impl Backend for Region {
    fn properties(&self) -> Properties {
        Properties { blocks: self.blocks, ..self.lun.properties() }
    }

    fn submit(&self, operation: Operation) -> Pending {
        if let Err(error) = self.properties().check(&operation) {
            return Pending::ready(Completion::refused(operation, error));
        }
        let start = self.start();
        let moved = match operation {
            Operation::Read { offset, buffer } => Operation::Read { offset: start + offset, buffer },
            Operation::Write { offset, payload, fua } => {
                let payload = match &self.spoilt {
                    Some(spoilt) => spoilt.apply(offset, payload),
                    None => payload,
                };
                Operation::Write { offset: start + offset, payload, fua }
            }
            Operation::WriteZeroes { offset, bytes, may_unmap } => {
                Operation::WriteZeroes { offset: start + offset, bytes, may_unmap }
            }
            Operation::Unmap { offset, bytes } => Operation::Unmap { offset: start + offset, bytes },
            Operation::Extents { offset, bytes } => return self.extents(offset, bytes),
            whole @ (Operation::Flush | Operation::Space) => whole,
        };
        self.lun.submit(moved)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK_BYTES: usize = 4096;

    #[test]
    fn a_spoilt_block_is_replaced_in_every_write_that_reaches_it_and_in_no_other() {
        let (sent, found) = (Stamp::anywhere(0, 1), Stamp::anywhere(0, 2));
        let spoilt =
            Spoilt { block: 5, block_bytes: BLOCK_BYTES, stamp: found, slab: Slab::new(MEMORY_BYTES) };
        let arrived = |first: u64, blocks: usize| -> Vec<Stamp> {
            let mut buffer = Slab::new(MEMORY_BYTES).allocate(blocks * BLOCK_BYTES).unwrap();
            sent.fill(&mut buffer, first, BLOCK_BYTES);
            let payload = spoilt.apply(first * BLOCK_BYTES as u64, buffer.share());
            payload.chunks(BLOCK_BYTES).map(|block| Stamp::read(block, first).unwrap()).collect()
        };
        assert_eq!(arrived(4, 3), [sent, found, sent]);
        assert_eq!(arrived(5, 1), [found]);
        assert_eq!(arrived(6, 2), [sent, sent]);
        assert_eq!(arrived(3, 2), [sent, sent]);
    }
}
