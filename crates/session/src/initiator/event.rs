//! What an initiator's owner asks of its session, and what it is told.

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

/// Where a command's data lies. The buffer belongs to the session until the completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Data {
    /// The command transfers nothing.
    None,
    /// Data-In goes here.
    In(PayloadRef),
    /// Data-Out comes from here.
    Out(PayloadRef),
}

/// A SCSI command to execute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// Addressed logical unit.
    pub lun: Lun,
    /// Task attribute.
    pub attribute: TaskAttribute,
    /// The command itself, opaque here.
    pub cdb: Cdb,
    /// Its data.
    pub data: Data,
}

/// What the placement policy may know of a command that needs a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    /// Which.
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

/// How a command ended at the target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completion {
    /// Which.
    pub task: TaskId,
    /// The iSCSI response code: `true` when the target carried the command out and `status` is meaningful
    /// (RFC 7143 §11.4.3).
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
    /// Data-Out bytes that the target asked for, or got unasked. A write is complete only if they are all.
    pub data_out_bytes: u32,
}

/// What a session tells its owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A command ended. Its buffer is the owner's again, except for PDUs already pulled.
    Completed(Completion),
    /// A command will never be answered: it was aborted, or the session ended. Whether the target carried
    /// it out is unknown, unless `started` is false.
    Lost {
        /// Which.
        task: TaskId,
        /// Whether any byte of it may have left.
        started: bool,
    },
    /// A buffer lent in [`Data`] is no longer named by the session: nothing more is read into it or pulled from it,
    /// though PDUs pulled before may still refer to it. Comes after [`Self::Completed`] or [`Self::Lost`]. After a
    /// loss with `started`, the target may still be executing a write; its range must stay fenced until the nexus is
    /// proven dead, which is its owner's business (RFC 7143 §6.3.5).
    Release(BufferId),
    /// A task management function was answered.
    FunctionDone {
        /// Which.
        function: FunctionId,
        /// How.
        response: TaskManagementOutcome,
    },
    /// The target sent an asynchronous message (RFC 7143 §11.9). What the protocol demands in answer is done already:
    /// a lane or session that the target wants logged out is draining, one that it drops is being closed.
    Async(AsyncEvent),
    /// The answer to [`super::Session::send_targets`], complete: see [`crate::discovery`].
    SendTargets {
        /// The lane that asked.
        lane: LaneId,
        /// Key=value pairs, each ended by a null byte.
        text: Vec<u8>,
    },
    /// The target refused [`super::Session::send_targets`].
    SendTargetsRefused {
        /// The lane that asked.
        lane: LaneId,
        /// Why.
        reason: RejectReason,
    },
    /// Send what is left for this lane, then close it.
    CloseLane {
        /// Which.
        lane: LaneId,
        /// Whether anything is lost with it.
        loss: LaneLoss,
        /// What the peer did, if it was at fault.
        fault: Option<Fault>,
    },
    /// A connection broke, and its tasks are kept for another (error recovery level 2). Text exchanges on it will not be
    /// answered; everything else goes on by itself. Nothing needs to be done while other lanes are left, though a
    /// further connection, with a CID of its own, is welcome; the CID of this one must not be used again then.
    ///
    /// If it was the last, the session needs a connection to go on: a login to its TSIH with the CID of this one,
    /// which then takes its place (RFC 7143 §6.3.4), or with a new one. If none has come in time, the session ends.
    ConnectionLost {
        /// Which.
        lane: LaneId,
        /// Its connection id.
        cid: Cid,
        /// Whether the session has no other lane.
        is_last: bool,
        /// When to log in, at the earliest: the target wants to be left alone for DefaultTime2Wait.
        not_before: Instant,
        /// When the target forgets the tasks: DefaultTime2Retain after that.
        until: Instant,
    },
    /// The session is over: it has no lane, and every task has been completed or reported lost. Task management
    /// functions and text exchanges that were not answered until now never will be. Below error recovery level 2 the
    /// loss of one connection ends the session; log in again with the same ISID to reinstate it.
    Ended {
        /// Whether by logout.
        orderly: bool,
    },
}

/// An asynchronous message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AsyncEvent {
    /// What happened.
    pub code: AsyncEventCode,
    /// The logical unit concerned, for a SCSI event.
    pub lun: Lun,
    /// Sense data of a SCSI event.
    pub sense: Vec<u8>,
    /// The lane on which it came.
    pub lane: LaneId,
}

/// Which targets to ask for (RFC 7143 appendix C).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SendTargets {
    /// All that this initiator may use; only in a discovery session.
    All,
    /// The one of this normal session.
    Own,
    /// One, by its iSCSI name.
    Named(String),
}

/// Why SendTargets was not asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendTargetsError {
    /// No such lane, or it is being logged out.
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
    /// Whether [`super::Session::start`] may choose it: it is not being logged out or closed.
    pub accepts_commands: bool,
    /// Whether [`super::Session::reassign`] may choose it.
    pub accepts_orphans: bool,
    /// Commands placed on it and not answered.
    pub outstanding_commands: u32,
    /// Bytes of those commands' data that have not left for the target.
    pub outstanding_out_bytes: u64,
    /// Bytes of those commands' data that have not come from the target.
    pub outstanding_in_bytes: u64,
    /// Bytes of headers and data that were pulled and have not left.
    pub unsent_bytes: u64,
}

impl LaneState {
    /// Bytes of the outstanding commands' data that have not moved yet, in both directions.
    #[must_use]
    pub fn outstanding_bytes(&self) -> u64 {
        self.outstanding_out_bytes + self.outstanding_in_bytes
    }
}

/// A task management function to ask for (RFC 7143 §11.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskFunction {
    /// One task.
    AbortTask(TaskId),
    /// This initiator's tasks on a logical unit.
    AbortTaskSet(Lun),
    /// All tasks on a logical unit.
    ClearTaskSet(Lun),
    /// A logical unit.
    LogicalUnitReset(Lun),
    /// The target, sessions living on.
    TargetWarmReset,
    /// The target, sessions ended.
    TargetColdReset,
}
