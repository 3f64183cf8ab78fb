//! One thing that a host wants of the disk.

use super::mismatch::Mismatch;
use crate::checker::{Access, Stamp};
use pdu::TaskAttribute;
use std::ops::Range;

/// What is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Read,
    Write {
        fua: bool,
    },
    /// Zeroes; the client writes them by WRITE SAME.
    WriteZeroes {
        /// The blocks may be unmapped instead.
        may_unmap: bool,
    },
    CompareAndWrite {
        /// What the block is believed to hold.
        expected: Stamp,
    },
    Flush,
    TestUnitReady,
}

impl Kind {
    /// Whether blocks may read differently afterwards.
    pub fn changes_data(self) -> bool {
        self.access() == Access::Write && self != Self::Flush
    }

    /// What a reservation must allow.
    pub fn access(self) -> Access {
        match self {
            Self::Read => Access::Read,
            Self::TestUnitReady => Access::None,
            _ => Access::Write,
        }
    }
}

/// One request of a host's workload.
#[derive(Debug)]
pub(super) struct Operation {
    pub kind: Kind,
    pub lba: u64,
    /// Blocks that it reads or writes.
    pub blocks: u32,
    /// Its lengths, if the transfer is not as long as the CDB asks. It is raw then.
    pub mismatch: Option<Mismatch>,
    /// What its blocks hold afterwards.
    pub stamp: Stamp,
    pub attribute: TaskAttribute,
    /// A READ or WRITE that the client is given as a command that it does not know, which it keeps in no order.
    pub raw: bool,
    pub number: u32,
}

impl Operation {
    pub fn range(&self) -> Range<u64> {
        self.lba..self.lba + u64::from(self.blocks)
    }

    /// Whether it is a WRITE of a part of a block, which a device refuses.
    pub fn is_refused(&self, block_bytes: usize) -> bool {
        let splits_block = |mismatch: Mismatch| mismatch.splits_block(block_bytes);
        matches!(self.kind, Kind::Write { .. }) && self.mismatch.is_some_and(splits_block)
    }

    /// The length of its transfer.
    pub fn transfer_bytes(&self, block_bytes: usize) -> usize {
        self.mismatch.map_or(self.blocks as usize * block_bytes, |mismatch| mismatch.transfer_bytes)
    }

    /// Blocks that its CDB names.
    pub fn cdb_blocks(&self) -> u32 {
        self.mismatch.map_or(self.blocks, |mismatch| mismatch.cdb_blocks)
    }
}

impl std::fmt::Display for Operation {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Range { start, end } = self.range();
        write!(formatter, "{:?} {start}..{end}, {}", self.kind, self.stamp)?;
        self.mismatch.map_or(Ok(()), |mismatch| write!(formatter, ", {mismatch:?}"))
    }
}
