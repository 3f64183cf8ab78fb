//! The number of blocks and their length (SBC-3 §5.15, §5.16).

use super::{u32_at, u64_at};

/// The answer to READ CAPACITY.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity {
    /// Number of logical blocks.
    pub blocks: u64,
    /// Length of a logical block.
    pub block_bytes: u32,
    /// Unmapped blocks read as zeroes, and the unit supports unmapping (LBPME and LBPRZ).
    pub unmapped_reads_zero: bool,
}

impl Capacity {
    /// Parameter data of READ CAPACITY (16).
    #[must_use]
    pub fn parse_16(bytes: &[u8]) -> Option<Self> {
        const LBPME_LBPRZ: u8 = 0xc0;
        let flags = bytes.get(14).copied().unwrap_or(0);
        Some(Self {
            blocks: u64_at(bytes, 0)?.checked_add(1)?,
            block_bytes: u32_at(bytes, 8)?,
            unmapped_reads_zero: flags & LBPME_LBPRZ == LBPME_LBPRZ,
        })
    }

    /// Parameter data of READ CAPACITY (10); `None` also if the capacity does not fit its field.
    #[must_use]
    pub fn parse_10(bytes: &[u8]) -> Option<Self> {
        let last = u32_at(bytes, 0).filter(|last| *last != u32::MAX)?;
        let block_bytes = u32_at(bytes, 4)?;
        Some(Self { blocks: u64::from(last) + 1, block_bytes, unmapped_reads_zero: false })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_address_is_one_less_than_the_capacity() {
        let bytes = [0, 0, 0, 7, 0, 0, 2, 0];
        let expected = Capacity { blocks: 8, block_bytes: 512, unmapped_reads_zero: false };
        assert_eq!(Capacity::parse_10(&bytes), Some(expected));
    }

    #[test]
    fn a_capacity_beyond_the_short_form_is_not_believed() {
        assert_eq!(Capacity::parse_10(&[0xff; 8]), None);
        assert_eq!(Capacity::parse_16(&[0xff; 32]), None);
    }
}
