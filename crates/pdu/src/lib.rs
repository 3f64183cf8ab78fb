//! iSCSI protocol data units and text keys (RFC 7143), parsed and emitted.
//!
//! A driver moves bytes; this crate interprets them. It does no I/O and holds no state of a connection.
//!
//! * [`Header`] is the part before the data: usually 48 bytes. It gives the number of bytes that follow.
//! * [`InitiatorPdu`] and [`TargetPdu`] interpret a header, with one plain struct per PDU, each with `parse` and
//!   `emit`. They hold the length of the payload, never the payload. Reserved bits are ignored when parsed and zero
//!   when emitted.
//! * [`text_keys`] and [`text_value`] parse and emit the text of Login and Text PDUs.
//! * [`Crc32c`] is the digest of headers and data.
//! * [`CmdSn`] and similar newtypes are shared by all crates of Ropewalk.

#![forbid(unsafe_code)]

mod ahs;
mod async_message;
mod cdb;
mod data_in;
mod data_out;
mod digest;
mod error;
mod fields;
mod header;
mod isid;
mod login;
mod login_status;
mod logout;
mod lun;
mod nop;
mod number;
mod opcode;
mod r2t;
mod reject;
mod residual;
mod scsi_command;
mod scsi_response;
mod sense_segment;
mod snack;
mod task_management;
mod text;
pub mod text_keys;
pub mod text_value;
mod time;

pub use ahs::Ahs;
pub use async_message::{AsyncEvent, AsyncMessage};
pub use cdb::{Cdb, CdbTooLong};
pub use data_in::{CollapsedStatus, DataIn};
pub use data_out::DataOut;
pub use digest::{Crc32c, DIGEST_BYTES, DigestBytes, digest, header_digest};
pub use error::{Field, InvalidPdu};
pub use fields::Window;
pub use header::{DATA_SEGMENT_BYTES_MAX, Header, padding};
pub use isid::Isid;
pub use login::{LoginRequest, LoginResponse, PROTOCOL_VERSION, Stage};
pub use login_status::{LoginStatus, LoginStatusClass};
pub use logout::{LogoutOutcome, LogoutReason, LogoutRequest, LogoutResponse};
pub use lun::Lun;
pub use nop::{NopIn, NopOut};
pub use number::{BufferId, Cid, CmdSn, DataSn, Itt, LaneId, R2tSn, StatSn, Tsih, Ttt};
pub use opcode::Opcode;
pub use r2t::R2t;
pub use reject::{Reject, RejectReason};
pub use residual::Residual;
pub use scsi_command::{ScsiCommand, TaskAttribute};
pub use scsi_response::{ScsiResponse, ServiceResponse};
pub use sense_segment::SenseSegment;
pub use snack::{Snack, SnackKind};
pub use task_management::{
    TaskManagementFunction, TaskManagementOutcome, TaskManagementRequest, TaskManagementResponse,
};
pub use text::{TextRequest, TextResponse};
pub use text_keys::{Assembler, InvalidText, TextWriter};
pub use text_value::InvalidValue;
pub use time::{Duration, Instant, nanoseconds};

/// A PDU that an initiator sends.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each variant is the PDU of its name")]
pub enum InitiatorPdu {
    NopOut(NopOut),
    ScsiCommand(ScsiCommand),
    TaskManagementRequest(TaskManagementRequest),
    LoginRequest(LoginRequest),
    TextRequest(TextRequest),
    DataOut(DataOut),
    LogoutRequest(LogoutRequest),
    Snack(Snack),
}

impl InitiatorPdu {
    /// Parses a header.
    ///
    /// # Errors
    /// The error of the PDU's own `parse`; [`Field::Opcode`] if no initiator sends such a PDU.
    pub fn parse(header: &Header) -> Result<Self, InvalidPdu> {
        match header.opcode()? {
            Opcode::NopOut => NopOut::parse(header).map(Self::NopOut),
            Opcode::ScsiCommand => ScsiCommand::parse(header).map(Self::ScsiCommand),
            Opcode::TaskManagementRequest => {
                TaskManagementRequest::parse(header).map(Self::TaskManagementRequest)
            }
            Opcode::LoginRequest => LoginRequest::parse(header).map(Self::LoginRequest),
            Opcode::TextRequest => TextRequest::parse(header).map(Self::TextRequest),
            Opcode::DataOut => DataOut::parse(header).map(Self::DataOut),
            Opcode::LogoutRequest => LogoutRequest::parse(header).map(Self::LogoutRequest),
            Opcode::Snack => Snack::parse(header).map(Self::Snack),
            _ => Err(header.invalid(Field::Opcode, header.opcode_bits().into())),
        }
    }

    /// The next StatSN that the initiator expects, which acknowledges the earlier ones (RFC 7143 §4.2.2.2): on the
    /// connection that carries the PDU, or, for a logout, on the connection to be closed (§11.14.4).
    #[must_use]
    pub fn exp_stat_sn(&self) -> StatSn {
        match self {
            Self::NopOut(pdu) => pdu.exp_stat_sn,
            Self::ScsiCommand(pdu) => pdu.exp_stat_sn,
            Self::TaskManagementRequest(pdu) => pdu.exp_stat_sn,
            Self::LoginRequest(pdu) => pdu.exp_stat_sn,
            Self::TextRequest(pdu) => pdu.exp_stat_sn,
            Self::DataOut(pdu) => pdu.exp_stat_sn,
            Self::LogoutRequest(pdu) => pdu.exp_stat_sn,
            Self::Snack(pdu) => pdu.exp_stat_sn,
        }
    }

    /// The CmdSN of a PDU that has a place of its own in the order of commands: a request that is not immediate
    /// (RFC 7143 §4.2.2.1).
    #[must_use]
    pub fn place_in_order(&self) -> Option<CmdSn> {
        let (immediate, cmd_sn) = match self {
            Self::NopOut(pdu) => (pdu.immediate, pdu.cmd_sn),
            Self::ScsiCommand(pdu) => (pdu.immediate, pdu.cmd_sn),
            Self::TaskManagementRequest(pdu) => (pdu.immediate, pdu.cmd_sn),
            Self::TextRequest(pdu) => (pdu.immediate, pdu.cmd_sn),
            Self::LogoutRequest(pdu) => (pdu.immediate, pdu.cmd_sn),
            Self::LoginRequest(_) | Self::DataOut(_) | Self::Snack(_) => return None,
        };
        (!immediate).then_some(cmd_sn)
    }

    /// The header of this PDU.
    #[must_use]
    pub fn emit(&self) -> Header {
        match self {
            Self::NopOut(pdu) => pdu.emit(),
            Self::ScsiCommand(pdu) => pdu.emit(),
            Self::TaskManagementRequest(pdu) => pdu.emit(),
            Self::LoginRequest(pdu) => pdu.emit(),
            Self::TextRequest(pdu) => pdu.emit(),
            Self::DataOut(pdu) => pdu.emit(),
            Self::LogoutRequest(pdu) => pdu.emit(),
            Self::Snack(pdu) => pdu.emit(),
        }
    }
}

/// A PDU that a target sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each variant is the PDU of its name")]
pub enum TargetPdu {
    NopIn(NopIn),
    ScsiResponse(ScsiResponse),
    TaskManagementResponse(TaskManagementResponse),
    LoginResponse(LoginResponse),
    TextResponse(TextResponse),
    DataIn(DataIn),
    LogoutResponse(LogoutResponse),
    R2t(R2t),
    AsyncMessage(AsyncMessage),
    Reject(Reject),
}

impl TargetPdu {
    /// Parses a header.
    ///
    /// # Errors
    /// The error of the PDU's own `parse`; [`Field::Opcode`] if no target sends such a PDU.
    pub fn parse(header: &Header) -> Result<Self, InvalidPdu> {
        match header.opcode()? {
            Opcode::NopIn => NopIn::parse(header).map(Self::NopIn),
            Opcode::ScsiResponse => ScsiResponse::parse(header).map(Self::ScsiResponse),
            Opcode::TaskManagementResponse => {
                TaskManagementResponse::parse(header).map(Self::TaskManagementResponse)
            }
            Opcode::LoginResponse => LoginResponse::parse(header).map(Self::LoginResponse),
            Opcode::TextResponse => TextResponse::parse(header).map(Self::TextResponse),
            Opcode::DataIn => DataIn::parse(header).map(Self::DataIn),
            Opcode::LogoutResponse => LogoutResponse::parse(header).map(Self::LogoutResponse),
            Opcode::R2t => R2t::parse(header).map(Self::R2t),
            Opcode::AsyncMessage => AsyncMessage::parse(header).map(Self::AsyncMessage),
            Opcode::Reject => Reject::parse(header).map(Self::Reject),
            _ => Err(header.invalid(Field::Opcode, header.opcode_bits().into())),
        }
    }

    /// The command window, present in every PDU of a target (RFC 7143 §4.2.2.1).
    #[must_use]
    pub fn window(&self) -> Window {
        match self {
            Self::NopIn(pdu) => pdu.window,
            Self::ScsiResponse(pdu) => pdu.window,
            Self::TaskManagementResponse(pdu) => pdu.window,
            Self::LoginResponse(pdu) => pdu.window,
            Self::TextResponse(pdu) => pdu.window,
            Self::DataIn(pdu) => pdu.window,
            Self::LogoutResponse(pdu) => pdu.window,
            Self::R2t(pdu) => pdu.window,
            Self::AsyncMessage(pdu) => pdu.window,
            Self::Reject(pdu) => pdu.window,
        }
    }

    /// The header of this PDU.
    #[must_use]
    pub fn emit(&self) -> Header {
        match self {
            Self::NopIn(pdu) => pdu.emit(),
            Self::ScsiResponse(pdu) => pdu.emit(),
            Self::TaskManagementResponse(pdu) => pdu.emit(),
            Self::LoginResponse(pdu) => pdu.emit(),
            Self::TextResponse(pdu) => pdu.emit(),
            Self::DataIn(pdu) => pdu.emit(),
            Self::LogoutResponse(pdu) => pdu.emit(),
            Self::R2t(pdu) => pdu.emit(),
            Self::AsyncMessage(pdu) => pdu.emit(),
            Self::Reject(pdu) => pdu.emit(),
        }
    }
}
