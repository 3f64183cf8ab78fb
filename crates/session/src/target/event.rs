//! What a target's session tells its driver, and what the driver answers.

use crate::seam::{Fault, LaneLoss};
use pdu::{BufferId, Cdb, CmdSn, Itt, LaneId, Lun, TaskAttribute};

/// One SCSI task of this session, for as long as the session remembers it. Never reused while it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId(pub u32);

/// One task management function in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TaskManagementId(pub u32);

/// A SCSI command whose turn it is: all commands with a smaller CmdSN have been handed out before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// Its name in every later verb.
    pub task: TaskId,
    /// Its place in the order of the session's commands; `None` for an immediate one, which has none.
    pub cmd_sn: Option<CmdSn>,
    /// Addressed logical unit.
    pub lun: Lun,
    /// Task attribute.
    pub attribute: TaskAttribute,
    /// The command itself, opaque here.
    pub cdb: Cdb,
    /// The command announced Data-Out, of this many bytes at most (0: none).
    pub data_out_bytes: u32,
    /// The command announced Data-In, of this many bytes at most (0: none).
    pub data_in_bytes: u32,
}

/// A write's data that is complete in a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataOut {
    /// Whose.
    pub task: TaskId,
    /// Where, from offset 0; `None` when no byte was wanted.
    pub buffer: Option<BufferId>,
    /// How many bytes.
    pub bytes: u32,
}

/// What a session tells its driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Execute this. The driver answers with [`super::Session::solicit`] if it wants Data-Out, and in the end
    /// always with [`super::Session::respond`].
    Command(Command),
    /// The Data-Out that was solicited is complete.
    DataOut(DataOut),
    /// A task that was handed out was aborted, by whatever cause: nothing more that the driver says of it reaches the
    /// initiator, and no [`Event::DataOut`] comes for it. What it does at the device may be cut short; in the end
    /// [`super::Session::respond`] must still be called.
    Aborted {
        /// Which.
        task: TaskId,
    },
    /// The session needs this buffer no more; PDUs already pulled may still refer to it.
    Release(BufferId),
    /// Carry out a task management function, then call [`super::Session::task_management_done`].
    TaskManagement(TaskManagement),
    /// Tasks were terminated by a logout, without a word to the initiator: it must learn of it by a unit attention,
    /// 47h/7Fh SOME COMMANDS CLEARED BY ISCSI PROTOCOL EVENT, on this logical unit (RFC 7143 §11.14.5).
    CommandsCleared {
        /// Where.
        lun: Lun,
    },
    /// A list of targets is wanted: answer with [`super::Session::send_targets`].
    SendTargets(SendTargets),
    /// Send what is left for this lane, then close it: a logout was answered, or the lane failed.
    CloseLane {
        /// Which.
        lane: LaneId,
        /// Whether anything is lost with it, and why.
        loss: LaneLoss,
        /// What the peer did, if it was at fault.
        fault: Option<Fault>,
    },
    /// The nexus is lost, and with it every task handed out: give them up. Comes once, when a session ends without
    /// order: a lane broke at an error recovery level below 2, no connection came back in time, or [`super::Session::close`].
    /// A broken lane alone says nothing of the kind. [`Event::Ended`] follows when the tasks have come to rest.
    NexusLost,
    /// The session is over: no task, no lane. All writes handed to the driver must have finished
    /// ([`super::Session::respond`]) before this appears, so that a reinstated session meets no ghost of this one.
    Ended {
        /// Whether by logout; otherwise the nexus was lost, with its tasks.
        orderly: bool,
    },
}

/// A task management function (RFC 7143 §11.5) that needs more than this session's own bookkeeping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskManagement {
    /// Its name in the answer.
    pub id: TaskManagementId,
    /// What is asked.
    pub function: LogicalUnitFunction,
}

/// Functions in terms of a device server. Tasks that are aborted stay silent: the driver still reports their
/// completion with [`super::Session::respond`], which then sends nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogicalUnitFunction {
    /// ABORT TASK of a task that the driver holds; its response is already suppressed.
    AbortTask {
        /// Which.
        task: TaskId,
    },
    /// ABORT TASK SET: this session's tasks on the logical unit; their responses are already suppressed.
    AbortTaskSet {
        /// Where.
        lun: Lun,
    },
    /// CLEAR TASK SET: every session's tasks on the logical unit, as the mode page's TST field has it.
    ClearTaskSet {
        /// Where.
        lun: Lun,
    },
    /// LOGICAL UNIT RESET.
    LogicalUnitReset {
        /// Where.
        lun: Lun,
    },
    /// TARGET WARM RESET: every logical unit; sessions live on.
    TargetWarmReset,
    /// TARGET COLD RESET: as warm, then every session is ended.
    TargetColdReset,
}

/// What the device server answered to a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// SCSI status byte (SAM-5).
    pub status: u8,
    /// Sense data for CHECK CONDITION, else empty.
    pub sense: Vec<u8>,
    /// Bytes of Data-Out plus Data-In that the command by itself would transfer; with the announced length
    /// this gives the residual (RFC 7143 §11.4.5).
    pub wanted_bytes: u32,
}

/// A SendTargets request (RFC 7143 appendix C).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SendTargets {
    /// The lane that asked; the answer goes there.
    pub lane: LaneId,
    /// The task tag of the text exchange.
    pub itt: Itt,
    /// `None`: all; else one target by name (the session's own, for an empty value in a normal session).
    pub target_name: Option<String>,
}

/// One target in the answer to SendTargets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetRecord {
    /// iSCSI name.
    pub target_name: String,
    /// `host:port,portal-group-tag`, each a portal.
    pub target_addresses: Vec<String>,
}

/// Something that the initiator should know without having asked (RFC 7143 §11.9).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AsyncMessage {
    /// A SCSI event on a logical unit.
    Scsi {
        /// Where.
        lun: Lun,
        /// Sense data that says what.
        sense: Vec<u8>,
    },
    /// The target will drop this lane.
    ConnectionDrop {
        /// Which.
        lane: LaneId,
        /// Seconds before a new connection makes sense.
        wait_seconds: u16,
    },
    /// The target will drop every connection of the session.
    SessionDrop {
        /// Seconds before a new session makes sense.
        wait_seconds: u16,
    },
}
