//! Logical blocks: their addresses, counts and length (SBC-3).

use core::fmt;

/// A logical block address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lba(pub u64);

/// A count of logical blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Blocks(pub u64);

impl fmt::Display for Lba {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

impl fmt::Display for Blocks {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// Consecutive blocks of a disk. The extents in a [`Step`](crate::Step) lie within the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Extent {
    /// The first block.
    pub lba: Lba,
    /// The number of blocks; may be zero.
    pub blocks: Blocks,
}

impl Extent {
    /// `blocks` blocks from `lba` on.
    #[must_use]
    pub const fn new(lba: u64, blocks: u64) -> Self {
        Self { lba: Lba(lba), blocks: Blocks(blocks) }
    }

    /// The address after the last block.
    #[must_use]
    pub const fn end(self) -> Lba {
        Lba(self.lba.0.saturating_add(self.blocks.0))
    }

    /// Whether there are no blocks.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.blocks.0 == 0
    }

    /// Whether they share a block. An empty extent overlaps nothing.
    #[must_use]
    pub fn overlaps(self, other: Self) -> bool {
        !self.is_empty() && !other.is_empty() && self.lba < other.end() && other.lba < self.end()
    }
}

/// The length of a logical block: a power of two, 512 bytes or more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "the names are the lengths in bytes")]
pub enum BlockLength {
    B512,
    B4096,
}

impl BlockLength {
    /// The length of `bytes`, if it is supported.
    #[must_use]
    pub const fn from_bytes(bytes: u32) -> Option<Self> {
        match bytes {
            512 => Some(Self::B512),
            4096 => Some(Self::B4096),
            _ => None,
        }
    }

    /// The length in bytes.
    #[must_use]
    pub const fn bytes(self) -> u32 {
        match self {
            Self::B512 => 512,
            Self::B4096 => 4096,
        }
    }

    /// The length of `blocks` blocks in bytes.
    #[must_use]
    pub const fn times(self, blocks: Blocks) -> u64 {
        blocks.0.saturating_mul(self.bytes() as u64)
    }
}
