//! A volatile cache: the blocks that a crash may take back, and what it leaves of them.

use std::collections::BTreeMap;

/// The bytes of a block.
pub(super) type Block = Box<[u8]>;

/// The blocks that have not reached the medium.
#[derive(Default)]
pub(super) struct Cache {
    /// Changes of blocks so far: the time of this cache.
    changes: u64,
    blocks: BTreeMap<usize, Cached>,
}

struct Cached {
    /// Its value on the medium.
    medium: Block,
    /// A time at which the disk held that value.
    medium_at: u64,
    /// The time of its last change.
    changed_at: u64,
}

/// The blocks to be written when a flush was submitted. It promises nothing about later changes.
pub(super) struct Flush {
    submitted_at: u64,
    blocks: BTreeMap<usize, Block>,
}

impl Cache {
    /// A block changes, and its new value stays in the cache. The old one is on the medium if the block is not cached.
    pub(super) fn keep(&mut self, block: usize, old: &[u8]) {
        let before = self.changes;
        self.changes += 1;
        let cached = self.blocks.entry(block);
        let cached =
            cached.or_insert_with(|| Cached { medium: old.into(), medium_at: before, changed_at: before });
        cached.changed_at = self.changes;
    }

    /// A block changes, and its new value reaches the medium.
    pub(super) fn write_through(&mut self, block: usize) {
        self.changes += 1;
        self.blocks.remove(&block);
    }

    /// A flush is submitted; `current` tells the value of a block.
    pub(super) fn submit_flush<'a>(&self, current: impl Fn(usize) -> &'a [u8]) -> Flush {
        let blocks = self.blocks.keys().map(|block| (*block, current(*block).into())).collect();
        Flush { submitted_at: self.changes, blocks }
    }

    /// A flush ends: the values that it found are on the medium.
    pub(super) fn end_flush(&mut self, flush: Flush) {
        let Flush { submitted_at, blocks } = flush;
        for (block, value) in blocks {
            let Some(cached) = self.blocks.get_mut(&block).filter(|cached| cached.medium_at < submitted_at)
            else {
                continue;
            };
            if cached.changed_at <= submitted_at {
                self.blocks.remove(&block);
            } else {
                (cached.medium, cached.medium_at) = (value, submitted_at);
            }
        }
    }

    /// Empties the cache: the blocks, each with its value on the medium.
    pub(super) fn take(&mut self) -> impl Iterator<Item = (usize, Block)> + use<> {
        std::mem::take(&mut self.blocks).into_iter().map(|(block, cached)| (block, cached.medium))
    }
}
