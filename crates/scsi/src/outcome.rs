//! The answer to the initiator at the end of a command.

use crate::{AdditionalSense, Lba, Sense, SenseKey, Status};

/// The end of a command: status, with its parameter data or sense data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// GOOD, with Data-In parameter data that is already truncated to the allocation length. Empty for commands without
    /// such data, and for block data, which the caller moves itself.
    Good(Vec<u8>),
    /// CONDITION MET: PRE-FETCH has all its blocks in a cache.
    ConditionMet,
    /// CHECK CONDITION, with the reason.
    CheckCondition(Sense),
    /// BUSY, TASK SET FULL, RESERVATION CONFLICT or TASK ABORTED: a status without data.
    Refused(Status),
}

impl Outcome {
    /// GOOD without data.
    #[must_use]
    pub const fn good() -> Self {
        Self::Good(Vec::new())
    }

    /// GOOD with `data`, truncated to the allocation length (SPC-4).
    pub(crate) fn parameter_data(mut data: Vec<u8>, allocation_bytes: u32) -> Self {
        data.truncate(allocation_bytes as usize);
        Self::Good(data)
    }

    /// The status byte.
    #[must_use]
    pub const fn status(&self) -> Status {
        match self {
            Self::Good(_) => Status::Good,
            Self::ConditionMet => Status::ConditionMet,
            Self::CheckCondition(_) => Status::CheckCondition,
            Self::Refused(status) => *status,
        }
    }

    /// The sense data, if there is any.
    #[must_use]
    pub const fn sense(&self) -> Option<&Sense> {
        match self {
            Self::CheckCondition(sense) => Some(sense),
            Self::Good(_) | Self::ConditionMet | Self::Refused(_) => None,
        }
    }

    /// RESERVATION CONFLICT: another nexus's reservation excludes the command.
    #[must_use]
    pub const fn reservation_conflict() -> Self {
        Self::Refused(Status::ReservationConflict)
    }

    /// Blocks could not be read; `first` is the first unreadable one (SBC-3).
    #[must_use]
    pub const fn read_failed(first: Lba) -> Self {
        let sense = Sense::new(SenseKey::MediumError, AdditionalSense::UNRECOVERED_READ_ERROR);
        Self::CheckCondition(sense.with_information(first.0))
    }

    /// Blocks could not be written; `first` is the first one that may be unwritten.
    #[must_use]
    pub const fn write_failed(first: Lba) -> Self {
        let sense = Sense::new(SenseKey::MediumError, AdditionalSense::WRITE_ERROR);
        Self::CheckCondition(sense.with_information(first.0))
    }

    /// The backend refuses writes although the disk was not described as read-only.
    #[must_use]
    pub const fn write_protected() -> Self {
        Self::CheckCondition(Sense::new(SenseKey::DataProtect, AdditionalSense::WRITE_PROTECTED))
    }

    /// A thin disk has no space left for these blocks (SBC-3).
    #[must_use]
    pub const fn out_of_space() -> Self {
        let additional = AdditionalSense::SPACE_ALLOCATION_FAILED_WRITE_PROTECT;
        Self::CheckCondition(Sense::new(SenseKey::DataProtect, additional))
    }

    /// VERIFY or COMPARE AND WRITE found a difference; `offset_bytes` is the offset of the first differing byte in the
    /// Data-Out (SBC-3).
    #[must_use]
    pub const fn miscompare(offset_bytes: u64) -> Self {
        let sense = Sense::new(SenseKey::Miscompare, AdditionalSense::MISCOMPARE_DURING_VERIFY_OPERATION);
        Self::CheckCondition(sense.with_information(offset_bytes))
    }

    /// The backend failed in a way that says nothing about the medium.
    #[must_use]
    pub const fn internal_failure() -> Self {
        Self::CheckCondition(Sense::INTERNAL_FAILURE)
    }
}
