//! A logical unit of the disk type, and its dispatch of commands.

use crate::cdb::Cdb;
use crate::{
    AdditionalSense, BlockLength, Blocks, Extent, FieldPointer, Identity, Lba, Outcome, Sense, SenseKey,
    Step, TargetPort, Threshold, operation_code,
};

/// A disk as one target port shows it: everything that the answers to commands depend on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disk {
    /// The names by which initiators know the disk, over every port.
    pub identity: Identity,
    /// The port of this view, if the disk reports it.
    pub target_port: Option<TargetPort>,
    /// The other ports of the disk, for REPORT TARGET PORT GROUPS and VPD page 88h.
    pub other_ports: Vec<TargetPort>,
    /// Length of a logical block.
    pub block: BlockLength,
    /// The power of two of logical blocks in a physical one (LOGICAL BLOCKS PER PHYSICAL BLOCK EXPONENT): 3 for
    /// 512-byte blocks on 4096-byte sectors. Logical block 0 starts a physical one.
    pub physical_exponent: PhysicalExponent,
    /// The number of logical blocks.
    pub blocks: Blocks,
    /// The medium can be ejected and loaded.
    pub removable: bool,
    /// Every write is refused with WRITE PROTECTED.
    pub read_only: bool,
    /// A volatile write cache holds written data until it is flushed (WCE).
    pub write_cache: bool,
    /// Whether blocks can be deallocated.
    pub provisioning: Provisioning,
    /// The limits of one command.
    pub limits: Limits,
}

/// LOGICAL BLOCKS PER PHYSICAL BLOCK EXPONENT, whose field has four bits (SBC-3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct PhysicalExponent(u8);

impl PhysicalExponent {
    /// Physical blocks of `physical_bytes`, a power of two from the length of the logical block to 2^15 times that.
    #[must_use]
    pub fn from_bytes(physical_bytes: u32, logical: BlockLength) -> Option<Self> {
        const EXPONENT_MAX: u32 = 15;
        if !physical_bytes.is_power_of_two() {
            return None;
        }
        let exponent = physical_bytes.trailing_zeros().checked_sub(logical.bytes().trailing_zeros())?;
        u8::try_from(exponent).ok().filter(|_| exponent <= EXPONENT_MAX).map(Self)
    }

    pub(crate) const fn get(self) -> u8 {
        self.0
    }
}

/// Logical block provisioning (SBC-3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Provisioning {
    /// Every block is always allocated; there is no UNMAP.
    Full,
    /// Blocks can be deallocated.
    Thin {
        /// Deallocated blocks read as zeroes (LBPRZ).
        zeroes: bool,
        /// The number of blocks that are allocated together (OPTIMAL UNMAP GRANULARITY).
        granularity: Blocks,
        /// The threshold at which initiators are warned of a shortage of space, if there is one.
        threshold: Option<Threshold>,
    },
}

/// The limits of one command (VPD page B0h). More is refused with INVALID FIELD IN CDB.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Limits {
    /// READ, WRITE and VERIFY: bounds the memory of one command. At least one block.
    pub transfer_bytes_max: u32,
    /// COMPARE AND WRITE: bounds the time for which the blocks are locked.
    pub compare_and_write_blocks_max: u8,
    /// WRITE SAME: bounds the time of one command.
    pub write_same_blocks_max: Blocks,
    /// WRITE SAME: zero blocks mean all to the end of the disk, within the limit above (WSNZ is zero). Otherwise it is
    /// refused, because a forgotten or truncated count must not cost a disk.
    pub write_same_to_end: bool,
    /// All descriptors of one UNMAP together.
    pub unmap_blocks_max: u32,
    /// Descriptors of one UNMAP.
    pub unmap_descriptors_max: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            // Twice the largest burst of RFC 7143 §13.13: enough to fill any pipe with few commands.
            transfer_bytes_max: 32 << 20,
            // The field in the CDB has one byte.
            compare_and_write_blocks_max: u8::MAX,
            // 2 GiB of 512-byte blocks: seconds, not minutes, even if each block must be written.
            write_same_blocks_max: Blocks(1 << 22),
            write_same_to_end: false,
            // No limit of its own: deallocation only changes metadata.
            unmap_blocks_max: u32::MAX,
            // A parameter list of 4 KiB and a header.
            unmap_descriptors_max: 256,
        }
    }
}

impl Disk {
    /// Dispatches a command. Every sequence of bytes gets an answer; bytes beyond the command's own length are padding
    /// and ignored.
    #[must_use]
    pub fn begin(&self, cdb: &[u8]) -> Step {
        let begun =
            operation_code::validate(self, cdb).and_then(|command| (command.begin)(self, &Cdb::new(cdb)));
        begun.unwrap_or_else(|sense| Step::Done(Outcome::CheckCondition(sense)))
    }

    /// Continues a command for which [`Self::begin`] returned [`Step::Parameter`], now that its parameter list has
    /// arrived. A list shorter than announced is answered with PARAMETER LIST LENGTH ERROR.
    #[must_use]
    pub fn parameter(&self, cdb: &[u8], data: &[u8]) -> Step {
        let Step::Parameter { bytes } = self.begin(cdb) else { return self.begin(cdb) };
        let done = operation_code::validate(self, cdb).and_then(|command| {
            let list = data.get(..bytes as usize);
            let list = list.ok_or(Sense::illegal_request(AdditionalSense::PARAMETER_LIST_LENGTH_ERROR))?;
            let parameter = command.parameter.ok_or(Sense::INTERNAL_FAILURE)?;
            parameter(self, &Cdb::new(cdb), list)
        });
        done.unwrap_or_else(|sense| Step::Done(Outcome::CheckCondition(sense)))
    }

    /// The whole disk.
    #[must_use]
    pub const fn extent(&self) -> Extent {
        Extent { lba: Lba(0), blocks: self.blocks }
    }

    /// All blocks from `lba` on.
    pub(crate) const fn extent_from(&self, lba: Lba) -> Extent {
        Extent { lba, blocks: Blocks(self.blocks.0.saturating_sub(lba.0)) }
    }

    /// `blocks` from `lba` on, if they lie on the disk.
    pub(crate) fn extent_at(&self, lba: Lba, blocks: Blocks, field: FieldPointer) -> Result<Extent, Sense> {
        let extent = Extent { lba, blocks };
        match lba.0.checked_add(blocks.0) {
            Some(end) if end <= self.blocks.0 => Ok(extent),
            _ => Err(Sense::illegal_request(AdditionalSense::LOGICAL_BLOCK_ADDRESS_OUT_OF_RANGE).at(field)),
        }
    }

    /// The most blocks of one READ, WRITE or VERIFY.
    pub(crate) const fn transfer_blocks_max(&self) -> u32 {
        self.limits.transfer_bytes_max / self.block.bytes()
    }

    /// All ports, starting with the port of this view.
    pub(crate) fn all_ports(&self) -> impl Iterator<Item = &TargetPort> {
        self.target_port.iter().chain(&self.other_ports)
    }

    /// Whether blocks can be deallocated.
    pub(crate) const fn is_thin(&self) -> bool {
        matches!(self.provisioning, Provisioning::Thin { .. })
    }

    /// The threshold at which initiators are warned of a shortage of space, if there is one.
    #[must_use]
    pub const fn threshold(&self) -> Option<Threshold> {
        match self.provisioning {
            Provisioning::Thin { threshold, .. } => threshold,
            Provisioning::Full => None,
        }
    }

    /// The same disk, seen through each of its other ports.
    pub fn through_other_ports(&self) -> impl Iterator<Item = Self> {
        (0..self.other_ports.len()).map(|index| {
            let mut other = self.clone();
            if let (Some(own), Some(port)) = (&mut other.target_port, other.other_ports.get_mut(index)) {
                std::mem::swap(own, port);
            }
            other
        })
    }

    pub(crate) fn check_writable(&self) -> Result<(), Sense> {
        if self.read_only {
            return Err(Sense::new(SenseKey::DataProtect, AdditionalSense::WRITE_PROTECTED));
        }
        Ok(())
    }
}
