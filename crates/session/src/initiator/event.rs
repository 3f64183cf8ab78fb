//! What an initiator's owner asks of its session, and what it is told.

use crate::seam::{Fault, LaneLoss, PayloadRef};
use pdu::{AsyncEvent as AsyncEventCode, BufferId, Cdb, LaneId, Lun, TaskAttribute, TaskManagementOutcome};

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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

/// What the placement policy may know of the command at the head of the queue.
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
    /// A buffer lent in [`Data`] is no longer named by the session: at completion, or when the nexus is proven dead.
    Release(BufferId),
    /// A task management function was answered.
    FunctionDone {
        /// Which.
        function: FunctionId,
        /// How.
        response: TaskManagementOutcome,
    },
    /// The target sent an asynchronous message (RFC 7143 §11.9).
    Async(AsyncEvent),
    /// Send what is left for this lane, then close it.
    CloseLane {
        /// Which.
        lane: LaneId,
        /// Whether anything is lost with it.
        loss: LaneLoss,
        /// What the peer did, if it was at fault.
        fault: Option<Fault>,
    },
    /// The session is over: every task has been completed or reported lost. At error recovery level 0 the loss
    /// of one connection ends the session; log in again with the same ISID to reinstate it.
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
    /// Parameter1 to Parameter3.
    pub parameters: [u16; 3],
    /// The lane on which it came.
    pub lane: LaneId,
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
