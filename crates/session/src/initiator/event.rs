//! The commands and functions that an owner gives to its session, and the events that the session reports.

use crate::seam::{Fault, LaneLoss, PayloadRef};
use pdu::{
    AsyncEvent as AsyncEventCode, BufferId, Cdb, Cid, Instant, LaneId, Lun, RejectReason, TaskAttribute,
    TaskManagementOutcome,
};

/// One SCSI task of this session, from its submission to its completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TaskId(pub u32);

/// One task management function in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FunctionId(pub u32);

/// Where a command's data lies. The buffer is lent to the session until [`Event::Release`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Data {
    /// The command transfers nothing.
    None,
    /// Data-In goes to this part of a buffer.
    In(PayloadRef),
    /// Data-Out comes from this part of a buffer.
    Out(PayloadRef),
}

/// A SCSI command to execute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// The addressed logical unit.
    pub lun: Lun,
    /// The order of its task in the unit's task set (RFC 7143 §11.3.1).
    pub attribute: TaskAttribute,
    /// The command itself, opaque here.
    pub cdb: Cdb,
    /// The direction of its data, and the buffer that holds them.
    pub data: Data,
}

/// The facts about a command that the placement policy needs to choose its lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    /// The name that the session gave the command.
    pub task: TaskId,
    /// Bytes to send.
    pub data_out_bytes: u32,
    /// Bytes to receive.
    pub data_in_bytes: u32,
}

/// Why a command was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SubmitError {
    /// [`crate::parameters::InitiatorLimits::commands_max`] commands are queued or outstanding.
    #[error("the session's queue of commands is full")]
    Full,
    /// The session has ended or is logging out.
    #[error("the session is closed")]
    Closed,
    /// A discovery session carries no SCSI commands (RFC 7143 §4.3).
    #[error("a discovery session carries no commands")]
    Discovery,
}

/// A command's end, as the target reported it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The command that ended.
    pub task: TaskId,
    /// Whether the iSCSI response code is "Command Completed at Target", so that `status` is meaningful (RFC 7143
    /// §11.4.3).
    pub delivered: bool,
    /// SCSI status byte (SAM-5).
    pub status: u8,
    /// Sense data, if any.
    pub sense: Vec<u8>,
    /// Bytes of the announced length that were not transferred.
    pub underflow_bytes: u32,
    /// Bytes that did not fit the announced length.
    pub overflow_bytes: u32,
    /// Data-In bytes that arrived in the buffer.
    pub data_in_bytes: u32,
    /// Data-Out bytes that were sent, solicited or not; all of them for a command that was sent twice, of which either copy
    /// may have been answered. A write is complete only if this is its whole length.
    pub data_out_bytes: u32,
}

/// What a session tells its owner.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each variant says what its task, function and lane are")]
pub enum Event {
    /// The target ended a command. [`Self::Release`] gives its buffer back.
    Completed(Completion),
    /// A command will never be answered: it was aborted, or the session ended. If `started` is true, nobody knows
    /// whether the target carried it out.
    Lost {
        task: TaskId,
        /// Whether any byte of the command may have left.
        started: bool,
    },
    /// The session no longer uses a buffer lent in [`Data`]: it reads nothing more into it and pulls nothing more from
    /// it, though PDUs pulled before may still refer to it. Follows [`Self::Completed`] or [`Self::Lost`]. After a loss
    /// with `started`, the target may still be executing a write; the owner must keep the write's range fenced until
    /// the nexus is proven dead (RFC 7143 §6.3.5).
    Release(BufferId),
    /// A task management function was answered.
    FunctionDone {
        function: FunctionId,
        /// The target's response, or this side's if the target was not asked.
        response: TaskManagementOutcome,
    },
    /// The target sent an asynchronous message (RFC 7143 §11.9). The session has already reacted as the protocol
    /// demands: a lane or session that the target wants logged out is draining, one that it drops is being closed.
    Async(AsyncEvent),
    /// The answer to [`super::Session::send_targets`], complete: see [`crate::discovery`].
    SendTargets {
        /// The lane on which SendTargets was sent.
        lane: LaneId,
        /// Key=value pairs, each ended by a null byte.
        text: Vec<u8>,
    },
    /// The target refused [`super::Session::send_targets`].
    SendTargetsRefused {
        /// The lane on which SendTargets was sent.
        lane: LaneId,
        /// The reason of the target's Reject.
        reason: RejectReason,
    },
    /// Send what is left for this lane, then close it.
    CloseLane {
        lane: LaneId,
        /// Whether the lane was logged out or broke.
        loss: LaneLoss,
        /// The fault that made the lane unusable, if one did.
        fault: Option<Fault>,
    },
    /// A connection broke, and its tasks are kept for another (error recovery level 2). Its text exchanges will not be
    /// answered; the session recovers everything else. While other lanes are left, the owner need not do anything. It
    /// may add a further connection, but then with a new CID and not with this one's.
    ///
    /// If the connection was the last, the session needs another to go on: by a login to its TSIH with the lost
    /// connection's CID, which reinstates it (RFC 7143 §6.3.4), or with a new CID. If none comes in time, the session
    /// ends.
    ConnectionLost {
        lane: LaneId,
        cid: Cid,
        /// Whether the session has no other lane.
        is_last: bool,
        /// The earliest time to log in again: after DefaultTime2Wait.
        not_before: Instant,
        /// When the target forgets the tasks: DefaultTime2Retain after `not_before`.
        until: Instant,
    },
    /// The session is over: it has no lane, and every task has been completed or reported lost. Task management
    /// functions and text exchanges that were not answered until now never will be. Below error recovery level 2 the
    /// loss of one connection ends the session; log in again with the same ISID to reinstate it.
    Ended {
        /// Whether the session ended by logout.
        orderly: bool,
    },
}

/// An asynchronous message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AsyncEvent {
    /// The kind of event, with its parameters.
    pub code: AsyncEventCode,
    /// The logical unit concerned, for a SCSI event.
    pub lun: Lun,
    /// Sense data of a SCSI event.
    pub sense: Vec<u8>,
    /// The lane on which it came.
    pub lane: LaneId,
}

/// The targets that SendTargets asks for (RFC 7143 appendix C).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SendTargets {
    /// All targets that this initiator may use; only in a discovery session.
    All,
    /// This normal session's own target.
    Own,
    /// The target of this iSCSI name.
    Named(String),
}

/// Why SendTargets was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendTargetsError {
    /// There is no such lane, or it is being logged out.
    #[error("the connection is closed")]
    Closed,
    /// A text exchange is in progress on this lane.
    #[error("another text exchange is in progress on this connection")]
    Busy,
    /// The name is longer than an iSCSI name can be (RFC 7143 §4.2.7.1).
    #[error("the target's name is too long")]
    NameTooLong,
}

/// One lane as its driver or a placement policy sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaneState {
    /// Whether [`super::Session::start`] takes this lane: it is not being logged out or closed.
    pub accepts_commands: bool,
    /// Whether [`super::Session::reassign`] takes this lane.
    pub accepts_orphans: bool,
    /// Commands placed on it and not answered.
    pub outstanding_commands: u32,
    /// Bytes of those commands' data that have not left for the target.
    pub outstanding_out_bytes: u64,
    /// Bytes of those commands' data that have not come from the target.
    pub outstanding_in_bytes: u64,
    /// Bytes of headers and data that were pulled and have not left.
    pub unsent_bytes: u64,
    /// A PDU has arrived in part.
    pub is_receiving: bool,
}

impl LaneState {
    /// Bytes of the outstanding commands' data that have not moved yet, in both directions.
    #[must_use]
    pub fn outstanding_bytes(&self) -> u64 {
        self.outstanding_out_bytes + self.outstanding_in_bytes
    }
}

/// A task management function to request (RFC 7143 §11.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskFunction {
    /// ABORT TASK: this task.
    AbortTask(TaskId),
    /// ABORT TASK SET: this initiator's tasks on a logical unit.
    AbortTaskSet(Lun),
    /// CLEAR TASK SET: all initiators' tasks on a logical unit.
    ClearTaskSet(Lun),
    /// LOGICAL UNIT RESET.
    LogicalUnitReset(Lun),
    /// TARGET WARM RESET: all logical units; sessions go on.
    TargetWarmReset,
    /// TARGET COLD RESET: all logical units; the target ends all sessions.
    TargetColdReset,
}
