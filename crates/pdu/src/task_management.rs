//! Task Management Function Request and Response (RFC 7143 §11.5, §11.6; RFC 7144 §6).

use crate::Lun;
use crate::error::InvalidPdu;
use crate::fields::Window;
use crate::header::{FINAL_BIT, Header};
use crate::number::{CmdSn, DataSn, Itt, StatSn};
use crate::opcode::Opcode;

/// The function requested of the target (§11.5.1, RFC 7144 §6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TaskManagementFunction {
    /// Abort the referenced task.
    AbortTask,
    /// Abort all tasks of this session on the unit.
    AbortTaskSet,
    /// End an auto contingent allegiance.
    ClearAca,
    /// Abort all tasks in the unit's task set, of every session.
    ClearTaskSet,
    /// Reset the unit.
    LogicalUnitReset,
    /// Reset the target, keeping its sessions.
    TargetWarmReset,
    /// Reset the target, ending its sessions.
    TargetColdReset,
    /// Move the referenced task to this connection.
    TaskReassign,
    /// Ask whether the referenced task is in the task set.
    QueryTask,
    /// Ask whether any task of this nexus is in the task set.
    QueryTaskSet,
    /// Act as if the nexus were lost.
    ItNexusReset,
    /// Ask whether a unit attention or a deferred error is pending.
    QueryAsynchronousEvent,
    /// A code that no standard assigns: a target answers that it does not support the function.
    Unassigned(u8),
}

impl TaskManagementFunction {
    const MASK: u8 = 0x7f;

    /// The function for a seven-bit code on the wire.
    #[must_use]
    pub const fn from_wire(code: u8) -> Self {
        match code & Self::MASK {
            1 => Self::AbortTask,
            2 => Self::AbortTaskSet,
            3 => Self::ClearAca,
            4 => Self::ClearTaskSet,
            5 => Self::LogicalUnitReset,
            6 => Self::TargetWarmReset,
            7 => Self::TargetColdReset,
            8 => Self::TaskReassign,
            9 => Self::QueryTask,
            10 => Self::QueryTaskSet,
            11 => Self::ItNexusReset,
            12 => Self::QueryAsynchronousEvent,
            code => Self::Unassigned(code),
        }
    }

    /// The code on the wire.
    #[must_use]
    pub const fn wire(self) -> u8 {
        match self {
            Self::AbortTask => 1,
            Self::AbortTaskSet => 2,
            Self::ClearAca => 3,
            Self::ClearTaskSet => 4,
            Self::LogicalUnitReset => 5,
            Self::TargetWarmReset => 6,
            Self::TargetColdReset => 7,
            Self::TaskReassign => 8,
            Self::QueryTask => 9,
            Self::QueryTaskSet => 10,
            Self::ItNexusReset => 11,
            Self::QueryAsynchronousEvent => 12,
            Self::Unassigned(code) => code & Self::MASK,
        }
    }
}

/// A request to manage tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskManagementRequest {
    /// The action to take on the tasks or the unit.
    pub function: TaskManagementFunction,
    /// The I bit.
    pub immediate: bool,
    /// The unit, for the functions that address one.
    pub lun: Lun,
    /// Names this request.
    pub itt: Itt,
    /// The referenced task, for ABORT TASK, TASK REASSIGN and QUERY TASK; else [`Itt::NONE`].
    pub referenced_task: Itt,
    /// Its place in the command order.
    pub cmd_sn: CmdSn,
    /// Acknowledges all responses before it on this connection.
    pub exp_stat_sn: StatSn,
    /// The CmdSN of the referenced task; this request's own for an immediate task (§11.5.5).
    pub ref_cmd_sn: CmdSn,
    /// The first Data-In not yet acknowledged, for TASK REASSIGN (§11.5.6).
    pub exp_data_sn: DataSn,
}

const REFERENCED_TASK: usize = 20;
const REF_CMD_SN: usize = 32;
const EXP_DATA_SN: usize = 36;

impl TaskManagementRequest {
    /// Parses a header.
    ///
    /// # Errors
    /// If this is another PDU, has an AHS or data, or has no tag of its own.
    pub fn parse(header: &Header) -> Result<Self, InvalidPdu> {
        header.expect_bare(Opcode::TaskManagementRequest)?;
        Ok(Self {
            function: TaskManagementFunction::from_wire(header.flags()),
            immediate: header.is_immediate(),
            lun: header.lun(),
            itt: header.expect_task_tag()?,
            referenced_task: Itt(header.u32_at(REFERENCED_TASK)),
            cmd_sn: header.cmd_sn(),
            exp_stat_sn: header.exp_stat_sn(),
            ref_cmd_sn: CmdSn(header.u32_at(REF_CMD_SN)),
            exp_data_sn: DataSn(header.u32_at(EXP_DATA_SN)),
        })
    }

    /// The header of this PDU.
    #[must_use]
    pub fn emit(&self) -> Header {
        let mut header = Header::of(Opcode::TaskManagementRequest);
        header.set_immediate(self.immediate);
        header.set_flags(FINAL_BIT | self.function.wire());
        header.set_lun(self.lun);
        header.set_task_tag(self.itt);
        header.set_u32_at(REFERENCED_TASK, self.referenced_task.0);
        header.set_cmd_sn(self.cmd_sn);
        header.set_exp_stat_sn(self.exp_stat_sn);
        header.set_u32_at(REF_CMD_SN, self.ref_cmd_sn.0);
        header.set_u32_at(EXP_DATA_SN, self.exp_data_sn.0);
        header
    }
}

/// The target's answer (§11.6.1, RFC 7144 §6.4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TaskManagementOutcome {
    /// The function is complete; for a query: no.
    FunctionComplete,
    /// The task does not exist, and will not.
    TaskDoesNotExist,
    /// There is no such unit.
    LunDoesNotExist,
    /// The task still belongs to another connection.
    TaskStillAllegiant,
    /// The target does not move tasks between connections.
    ReassignmentNotSupported,
    /// The target does not support this function.
    FunctionNotSupported,
    /// This initiator may not do that.
    AuthorizationFailed,
    /// A query: yes.
    FunctionSucceeded,
    /// The target refuses the function (code 255).
    FunctionRejected,
    /// A code that no standard assigns: refused.
    Unassigned(u8),
}

impl TaskManagementOutcome {
    /// The outcome for a code on the wire.
    #[must_use]
    pub const fn from_wire(code: u8) -> Self {
        match code {
            0 => Self::FunctionComplete,
            1 => Self::TaskDoesNotExist,
            2 => Self::LunDoesNotExist,
            3 => Self::TaskStillAllegiant,
            4 => Self::ReassignmentNotSupported,
            5 => Self::FunctionNotSupported,
            6 => Self::AuthorizationFailed,
            7 => Self::FunctionSucceeded,
            255 => Self::FunctionRejected,
            code => Self::Unassigned(code),
        }
    }

    /// The code on the wire.
    #[must_use]
    pub const fn wire(self) -> u8 {
        match self {
            Self::FunctionComplete => 0,
            Self::TaskDoesNotExist => 1,
            Self::LunDoesNotExist => 2,
            Self::TaskStillAllegiant => 3,
            Self::ReassignmentNotSupported => 4,
            Self::FunctionNotSupported => 5,
            Self::AuthorizationFailed => 6,
            Self::FunctionSucceeded => 7,
            Self::FunctionRejected => 255,
            Self::Unassigned(code) => code,
        }
    }
}

/// The answer to a task management request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskManagementResponse {
    /// Whether the target did what was asked, or why not.
    pub outcome: TaskManagementOutcome,
    /// The request that this answers.
    pub itt: Itt,
    /// The number of this response on its connection.
    pub stat_sn: StatSn,
    /// The command window.
    pub window: Window,
}

const OUTCOME: usize = 2;

impl TaskManagementResponse {
    /// Parses a header.
    ///
    /// # Errors
    /// If this is another PDU, has an AHS or data, or answers no request.
    pub fn parse(header: &Header) -> Result<Self, InvalidPdu> {
        header.expect_bare(Opcode::TaskManagementResponse)?;
        Ok(Self {
            outcome: TaskManagementOutcome::from_wire(header.u8_at(OUTCOME)),
            itt: header.expect_task_tag()?,
            stat_sn: header.stat_sn(),
            window: header.window(),
        })
    }

    /// The header of this PDU.
    #[must_use]
    pub fn emit(&self) -> Header {
        let mut header = Header::of(Opcode::TaskManagementResponse);
        header.set_flags(FINAL_BIT);
        header.set_u8_at(OUTCOME, self.outcome.wire());
        header.set_task_tag(self.itt);
        header.set_stat_sn(self.stat_sn);
        header.set_window(self.window);
        header
    }
}
