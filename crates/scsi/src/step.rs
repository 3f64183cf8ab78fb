//! The steps that carry out commands.

use crate::{
    AdditionalSense, BlockLength, Blocks, ExtendedCopy, Extent, FieldPointer, GetLbaStatus, ModeSelect,
    ModeSense, Outcome, PersistentReserveIn, PersistentReserveOut, ProvisioningLog, ReceiveCopyStatus,
    ReportLuns, RequestSense, Sense,
};

/// The work of a command. Every extent lies within the disk and its limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// None: this is the answer.
    Done(Outcome),
    /// Read blocks of the disk to the Data-In.
    Read {
        /// The blocks; may be empty.
        extent: Extent,
        /// Force unit access: flush a volatile cache's data of these blocks first.
        fua: bool,
    },
    /// Write the Data-Out to blocks of the disk.
    Write {
        /// The blocks; may be empty.
        extent: Extent,
        /// Force unit access: make the data durable before the status is sent.
        fua: bool,
    },
    /// Read blocks of the disk, and compare them if requested; send nothing to the initiator.
    Verify {
        /// The blocks; may be empty.
        extent: Extent,
        /// The data to compare with.
        compare: Compare,
    },
    /// Compare the first half of the Data-Out with the blocks; if they are equal, write the second half to them. No
    /// other command may access the blocks in between (SBC-3).
    CompareAndWrite {
        /// The blocks; may be empty.
        extent: Extent,
        /// Force unit access for the write.
        fua: bool,
    },
    /// Write the Data-Out to blocks of the disk, make it durable, and verify it.
    WriteAndVerify {
        /// The blocks; may be empty.
        extent: Extent,
        /// The data to compare with: the medium by itself, or the Data-Out.
        compare: Compare,
    },
    /// Replace blocks of the disk by their OR with the Data-Out. No other command may access them in between (SBC-3).
    OrWrite {
        /// The blocks; may be empty.
        extent: Extent,
        /// Force unit access for the write.
        fua: bool,
    },
    /// Read blocks of the disk into a cache, if there is one; end with [`Outcome::ConditionMet`].
    PreFetch {
        /// The blocks to read; may be empty.
        extent: Extent,
        /// Whether the status is sent at once.
        immediate: bool,
    },
    /// Write one block to all blocks of the extent.
    WriteSame {
        /// The blocks; may be empty.
        extent: Extent,
        /// The contents of every block.
        pattern: Pattern,
        /// Whether the extent may be deallocated instead, if the block is all zeroes and deallocated blocks read as
        /// zeroes; otherwise it must be written (SBC-3).
        unmap: bool,
    },
    /// Make a volatile cache's data of these blocks durable.
    Flush {
        /// The blocks to make durable; may be empty.
        extent: Extent,
        /// Whether the status is sent at once.
        immediate: bool,
    },
    /// Deallocate these blocks, which may overlap; their order is irrelevant.
    Unmap(Vec<Extent>),
    /// Collect `bytes` of Data-Out as a parameter list, then call [`Disk::parameter`](crate::Disk::parameter).
    Parameter {
        /// Length of the parameter list, at most 65535.
        bytes: u32,
    },
    /// Answered by [`GetLbaStatus::respond`].
    GetLbaStatus(GetLbaStatus),
    /// Answered by [`ReportLuns::respond`].
    ReportLuns(ReportLuns),
    /// Answered by [`RequestSense::respond`].
    RequestSense(RequestSense),
    /// Answered by [`PersistentReserveIn::respond`].
    PersistentReserveIn(PersistentReserveIn),
    /// Change the unit's persistent reservations.
    PersistentReserveOut(PersistentReserveOut),
    /// Reserve the unit for the initiator's session (RESERVE).
    Reserve,
    /// End that reservation (RELEASE).
    Release,
    /// Answered by [`ProvisioningLog::respond`].
    ProvisioningLog(ProvisioningLog),
    /// Answered by [`ModeSense::respond`].
    ModeSense(ModeSense),
    /// Change mode parameters for all initiators, and tell the others (MODE PARAMETERS CHANGED) if any changes. If the
    /// write cache is turned off, flush it before the status is sent.
    ModeSelect(ModeSelect),
    /// Load the medium, unless its removal is prevented. Tell the other initiators that it may have changed.
    Load,
    /// Eject the medium, unless its removal is prevented.
    Eject {
        /// Whether to flush a volatile cache first.
        flush: bool,
    },
    /// Prevent or allow the removal of the medium, for this initiator.
    PreventRemoval(bool),
    /// Copy blocks between units that the initiator may use.
    ExtendedCopy(ExtendedCopy),
    /// Answered by [`ReceiveCopyStatus::respond`].
    ReceiveCopyStatus(ReceiveCopyStatus),
}

/// The data that VERIFY compares the blocks with (SBC-3, BYTCHK).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Compare {
    /// None: the blocks only need to be readable. There is no Data-Out.
    Medium,
    /// The Data-Out, block by block.
    DataOut,
    /// The one block of the Data-Out, for every block.
    OneBlock,
}

/// The block that WRITE SAME writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Pattern {
    /// The one block of the Data-Out.
    DataOut,
    /// Zeroes; there is no Data-Out (NDOB).
    Zeroes,
}

impl Step {
    /// The bytes of Data-Out that the CDB calls for. The difference from the expected data transfer length is the
    /// residual count.
    #[must_use]
    pub fn data_out_bytes(&self, block: BlockLength) -> u64 {
        match self {
            Self::Write { extent, .. }
            | Self::WriteAndVerify { extent, .. }
            | Self::OrWrite { extent, .. }
            | Self::Verify { extent, compare: Compare::DataOut } => block.times(extent.blocks),
            Self::CompareAndWrite { extent, .. } => block.times(extent.blocks).saturating_mul(2),
            Self::Verify { extent, compare: Compare::OneBlock } if !extent.is_empty() => block.bytes().into(),
            Self::WriteSame { extent, pattern: Pattern::DataOut, .. } if !extent.is_empty() => {
                block.bytes().into()
            }
            Self::Parameter { bytes } => (*bytes).into(),
            _ => 0,
        }
    }

    /// The step for an initiator that offers `expected_bytes` of Data-Out, which differ from the CDB's. The residual
    /// count remains the difference from this step's own [`Self::data_out_bytes`].
    ///
    /// WRITE and WRITE AND VERIFY write the blocks that they get. A partial block, or a comparison without all of its
    /// data, is refused with INVALID FIELD IN COMMAND INFORMATION UNIT. WRITE SAME and COMPARE AND WRITE with too much
    /// data are refused too: the initiator's block length or count differs from ours, and a guess would destroy data. A
    /// short parameter list is left to [`Disk::parameter`](crate::Disk::parameter).
    #[must_use]
    pub fn with_data_out(self, expected_bytes: u64, block: BlockLength) -> Self {
        let needed_bytes = self.data_out_bytes(block);
        let short = expected_bytes < needed_bytes;
        let exact = expected_bytes == needed_bytes || needed_bytes == 0;
        match self {
            Self::Write { extent, fua } if short && expected_bytes.is_multiple_of(block.bytes().into()) => {
                let blocks = Blocks(expected_bytes / u64::from(block.bytes()));
                Self::Write { extent: Extent { blocks, ..extent }, fua }
            }
            Self::WriteAndVerify { extent, compare }
                if short && expected_bytes.is_multiple_of(block.bytes().into()) =>
            {
                let blocks = Blocks(expected_bytes / u64::from(block.bytes()));
                Self::WriteAndVerify { extent: Extent { blocks, ..extent }, compare }
            }
            // 256 blocks, truncated to the one byte of their field, look like this.
            Self::CompareAndWrite { extent, .. } if extent.is_empty() && expected_bytes > 0 => {
                Self::Done(Outcome::CheckCondition(Sense::invalid_field_in_cdb(FieldPointer::cdb(13))))
            }
            Self::Write { .. } | Self::WriteAndVerify { .. } | Self::OrWrite { .. } | Self::Verify { .. }
                if short =>
            {
                Self::mismatched()
            }
            Self::WriteSame { .. } | Self::CompareAndWrite { .. } if !exact => Self::mismatched(),
            step => step,
        }
    }

    const fn mismatched() -> Self {
        let additional = AdditionalSense::INVALID_FIELD_IN_COMMAND_INFORMATION_UNIT;
        Self::Done(Outcome::CheckCondition(Sense::illegal_request(additional)))
    }

    /// The bytes of Data-In that the CDB calls for, as far as they are known. Parameter data that is yet to be made
    /// (LBA status, LUNs, sense) counts once it exists, as [`Step::Done`].
    #[must_use]
    pub fn data_in_bytes(&self, block: BlockLength) -> u64 {
        match self {
            Self::Read { extent, .. } => block.times(extent.blocks),
            Self::Done(Outcome::Good(data)) => data.len() as u64,
            _ => 0,
        }
    }
}
