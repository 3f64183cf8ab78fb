//! Login Request and Login Response (RFC 7143 §11.12, §11.13). Their text: [`crate::text_keys`].

use crate::error::{Field, InvalidPdu};
use crate::fields::Window;
use crate::header::Header;
use crate::isid::Isid;
use crate::login_status::LoginStatus;
use crate::number::{Cid, CmdSn, Itt, StatSn, Tsih};
use crate::opcode::Opcode;
use crate::text::{emit_flags, parse_continue};

/// The version of the protocol in RFC 7143, and the only one (§11.12.4).
pub const PROTOCOL_VERSION: u8 = 0x00;

/// A stage of the login (§11.12.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stage {
    /// SecurityNegotiation: the sides authenticate each other.
    SecurityNegotiation,
    /// LoginOperationalNegotiation: the parameters of the session.
    OperationalNegotiation,
    /// FullFeaturePhase: login is over.
    FullFeaturePhase,
}

impl Stage {
    const MASK: u8 = 0x03;

    const fn from_wire(code: u8) -> Option<Self> {
        match code & Self::MASK {
            0 => Some(Self::SecurityNegotiation),
            1 => Some(Self::OperationalNegotiation),
            3 => Some(Self::FullFeaturePhase),
            _ => None,
        }
    }

    const fn wire(self) -> u8 {
        match self {
            Self::SecurityNegotiation => 0,
            Self::OperationalNegotiation => 1,
            Self::FullFeaturePhase => 3,
        }
    }
}

const CURRENT_STAGE_SHIFT: u8 = 2;
const VERSION_MAX: usize = 2;
/// Version-min of a request, Version-active of a response.
const VERSION: usize = 3;
const ISID: usize = 8;
const TSIH: usize = 14;
const CID: usize = 20;
const STATUS_CLASS: usize = 36;
const STATUS_DETAIL: usize = 37;

/// CSG, and NSG if the T bit makes it valid.
fn parse_stages(header: &Header) -> Result<(Stage, Option<Stage>), InvalidPdu> {
    let flags = header.flags();
    let stage = |code| Stage::from_wire(code).ok_or_else(|| header.invalid(Field::Stage, flags.into()));
    let next = if header.is_final() { Some(stage(flags)?) } else { None };
    Ok((stage(flags >> CURRENT_STAGE_SHIFT)?, next))
}

const fn emit_stages(current: Stage, next: Option<Stage>, continued: bool) -> u8 {
    let flags = emit_flags(next.is_some(), continued) | current.wire() << CURRENT_STAGE_SHIFT;
    match next {
        Some(next) => flags | next.wire(),
        None => flags,
    }
}

/// One step of a login, by the initiator. Always immediate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoginRequest {
    /// CSG: the stage of this request.
    pub current_stage: Stage,
    /// NSG, with the T bit: the stage that the initiator is ready for.
    pub next_stage: Option<Stage>,
    /// The C bit: the text continues in the next request. Never with `next_stage`.
    pub continued: bool,
    /// The highest version that the initiator speaks.
    pub version_max: u8,
    /// The lowest version that the initiator speaks.
    pub version_min: u8,
    /// The initiator's part of the session's identity.
    pub isid: Isid,
    /// The session to join, or [`Tsih::NEW_SESSION`].
    pub tsih: Tsih,
    /// Names the login.
    pub itt: Itt,
    /// Names the connection within the session.
    pub cid: Cid,
    /// The first CmdSN of a new session, the next of an old one; not advanced (§11.12.8).
    pub cmd_sn: CmdSn,
    /// Acknowledges all responses before it on this connection.
    pub exp_stat_sn: StatSn,
    /// The length of the text.
    pub data_segment_bytes: u32,
}

impl LoginRequest {
    /// Parses a header.
    ///
    /// # Errors
    /// If this is another PDU, has an AHS, names no task, is in or goes to a reserved stage, or has both T and C.
    pub fn parse(header: &Header) -> Result<Self, InvalidPdu> {
        header.expect_without_ahs(Opcode::LoginRequest)?;
        let (current_stage, next_stage) = parse_stages(header)?;
        Ok(Self {
            current_stage,
            next_stage,
            continued: parse_continue(header)?,
            version_max: header.u8_at(VERSION_MAX),
            version_min: header.u8_at(VERSION),
            isid: Isid(header.array_at(ISID)),
            tsih: Tsih(header.u16_at(TSIH)),
            itt: header.expect_task_tag()?,
            cid: Cid(header.u16_at(CID)),
            cmd_sn: header.cmd_sn(),
            exp_stat_sn: header.exp_stat_sn(),
            data_segment_bytes: header.data_segment_bytes(),
        })
    }

    /// The header of this PDU.
    #[must_use]
    pub fn emit(&self) -> Header {
        let mut header = Header::of(Opcode::LoginRequest);
        header.set_immediate(true);
        header.set_flags(emit_stages(self.current_stage, self.next_stage, self.continued));
        header.set_u8_at(VERSION_MAX, self.version_max);
        header.set_u8_at(VERSION, self.version_min);
        header.set_data_segment_bytes(self.data_segment_bytes);
        header.set_bytes_at(ISID, &self.isid.0);
        header.set_u16_at(TSIH, self.tsih.0);
        header.set_task_tag(self.itt);
        header.set_u16_at(CID, self.cid.0);
        header.set_cmd_sn(self.cmd_sn);
        header.set_exp_stat_sn(self.exp_stat_sn);
        header
    }
}

/// One step of a login, by the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoginResponse {
    /// The state of the login. If it failed, only `itt` is meaningful below.
    pub status: LoginStatus,
    /// CSG: the stage of this response.
    pub current_stage: Stage,
    /// NSG, with the T bit: the stage that begins now.
    pub next_stage: Option<Stage>,
    /// The C bit: the text continues in the next response. Never with `next_stage`.
    pub continued: bool,
    /// The highest version that the target speaks.
    pub version_max: u8,
    /// The version in use.
    pub version_active: u8,
    /// Copied from the request.
    pub isid: Isid,
    /// Copied from the request; in the last response of a new session's login, the session's handle.
    pub tsih: Tsih,
    /// The login that this answers.
    pub itt: Itt,
    /// The number of this response on its connection.
    pub stat_sn: StatSn,
    /// The command window.
    pub window: Window,
    /// The length of the text.
    pub data_segment_bytes: u32,
}

impl LoginResponse {
    /// Parses a header. In a response that ends the login, stages and C bit are ignored, because they have no meaning.
    ///
    /// # Errors
    /// If this is another PDU, has an AHS, names no task, is in or goes to a reserved stage, or has both T and C.
    pub fn parse(header: &Header) -> Result<Self, InvalidPdu> {
        header.expect_without_ahs(Opcode::LoginResponse)?;
        let status = LoginStatus::from_wire(header.u8_at(STATUS_CLASS), header.u8_at(STATUS_DETAIL));
        let ((current_stage, next_stage), continued) = if status.is_success() {
            (parse_stages(header)?, parse_continue(header)?)
        } else {
            (parse_stages(header).unwrap_or((Stage::SecurityNegotiation, None)), false)
        };
        Ok(Self {
            status,
            current_stage,
            next_stage,
            continued,
            version_max: header.u8_at(VERSION_MAX),
            version_active: header.u8_at(VERSION),
            isid: Isid(header.array_at(ISID)),
            tsih: Tsih(header.u16_at(TSIH)),
            itt: header.expect_task_tag()?,
            stat_sn: header.stat_sn(),
            window: header.window(),
            data_segment_bytes: header.data_segment_bytes(),
        })
    }

    /// The header of this PDU.
    #[must_use]
    pub fn emit(&self) -> Header {
        let mut header = Header::of(Opcode::LoginResponse);
        header.set_flags(emit_stages(self.current_stage, self.next_stage, self.continued));
        header.set_u8_at(VERSION_MAX, self.version_max);
        header.set_u8_at(VERSION, self.version_active);
        header.set_data_segment_bytes(self.data_segment_bytes);
        header.set_bytes_at(ISID, &self.isid.0);
        header.set_u16_at(TSIH, self.tsih.0);
        header.set_task_tag(self.itt);
        header.set_stat_sn(self.stat_sn);
        header.set_window(self.window);
        let (class, detail) = self.status.wire();
        header.set_u8_at(STATUS_CLASS, class);
        header.set_u8_at(STATUS_DETAIL, detail);
        header
    }
}
