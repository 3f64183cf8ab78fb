//! What is wrong with a PDU that the peer sent.

use crate::opcode::Opcode;
use crate::reject::RejectReason;
use core::fmt;

/// A header, or the fixed part of a data segment, that breaks the standard. The peer is at fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{pdu}: {field} is {found:#x}", pdu = PduName(*.opcode))]
pub struct InvalidPdu {
    /// The six-bit opcode of the offending PDU, assigned or not.
    pub opcode: u8,
    /// Where the fault is.
    pub field: Field,
    /// The value that was found there.
    pub found: u32,
}

/// The fields in which a PDU can be wrong, by the standard's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Field {
    /// Unassigned, or not one that this end may receive.
    Opcode,
    /// A combination of flag bits that must not occur.
    Flags,
    /// Not zero where no AHS may be, or not what arrived.
    TotalAhsLength,
    /// An AHS that does not fit the space it is in, or that must not be there (or must be and is not).
    Ahs,
    /// Not zero where no data may be.
    DataSegmentLength,
    /// Longer than the data segment that holds it.
    SenseLength,
    /// Reserved where a task must be named, or the reverse.
    InitiatorTaskTag,
    /// Reserved where a transfer must be named, or the reverse.
    TargetTransferTag,
    /// One of the reserved task attributes.
    TaskAttribute,
    /// Data is expected in no direction.
    ExpectedDataTransferLength,
    /// An R2T for no data.
    DesiredDataTransferLength,
    /// One of the reserved login stages.
    Stage,
    /// One of the reserved logout reasons.
    LogoutReason,
    /// One of the reserved SNACK types.
    SnackType,
    /// Reserved, or not unique to an R-Data SNACK.
    SnackTag,
    /// Not zero in a SNACK that counts nothing.
    Run,
}

impl Field {
    /// Every field.
    pub const ALL: [Self; 16] = [
        Self::Opcode,
        Self::Flags,
        Self::TotalAhsLength,
        Self::Ahs,
        Self::DataSegmentLength,
        Self::SenseLength,
        Self::InitiatorTaskTag,
        Self::TargetTransferTag,
        Self::TaskAttribute,
        Self::ExpectedDataTransferLength,
        Self::DesiredDataTransferLength,
        Self::Stage,
        Self::LogoutReason,
        Self::SnackType,
        Self::SnackTag,
        Self::Run,
    ];

    /// The standard's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Opcode => "Opcode",
            Self::Flags => "Flags",
            Self::TotalAhsLength => "TotalAHSLength",
            Self::Ahs => "AHS",
            Self::DataSegmentLength => "DataSegmentLength",
            Self::SenseLength => "SenseLength",
            Self::InitiatorTaskTag => "Initiator Task Tag",
            Self::TargetTransferTag => "Target Transfer Tag",
            Self::TaskAttribute => "ATTR",
            Self::ExpectedDataTransferLength => "Expected Data Transfer Length",
            Self::DesiredDataTransferLength => "Desired Data Transfer Length",
            Self::Stage => "CSG/NSG",
            Self::LogoutReason => "Reason Code",
            Self::SnackType => "SNACK Type",
            Self::SnackTag => "SNACK Tag",
            Self::Run => "BegRun/RunLength",
        }
    }
}

impl fmt::Display for Field {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl InvalidPdu {
    /// How a target says what is wrong (RFC 7143 §11.17.1): Invalid PDU Field for what is meant to describe a
    /// task, a response or a transfer, Protocol Error for the rest.
    #[must_use]
    pub const fn reject_reason(self) -> RejectReason {
        match self.field {
            Field::Opcode => RejectReason::CommandNotSupported,
            Field::Flags
            | Field::TotalAhsLength
            | Field::Ahs
            | Field::DataSegmentLength
            | Field::SenseLength
            | Field::ExpectedDataTransferLength
            | Field::Stage => RejectReason::ProtocolError,
            Field::InitiatorTaskTag
            | Field::TargetTransferTag
            | Field::TaskAttribute
            | Field::DesiredDataTransferLength
            | Field::LogoutReason
            | Field::SnackType
            | Field::SnackTag
            | Field::Run => RejectReason::InvalidPduField,
        }
    }
}

struct PduName(u8);

impl fmt::Display for PduName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Opcode::from_wire(self.0) {
            Some(opcode) => write!(formatter, "{opcode:?}"),
            None => write!(formatter, "PDU of opcode {:#04x}", self.0),
        }
    }
}
