//! What is known of a logical unit.

use nexus::initiator::UnitView;
use pdu::Lun;
use scsi::client::{BlockLimits, BlockProvisioning, Capacity, Designator, ModeParameters, StandardInquiry};

/// A logical unit as it described itself when it was opened.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unit {
    /// Its number at the target.
    pub lun: Lun,
    /// Vendor, product, revision.
    pub inquiry: StandardInquiry,
    /// Who it is, whatever path leads to it (VPD page 83h): `naa.…`, `eui.…`.
    pub designator: Option<Designator>,
    /// Blocks and their length.
    pub capacity: Capacity,
    /// READ CAPACITY (16) was answered: commands with 64-bit addresses are known there.
    pub long_addresses: bool,
    /// How much one command may ask for (VPD page B0h).
    pub limits: BlockLimits,
    /// What unmapping does (VPD page B2h).
    pub provisioning: BlockProvisioning,
    /// Write cache, write protection, force unit access.
    pub mode: ModeParameters,
}

impl Unit {
    /// Length of a logical block.
    #[must_use]
    pub fn block_bytes(&self) -> u32 {
        self.capacity.block_bytes
    }

    /// The capacity in bytes.
    #[must_use]
    pub fn capacity_bytes(&self) -> u64 {
        self.capacity.blocks.saturating_mul(u64::from(self.capacity.block_bytes))
    }

    /// Unmapped blocks are known to read as zeroes (LBPRZ).
    #[must_use]
    pub fn unmapped_reads_zero(&self) -> bool {
        self.capacity.unmapped_reads_zero || self.provisioning.reads_zero
    }

    /// The transfer length that the unit likes best, or else the longest it takes, in bytes.
    #[must_use]
    pub fn transfer_bytes_optimal(&self) -> Option<u64> {
        let blocks = self.limits.transfer_blocks_optimal.or(self.limits.transfer_blocks_max)?;
        Some(u64::from(blocks) * u64::from(self.block_bytes()))
    }

    /// What a path must show to carry its I/O.
    pub(crate) fn view(&self) -> UnitView {
        UnitView {
            designator: self.designator.clone(),
            blocks: self.capacity.blocks,
            block_bytes: self.capacity.block_bytes,
            access: None,
            reserved: false,
        }
    }
}
