//! Defects of a peer's PDU.

use crate::opcode::Opcode;
use crate::reject::RejectReason;
use core::fmt;

/// A header, or the fixed part of a data segment, that breaks the standard. The peer is at fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{pdu}: {field} is {found:#x}", pdu = PduName(*.opcode))]
pub struct InvalidPdu {
    /// The six-bit opcode of the offending PDU, assigned or not.
    pub opcode: u8,
    /// The field with the defect.
    pub field: Field,
    /// The field's value.
    pub found: u32,
}

/// The fields in which a PDU can be wrong, by the standard's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Field {
    /// Unassigned, or not one that this end may receive.
    Opcode,
    /// A combination of flag bits that must not occur.
    Flags,
    /// Not zero in a PDU without AHS, or different from the bytes that arrived.
    TotalAhsLength,
    /// An AHS that exceeds its space, must not be present, or is missing.
    Ahs,
    /// Not zero in a PDU without data.
    DataSegmentLength,
    /// Longer than the data segment that holds it.
    SenseLength,
    /// Reserved in a PDU that must name a task, or the reverse.
    InitiatorTaskTag,
    /// Reserved in a PDU that must name a transfer, or the reverse.
    TargetTransferTag,
    /// One of the reserved task attributes.
    TaskAttribute,
    /// The command expects data in neither direction.
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
    /// All fields, in the order of their declaration.
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
    /// The Reject reason for the defect (RFC 7143 §11.17.1): Invalid PDU Field for fields that describe a task, a
    /// response or a transfer, Protocol Error for the rest.
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
