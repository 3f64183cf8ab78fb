//! The description of a logical unit.

use crate::path_acceptance::UnitView;
use pdu::Lun;
use scsi::client::{BlockLimits, BlockProvisioning, Capacity, Designator, ModeParameters, StandardInquiry};

/// A logical unit's description of itself when it was opened.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unit {
    /// Its number at the target.
    pub lun: Lun,
    /// Vendor, product, revision.
    pub inquiry: StandardInquiry,
    /// Its identity, the same over every path (VPD page 83h): `naa.…`, `eui.…`.
    pub designator: Option<Designator>,
    /// The number of blocks and their length.
    pub capacity: Capacity,
    /// The unit answered READ CAPACITY (16), so it knows commands with 64-bit addresses.
    pub long_addresses: bool,
    /// The limits of one command (VPD page B0h).
    pub limits: BlockLimits,
    /// The effects of unmapping (VPD page B2h).
    pub provisioning: BlockProvisioning,
    /// Write cache, write protection, force unit access.
    pub mode: ModeParameters,
}

impl Unit {
    /// The length of a logical block.
    #[must_use]
    pub fn block_bytes(&self) -> u32 {
        self.capacity.block_bytes
    }

    /// The capacity in bytes.
    #[must_use]
    pub fn capacity_bytes(&self) -> u64 {
        self.capacity.blocks.saturating_mul(u64::from(self.capacity.block_bytes))
    }

    /// Unmapped blocks read as zeroes (LBPRZ).
    #[must_use]
    pub fn unmapped_reads_zero(&self) -> bool {
        self.capacity.unmapped_reads_zero || self.provisioning.reads_zero
    }

    /// The properties that a path must show to carry the unit's I/O.
    pub(crate) fn view(&self) -> UnitView {
        UnitView {
            designator: self.designator.clone(),
            blocks: self.capacity.blocks,
            block_bytes: self.capacity.block_bytes,
            access: None,
            reserved: None,
        }
    }
}
