//! The limits of one command and the provisioning of blocks (VPD pages B0h and B2h, SBC-3 §6.6.4, §6.6.6).

use super::{u16_at, u32_at, u64_at};

/// Page B0h. A field of zero means that the device reports no limit, here `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockLimits {
    /// The most blocks of one COMPARE AND WRITE; zero: the device lacks the command.
    pub compare_and_write_blocks_max: u8,
    /// The most blocks of one READ, WRITE or VERIFY.
    pub transfer_blocks_max: Option<u32>,
    /// The number of blocks above which one transfer is slower.
    pub transfer_blocks_optimal: Option<u32>,
    /// The most blocks of one UNMAP; `None`: the device lacks the command, if the page is this long.
    pub unmap_blocks_max: Option<u32>,
    /// The number of blocks that are allocated together.
    pub unmap_granularity_blocks: Option<u32>,
    /// The most blocks of one WRITE SAME.
    pub write_same_blocks_max: Option<u64>,
}

impl BlockLimits {
    /// Parses the whole page with its header. Missing bytes count as zeroes.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let page = vpd_page(bytes, super::page::BLOCK_LIMITS)?;
        let limit = |at| u32_at(page, at).filter(|limit| *limit != 0);
        Some(Self {
            compare_and_write_blocks_max: page.get(5).copied().unwrap_or(0),
            transfer_blocks_max: limit(8),
            transfer_blocks_optimal: limit(12),
            unmap_blocks_max: limit(20),
            unmap_granularity_blocks: limit(28),
            write_same_blocks_max: u64_at(page, 36).filter(|limit| *limit != 0),
        })
    }
}

/// The logical block provisioning of a unit (VPD page B2h, SBC-3 §6.6.6).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockProvisioning {
    /// UNMAP is supported (LBPU).
    pub unmap: bool,
    /// WRITE SAME (16) understands its UNMAP bit (LBPWS).
    pub write_same_unmaps: bool,
    /// Unmapped blocks read as zeroes (LBPRZ).
    pub reads_zero: bool,
}

impl BlockProvisioning {
    /// Parses the whole page with its header.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        const LBPU: u8 = 0x80;
        const LBPWS: u8 = 0x40;
        /// Three bits in later standards; xx1b is "zeroes" in all of them.
        const LBPRZ_ZEROES: u8 = 0x04;
        let flags = *vpd_page(bytes, super::page::LOGICAL_BLOCK_PROVISIONING)?.get(5)?;
        Some(Self {
            unmap: flags & LBPU != 0,
            write_same_unmaps: flags & LBPWS != 0,
            reads_zero: flags & LBPRZ_ZEROES != 0,
        })
    }
}

/// The part of a VPD page that its PAGE LENGTH and the bytes at hand allow; `None` if it is another page.
pub(super) fn vpd_page(bytes: &[u8], code: u8) -> Option<&[u8]> {
    const HEADER_BYTES: usize = 4;
    if *bytes.get(1)? != code {
        return None;
    }
    let bytes_told = HEADER_BYTES + usize::from(u16_at(bytes, 2)?);
    Some(&bytes[..bytes_told.min(bytes.len())])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_of_zero_is_no_limit() {
        let mut page = [0; 64];
        page[1] = 0xb0;
        page[3] = 60;
        page[11] = 9;
        let limits = BlockLimits::parse(&page).unwrap();
        assert_eq!((limits.transfer_blocks_max, limits.transfer_blocks_optimal), (Some(9), None));
    }

    #[test]
    fn another_page_is_not_believed() {
        assert_eq!(BlockLimits::parse(&[0, 0xb2, 0, 4, 0, 0xe4, 0, 0]), None);
        let provisioning = BlockProvisioning::parse(&[0, 0xb2, 0, 4, 0, 0xe4, 0, 0]).unwrap();
        assert!(provisioning.unmap && provisioning.write_same_unmaps && provisioning.reads_zero);
    }
}
