//! One PDU of a capture, in the words of its header.

use crate::stream::Stamp;
use pdu::{Header, InitiatorPdu, InvalidPdu, Opcode, TargetPdu};
use serde::Serialize;

/// A captured PDU, or at least its header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct PduRecord {
    /// Its connection: [`ConnectionReport::number`](crate::ConnectionReport::number).
    pub connection: usize,
    /// The six bits of the opcode.
    pub opcode: u8,
    /// The I bit.
    pub immediate: bool,
    /// The F bit.
    #[serde(rename = "final")]
    pub final_: bool,
    /// The Initiator Task Tag.
    pub task_tag: u32,
    /// For PDUs of an initiator that have one.
    pub cmd_sn: Option<u32>,
    /// For PDUs of a target that have one: not Data-In without status. In an R2T it is the next one.
    pub stat_sn: Option<u32>,
    /// Bytes of Additional Header Segments.
    pub ahs_bytes: usize,
    /// `DataSegmentLength`: bytes of data, without padding and digest.
    pub data_bytes: u32,
    /// Whether the header breaks the standard.
    pub invalid: bool,
    /// The capture time of its first byte, in nanoseconds since 1970-01-01 UTC.
    pub first_ns: u64,
    /// The capture time of its last byte.
    pub last_ns: u64,
    /// The frame with its last byte, counted from 1.
    pub last_frame: u64,
}

impl PduRecord {
    pub(crate) fn new(connection: usize, header: &Header, first: Stamp, last: Stamp) -> Self {
        let numbers = numbers(header);
        let (cmd_sn, stat_sn) = numbers.unwrap_or_default();
        Self {
            connection,
            opcode: header.opcode_bits(),
            immediate: header.is_immediate(),
            final_: header.is_final(),
            task_tag: header.task_tag().0,
            cmd_sn,
            stat_sn,
            ahs_bytes: header.ahs_bytes(),
            data_bytes: header.data_segment_bytes(),
            invalid: numbers.is_err(),
            first_ns: first.at.0,
            last_ns: last.at.0,
            last_frame: last.frame,
        }
    }
}

/// The CmdSN and the StatSN that a PDU has.
fn numbers(header: &Header) -> Result<(Option<u32>, Option<u32>), InvalidPdu> {
    if header.opcode().is_ok_and(Opcode::is_from_initiator) {
        Ok((cmd_sn(&InitiatorPdu::parse(header)?), None))
    } else {
        Ok((None, stat_sn(&TargetPdu::parse(header)?)))
    }
}

fn cmd_sn(pdu: &InitiatorPdu) -> Option<u32> {
    let number = match pdu {
        InitiatorPdu::NopOut(pdu) => pdu.cmd_sn,
        InitiatorPdu::ScsiCommand(pdu) => pdu.cmd_sn,
        InitiatorPdu::TaskManagementRequest(pdu) => pdu.cmd_sn,
        InitiatorPdu::LoginRequest(pdu) => pdu.cmd_sn,
        InitiatorPdu::TextRequest(pdu) => pdu.cmd_sn,
        InitiatorPdu::LogoutRequest(pdu) => pdu.cmd_sn,
        InitiatorPdu::DataOut(_) | InitiatorPdu::Snack(_) => return None,
    };
    Some(number.0)
}

fn stat_sn(pdu: &TargetPdu) -> Option<u32> {
    let number = match pdu {
        TargetPdu::NopIn(pdu) => pdu.stat_sn,
        TargetPdu::ScsiResponse(pdu) => pdu.stat_sn,
        TargetPdu::TaskManagementResponse(pdu) => pdu.stat_sn,
        TargetPdu::LoginResponse(pdu) => pdu.stat_sn,
        TargetPdu::TextResponse(pdu) => pdu.stat_sn,
        TargetPdu::DataIn(pdu) => pdu.status?.stat_sn,
        TargetPdu::LogoutResponse(pdu) => pdu.stat_sn,
        TargetPdu::R2t(pdu) => pdu.stat_sn,
        TargetPdu::AsyncMessage(pdu) => pdu.stat_sn,
        TargetPdu::Reject(pdu) => pdu.stat_sn,
    };
    Some(number.0)
}
