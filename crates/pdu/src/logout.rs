//! Logout Request and Logout Response (RFC 7143 §11.14, §11.15).

use crate::error::{Field, InvalidPdu};
use crate::fields::Window;
use crate::header::{FINAL_BIT, Header};
use crate::number::{Cid, CmdSn, Itt, StatSn};
use crate::opcode::Opcode;

/// The scope and purpose of a logout (§11.14.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LogoutReason {
    /// Close the session.
    CloseSession,
    /// Close the connection.
    CloseConnection,
    /// Remove the connection, and keep its tasks for another.
    RemoveConnectionForRecovery,
}

impl LogoutReason {
    const MASK: u8 = 0x7f;

    const fn from_wire(code: u8) -> Option<Self> {
        match code & Self::MASK {
            0 => Some(Self::CloseSession),
            1 => Some(Self::CloseConnection),
            2 => Some(Self::RemoveConnectionForRecovery),
            _ => None,
        }
    }

    const fn wire(self) -> u8 {
        match self {
            Self::CloseSession => 0,
            Self::CloseConnection => 1,
            Self::RemoveConnectionForRecovery => 2,
        }
    }
}

/// A request to close a connection or a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogoutRequest {
    /// The scope and purpose.
    pub reason: LogoutReason,
    /// The I bit.
    pub immediate: bool,
    /// Names this request.
    pub itt: Itt,
    /// The connection, which may differ from the one that carries this; meaningless if the session is closed.
    pub cid: Cid,
    /// Its place in the command order.
    pub cmd_sn: CmdSn,
    /// The last ExpStatSN of the connection to be closed.
    pub exp_stat_sn: StatSn,
}

const CID: usize = 20;

impl LogoutRequest {
    /// Parses a header.
    ///
    /// # Errors
    /// If this is another PDU, has an AHS or data, has no tag, or gives a reserved reason.
    pub fn parse(header: &Header) -> Result<Self, InvalidPdu> {
        header.expect_bare(Opcode::LogoutRequest)?;
        let flags = header.flags();
        Ok(Self {
            reason: LogoutReason::from_wire(flags)
                .ok_or_else(|| header.invalid(Field::LogoutReason, flags.into()))?,
            immediate: header.is_immediate(),
            itt: header.expect_task_tag()?,
            cid: Cid(header.u16_at(CID)),
            cmd_sn: header.cmd_sn(),
            exp_stat_sn: header.exp_stat_sn(),
        })
    }

    /// The header of this PDU.
    #[must_use]
    pub fn emit(&self) -> Header {
        let mut header = Header::of(Opcode::LogoutRequest);
        header.set_immediate(self.immediate);
        header.set_flags(FINAL_BIT | self.reason.wire());
        header.set_task_tag(self.itt);
        header.set_u16_at(CID, self.cid.0);
        header.set_cmd_sn(self.cmd_sn);
        header.set_exp_stat_sn(self.exp_stat_sn);
        header
    }
}

/// The result of a logout (§11.15.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LogoutOutcome {
    /// The connection or session is closed.
    Closed,
    /// There is no such connection.
    CidNotFound,
    /// The target does not recover connections.
    RecoveryNotSupported,
    /// Cleaning up failed.
    CleanupFailed,
    /// A code that the standard does not assign: a failure.
    Unassigned(u8),
}

impl LogoutOutcome {
    /// The outcome for a code on the wire.
    #[must_use]
    pub const fn from_wire(code: u8) -> Self {
        match code {
            0 => Self::Closed,
            1 => Self::CidNotFound,
            2 => Self::RecoveryNotSupported,
            3 => Self::CleanupFailed,
            code => Self::Unassigned(code),
        }
    }

    /// The code on the wire.
    #[must_use]
    pub const fn wire(self) -> u8 {
        match self {
            Self::Closed => 0,
            Self::CidNotFound => 1,
            Self::RecoveryNotSupported => 2,
            Self::CleanupFailed => 3,
            Self::Unassigned(code) => code,
        }
    }
}

/// The answer to a logout request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogoutResponse {
    /// Whether the target did what was asked, or why not.
    pub outcome: LogoutOutcome,
    /// The request that this answers.
    pub itt: Itt,
    /// The number of this response on its connection.
    pub stat_sn: StatSn,
    /// The command window.
    pub window: Window,
    /// Time2Wait: seconds to wait before reassigning tasks or trying again (§11.15.3).
    pub wait_seconds: u16,
    /// Time2Retain: seconds after that for which the target keeps the tasks (§11.15.4).
    pub retain_seconds: u16,
}

const OUTCOME: usize = 2;
const WAIT: usize = 40;
const RETAIN: usize = 42;

impl LogoutResponse {
    /// Parses a header.
    ///
    /// # Errors
    /// If this is another PDU, has an AHS or data, or answers no request.
    pub fn parse(header: &Header) -> Result<Self, InvalidPdu> {
        header.expect_bare(Opcode::LogoutResponse)?;
        Ok(Self {
            outcome: LogoutOutcome::from_wire(header.u8_at(OUTCOME)),
            itt: header.expect_task_tag()?,
            stat_sn: header.stat_sn(),
            window: header.window(),
            wait_seconds: header.u16_at(WAIT),
            retain_seconds: header.u16_at(RETAIN),
        })
    }

    /// The header of this PDU.
    #[must_use]
    pub fn emit(&self) -> Header {
        let mut header = Header::of(Opcode::LogoutResponse);
        header.set_flags(FINAL_BIT);
        header.set_u8_at(OUTCOME, self.outcome.wire());
        header.set_task_tag(self.itt);
        header.set_stat_sn(self.stat_sn);
        header.set_window(self.window);
        header.set_u16_at(WAIT, self.wait_seconds);
        header.set_u16_at(RETAIN, self.retain_seconds);
        header
    }
}
