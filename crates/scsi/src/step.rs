//! What carries a command out.

use crate::{
    AdditionalSense, BlockLength, Blocks, ExtendedCopy, Extent, FieldPointer, GetLbaStatus, ModeSelect,
    ModeSense, Outcome, PersistentReserveIn, PersistentReserveOut, ProvisioningLog, ReceiveCopyStatus,
    ReportLuns, RequestSense, Sense,
};

/// What to do for a command. Every extent lies within the disk and within its limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Nothing: this is the answer.
    Done(Outcome),
    /// Blocks of the disk go to the Data-In.
    Read {
        /// Which; may be empty.
        extent: Extent,
        /// Force unit access: what a volatile cache holds of them is made durable first.
        fua: bool,
    },
    /// The Data-Out goes to blocks of the disk.
    Write {
        /// Which; may be empty.
        extent: Extent,
        /// Force unit access: durable before the status is sent.
        fua: bool,
    },
    /// Blocks of the disk are read, and compared where asked; nothing goes to the initiator.
    Verify {
        /// Which; may be empty.
        extent: Extent,
        /// With what.
        compare: Compare,
    },
    /// The first half of the Data-Out is compared with the blocks; if all is equal, the second half is
    /// written to them. No other command may touch the blocks in between (SBC-3).
    CompareAndWrite {
        /// Which; may be empty.
        extent: Extent,
        /// Force unit access for the write.
        fua: bool,
    },
    /// The Data-Out goes to blocks of the disk, is made durable there, and is then verified.
    WriteAndVerify {
        /// Which; may be empty.
        extent: Extent,
        /// With what: the medium by itself or the Data-Out.
        compare: Compare,
    },
    /// Blocks of the disk are replaced by themselves OR the Data-Out. No other command may touch them in between
    /// (SBC-3).
    OrWrite {
        /// Which; may be empty.
        extent: Extent,
        /// Force unit access for the write.
        fua: bool,
    },
    /// Blocks of the disk are read so that they are in a cache, where there is one; ends with
    /// [`Outcome::ConditionMet`].
    PreFetch {
        /// Which.
        extent: Extent,
        /// The status does not wait for it.
        immediate: bool,
    },
    /// One block is written to all blocks of the extent.
    WriteSame {
        /// Which; may be empty.
        extent: Extent,
        /// The block.
        pattern: Pattern,
        /// The extent may be deallocated instead, provided that the block is all zeroes and deallocated
        /// blocks read as zeroes; otherwise it must be written (SBC-3).
        unmap: bool,
    },
    /// What a volatile cache holds of these blocks is made durable.
    Flush {
        /// Which.
        extent: Extent,
        /// The status does not wait for it.
        immediate: bool,
    },
    /// These blocks may be deallocated. They may overlap; their order means nothing.
    Unmap(Vec<Extent>),
    /// So many bytes of Data-Out are a parameter list: collect them, then call
    /// [`Disk::parameter`](crate::Disk::parameter).
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
    /// The unit's persistent reservations change.
    PersistentReserveOut(PersistentReserveOut),
    /// The unit is reserved for the initiator's session (RESERVE).
    Reserve,
    /// That reservation ends (RELEASE).
    Release,
    /// Answered by [`ProvisioningLog::respond`].
    ProvisioningLog(ProvisioningLog),
    /// Answered by [`ModeSense::respond`].
    ModeSense(ModeSense),
    /// Mode parameters change, for all initiators; the others are told (MODE PARAMETERS CHANGED) if any does. Where
    /// writing through begins, the cache is flushed before the status is sent.
    ModeSelect(ModeSelect),
    /// The medium is loaded, unless its removal is prevented. Other initiators are told that it may have changed.
    Load,
    /// The medium is ejected, unless its removal is prevented.
    Eject {
        /// What a volatile cache holds is made durable first.
        flush: bool,
    },
    /// This initiator prevents the removal of the medium, or prevents it no more.
    PreventRemoval(bool),
    /// Blocks are copied between units that the initiator may use.
    ExtendedCopy(ExtendedCopy),
    /// Answered by [`ReceiveCopyStatus::respond`].
    ReceiveCopyStatus(ReceiveCopyStatus),
}

/// What VERIFY compares the blocks with (SBC-3, BYTCHK).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Compare {
    /// Nothing: that they can be read is enough. There is no Data-Out.
    Medium,
    /// Each with its own block of the Data-Out.
    DataOut,
    /// Each with the one block of the Data-Out.
    OneBlock,
}

/// What WRITE SAME writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Pattern {
    /// The one block of the Data-Out.
    DataOut,
    /// Zeroes; there is no Data-Out (NDOB).
    Zeroes,
}

impl Step {
    /// How many bytes of Data-Out the command's CDB asks for. The difference to the expected data transfer
    /// length is the residual count.
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

    /// The step for an initiator that offers `expected_bytes` of Data-Out, where that is not what the CDB asks
    /// for. The residual count still tells the difference to this step's own [`Self::data_out_bytes`].
    ///
    /// WRITE and WRITE AND VERIFY write the blocks that they are given. Part of a block, or a comparison without all of
    /// its data, is refused with INVALID FIELD IN COMMAND INFORMATION UNIT; so are WRITE SAME and COMPARE AND WRITE with
    /// more data than theirs, since then the initiator's block length or count is not ours, and guessing would
    /// destroy data. A short parameter list is left to [`Disk::parameter`](crate::Disk::parameter).
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
            // 256 blocks, cut to the one byte of their field, look like this.
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

    /// How many bytes of Data-In the command's CDB asks for, as far as it is known: parameter data that is
    /// still to be made (LBA status, LUNs, sense) counts when it is there, as [`Step::Done`].
    #[must_use]
    pub fn data_in_bytes(&self, block: BlockLength) -> u64 {
        match self {
            Self::Read { extent, .. } => block.times(extent.blocks),
            Self::Done(Outcome::Good(data)) => data.len() as u64,
            _ => 0,
        }
    }
}
