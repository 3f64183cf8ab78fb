//! Reject: the target refuses a PDU (RFC 7143 §11.17).

use crate::error::InvalidPdu;
use crate::fields::Window;
use crate::header::{FINAL_BIT, Header};
use crate::number::{Itt, StatSn};
use crate::opcode::Opcode;

/// The reason for a Reject (§11.17.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RejectReason {
    /// The data segment did not match its digest; the PDU may be sent again.
    DataDigestError,
    /// The target cannot serve a SNACK; the initiator may send it again.
    SnackReject,
    /// The PDU breaks the protocol.
    ProtocolError,
    /// The target does not support this PDU.
    CommandNotSupported,
    /// Too many immediate commands; it may be sent again.
    ImmediateCommandReject,
    /// A task with this tag is in progress.
    TaskInProgress,
    /// A data acknowledgement that acknowledges nothing.
    InvalidDataAck,
    /// A field that should describe a task, a response or a transfer does not.
    InvalidPduField,
    /// No Target Transfer Tag is left for a long operation; it may be sent again.
    LongOperationReject,
    /// Deprecated: equivalent to a failed negotiation, which ends login and connection.
    NegotiationReset,
    /// The target waits for a logout and accepts no new command.
    WaitingForLogout,
    /// A code that the standard does not assign.
    Unassigned(u8),
}

impl RejectReason {
    /// The reason for a code on the wire.
    #[must_use]
    pub const fn from_wire(code: u8) -> Self {
        match code {
            0x02 => Self::DataDigestError,
            0x03 => Self::SnackReject,
            0x04 => Self::ProtocolError,
            0x05 => Self::CommandNotSupported,
            0x06 => Self::ImmediateCommandReject,
            0x07 => Self::TaskInProgress,
            0x08 => Self::InvalidDataAck,
            0x09 => Self::InvalidPduField,
            0x0a => Self::LongOperationReject,
            0x0b => Self::NegotiationReset,
            0x0c => Self::WaitingForLogout,
            code => Self::Unassigned(code),
        }
    }

    /// The code on the wire.
    #[must_use]
    pub const fn wire(self) -> u8 {
        match self {
            Self::DataDigestError => 0x02,
            Self::SnackReject => 0x03,
            Self::ProtocolError => 0x04,
            Self::CommandNotSupported => 0x05,
            Self::ImmediateCommandReject => 0x06,
            Self::TaskInProgress => 0x07,
            Self::InvalidDataAck => 0x08,
            Self::InvalidPduField => 0x09,
            Self::LongOperationReject => 0x0a,
            Self::NegotiationReset => 0x0b,
            Self::WaitingForLogout => 0x0c,
            Self::Unassigned(code) => code,
        }
    }
}

/// A rejection. Its data segment is the complete header of the rejected PDU, without digest: [`Header::write_to`] makes
/// it, [`Reject::rejected_header`] reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reject {
    /// Why the target rejects the PDU.
    pub reason: RejectReason,
    /// Advanced by a Reject.
    pub stat_sn: StatSn,
    /// The command window.
    pub window: Window,
    /// The next DataSN or R2TSN that the target would send for the task. Valid only if a Data/R2T SNACK was a protocol
    /// error (§11.17.2).
    pub next_data_or_r2t_sn: u32,
    /// The length of the rejected header and any vendor-specific data after it.
    pub data_segment_bytes: u32,
}

const REASON: usize = 2;
const NEXT_NUMBER: usize = 36;

impl Reject {
    /// Parses a header.
    ///
    /// # Errors
    /// If this is another PDU or has an AHS.
    pub fn parse(header: &Header) -> Result<Self, InvalidPdu> {
        header.expect_without_ahs(Opcode::Reject)?;
        Ok(Self {
            reason: RejectReason::from_wire(header.u8_at(REASON)),
            stat_sn: header.stat_sn(),
            window: header.window(),
            next_data_or_r2t_sn: header.u32_at(NEXT_NUMBER),
            data_segment_bytes: header.data_segment_bytes(),
        })
    }

    /// The header of this PDU.
    #[must_use]
    pub fn emit(&self) -> Header {
        let mut header = Header::of(Opcode::Reject);
        header.set_flags(FINAL_BIT);
        header.set_u8_at(REASON, self.reason.wire());
        header.set_data_segment_bytes(self.data_segment_bytes);
        header.set_task_tag(Itt::NONE);
        header.set_stat_sn(self.stat_sn);
        header.set_window(self.window);
        header.set_u32_at(NEXT_NUMBER, self.next_data_or_r2t_sn);
        header
    }

    /// The rejected PDU's header, from the data segment of a Reject; `None` if it is truncated.
    #[must_use]
    pub fn rejected_header(data_segment: &[u8]) -> Option<Header> {
        let (bhs, rest) = data_segment.split_first_chunk()?;
        let mut header = Header::new(*bhs);
        header.set_ahs(rest.get(..header.ahs_bytes())?.to_vec()).ok()?;
        Some(header)
    }
}
