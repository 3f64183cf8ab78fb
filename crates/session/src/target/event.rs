//! The events that a target's session reports to its driver, and the driver's answers.

use crate::seam::{Fault, LaneLoss};
use pdu::{BufferId, Cdb, CmdSn, Duration, Itt, LaneId, Lun, TaskAttribute};

/// One SCSI task of this session. Not reused while the session remembers the task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId(pub u32);

/// One task management function in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TaskManagementId(pub u32);

/// A SCSI command whose turn has come: all commands with a smaller CmdSN have been handed out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// The name of its task in every later call.
    pub task: TaskId,
    /// Its place in the session's command order; `None` for an immediate command.
    pub cmd_sn: Option<CmdSn>,
    /// Its wait for earlier commands, since it had arrived with its immediate data; `None` for an immediate command.
    pub order_wait: Option<Duration>,
    /// The addressed logical unit.
    pub lun: Lun,
    /// The order of its task in the unit's task set (RFC 7143 §11.3.1).
    pub attribute: TaskAttribute,
    /// The command itself, opaque here.
    pub cdb: Cdb,
    /// The length of Data-Out that the command announced, in bytes; 0 if none.
    pub data_out_bytes: u32,
    /// The length of Data-In that the command announced, in bytes; 0 if none.
    pub data_in_bytes: u32,
}

/// A write's data, complete in a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataOut {
    /// The write's task.
    pub task: TaskId,
    /// The buffer that holds the data from offset 0 on; `None` when no byte was wanted.
    pub buffer: Option<BufferId>,
    /// The number of bytes.
    pub bytes: u32,
}

/// What a session tells its driver.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each variant says what its task, lane and unit are")]
pub enum Event {
    /// Execute this command. The driver calls [`super::Session::solicit`] if it wants Data-Out, and always ends with
    /// [`super::Session::respond`].
    Command(Command),
    /// The Data-Out that was solicited is complete.
    DataOut(DataOut),
    /// A task that was handed out was aborted. Nothing that the driver reports of it reaches the initiator any more,
    /// and no [`Event::DataOut`] comes for it. The driver may cut its work at the device short, but must still call
    /// [`super::Session::respond`] at its end.
    Aborted { task: TaskId },
    /// The session no longer needs this buffer; PDUs already pulled may still refer to it.
    Release(BufferId),
    /// Carry out a task management function, then call [`super::Session::task_management_done`].
    TaskManagement(TaskManagement),
    /// A logout terminated tasks without a response. The driver must tell the initiator by a unit attention, 47h/7Fh
    /// SOME COMMANDS CLEARED BY ISCSI PROTOCOL EVENT, on this logical unit (RFC 7143 §11.14.5).
    CommandsCleared { lun: Lun },
    /// The initiator wants a list of targets: answer with [`super::Session::send_targets`].
    SendTargets(SendTargets),
    /// Send what is left for this lane, then close it: a logout was answered, or the lane failed.
    CloseLane {
        lane: LaneId,
        /// Whether the lane was logged out or broke.
        loss: LaneLoss,
        /// The fault that made the lane unusable, if one did.
        fault: Option<Fault>,
    },
    /// The I_T nexus is lost: give up every task that was handed out. Comes once, when a session ends without a logout:
    /// because a lane broke at an error recovery level below 2, no connection came back in time, or
    /// [`super::Session::close`] was called. A broken lane by itself does not mean this. [`Event::Ended`] follows when
    /// the tasks have ended.
    NexusLost,
    /// The session is over, without tasks and lanes. It comes only after all writes handed to the driver have finished
    /// ([`super::Session::respond`]), so that none of them can reach the disk after the session's reinstatement.
    Ended {
        /// Whether the session ended by logout; otherwise the nexus was lost, with its tasks.
        orderly: bool,
    },
}

/// A task management function (RFC 7143 §11.5) that the driver must carry out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskManagement {
    /// The function's name in the answer.
    pub id: TaskManagementId,
    /// The function, with the task or the logical unit that it concerns.
    pub function: LogicalUnitFunction,
}

/// Functions as a device server sees them. Aborted tasks stay silent: the driver still reports their completion with
/// [`super::Session::respond`], which then sends nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the standard says what each function addresses")]
pub enum LogicalUnitFunction {
    /// ABORT TASK of a task that the driver holds; its response is already suppressed.
    AbortTask { task: TaskId },
    /// ABORT TASK SET: this session's tasks on the logical unit; their responses are already suppressed.
    AbortTaskSet { lun: Lun },
    /// CLEAR TASK SET: the tasks on the logical unit of every session that shares the task set, as the Control mode
    /// page's TST field says.
    ClearTaskSet { lun: Lun },
    /// LOGICAL UNIT RESET.
    LogicalUnitReset { lun: Lun },
    /// TARGET WARM RESET: every logical unit; sessions go on.
    TargetWarmReset,
    /// TARGET COLD RESET: as warm, then every session is ended.
    TargetColdReset,
}

/// The device server's answer to a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// SCSI status byte (SAM-5).
    pub status: u8,
    /// Sense data for CHECK CONDITION, else empty.
    pub sense: Vec<u8>,
    /// Bytes of Data-Out plus Data-In that the command itself calls for. The difference to the announced length is the
    /// residual (RFC 7143 §11.4.5).
    pub wanted_bytes: u32,
}

/// A SendTargets request (RFC 7143 appendix C).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SendTargets {
    /// The lane that asked; the answer goes there.
    pub lane: LaneId,
    /// The task tag of the text exchange.
    pub itt: Itt,
    /// The name of one target, which is the session's own for an empty value in a normal session. `None` asks for all.
    pub target_name: Option<String>,
}

/// One target in the answer to SendTargets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetRecord {
    /// Its iSCSI name (RFC 7143 §4.2.7).
    pub target_name: String,
    /// One `host:port,portal-group-tag` for each portal.
    pub target_addresses: Vec<String>,
}

/// Unsolicited news for the initiator (RFC 7143 §11.9).
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each variant says what its lane and unit are")]
pub enum AsyncMessage {
    /// A SCSI event on a logical unit.
    Scsi {
        lun: Lun,
        /// Sense data that describes the event.
        sense: Vec<u8>,
    },
    /// The target will drop this lane.
    ConnectionDrop {
        lane: LaneId,
        /// Seconds that the initiator should wait before it connects again (Time2Wait).
        wait_seconds: u16,
    },
    /// The target will drop every connection of the session.
    SessionDrop {
        /// Seconds that the initiator should wait before it makes a new session (Time2Wait).
        wait_seconds: u16,
    },
}
