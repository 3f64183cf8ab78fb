//! Errors, by the party at fault.

use crate::durability::Generation;
use crate::path_acceptance::{Name, PathRefusal};
use crate::{Portal, ReservationHolder};
use framing::SocketOptionsError;
use pdu::{Lun, TaskManagementOutcome};
use scsi::Status;
use scsi::client::{Designator, SenseData};
use session::discovery::InvalidTargetList;
use session::login;
use std::io;
use std::sync::Arc;

/// The reason for the failure of an operation.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the message shows what the command and the unit are")]
pub enum Error {
    /// The caller is at fault; a repetition would fail again.
    #[error(transparent)]
    Usage(#[from] UsageError),
    /// The network is at fault, or the target is absent; a later attempt may succeed.
    #[error(transparent)]
    Network(#[from] Arc<NetworkError>),
    /// The target refuses this initiator, or violates iSCSI during login.
    #[error(transparent)]
    Login(#[from] LoginError),
    /// The target refused or failed the command.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// The nexus was lost with the command outstanding, and the old nexus was not proven dead: the target may have
    /// executed the command, or may yet do so. The blocks of a write stay closed to writes through this
    /// [`crate::Target`].
    #[error(
        "the connection to logical unit {lun} was lost during {command}, and whether it was done is unknown: check the data"
    )]
    OutcomeUnknown { command: &'static str, lun: Lun },
    /// Acknowledged writes may be lost: their nexus was lost before a flush, perhaps with the target, or the unit
    /// failed to write them to the medium. Repeat every write that was acknowledged since the last successful flush,
    /// and flush again. Each [`crate::Lun`] is told once.
    #[error(
        "writes since the last flush may be lost, with a connection or in the target's cache: repeat them, and \
         flush again"
    )]
    WritesLost {
        /// The generation that begins now.
        generation: Generation,
    },
}

/// A mistake of the caller.
#[derive(Clone, Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the message shows what each field is")]
pub enum UsageError {
    /// Offset or length is not a multiple of the block length.
    #[error(
        "offset {offset} and length {bytes} of {command} must be multiples of the block length, {block_bytes}"
    )]
    Misaligned { command: &'static str, offset: u64, bytes: u64, block_bytes: u32 },
    /// The range ends beyond the unit's capacity.
    #[error("{command} of {bytes} bytes at offset {offset} goes beyond the capacity, {capacity_bytes} bytes")]
    OutOfRange { command: &'static str, offset: u64, bytes: u64, capacity_bytes: u64 },
    /// The buffer budget is used up, or the buffer would exceed [`block::BUFFER_BYTES_MAX`].
    #[error(
        "no buffer of {bytes} bytes: the budget is {budget_bytes} bytes; wait for commands to end, or raise it"
    )]
    NoBuffer { bytes: usize, budget_bytes: usize },
    /// The device does not implement the command.
    #[error("logical unit {lun} does not support {command}")]
    Unsupported { command: &'static str, lun: Lun },
    /// [`crate::OPERATIONS_MAX`] operations are already outstanding.
    #[error("too many operations are waiting: let some end first")]
    TooManyOperations,
    /// An earlier write to these blocks has an unknown outcome ([`Error::OutcomeUnknown`]) and might overtake this one.
    #[error("these blocks are closed: an earlier write to them was lost and may yet be done; connect anew")]
    Closed,
    /// The caller has closed the target.
    #[error("the session was closed")]
    SessionClosed,
    /// The configured initiator name is invalid.
    #[error(transparent)]
    InitiatorName(#[from] session::name::InvalidName),
    /// The URL is invalid.
    #[error(transparent)]
    Url(#[from] crate::InvalidUrl),
    /// The configuration contradicts itself; the text says how.
    #[error("{0}")]
    Config(&'static str),
}

/// A failure of the network on the way to the target.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the message shows what each field is")]
pub enum NetworkError {
    /// No address of the portal accepted a connection.
    #[error("cannot connect to {portal}: {source}")]
    Connect { portal: Portal, source: io::Error },
    /// The system refused a socket option.
    #[error("connection to {portal}: {source}")]
    SocketOptions { portal: Portal, source: SocketOptionsError },
    /// The connection broke during login or discovery.
    #[error("the connection to {portal} broke during {during}: {source}")]
    Broken {
        portal: Portal,
        /// The phase: login or discovery.
        during: &'static str,
        source: io::Error,
    },
    /// The system provides no random numbers.
    #[error("no random numbers for a session's identity: {source}")]
    Entropy { source: io::Error },
    /// The phase took longer than [`crate::Config::login_timeout`].
    #[error("no answer from {portal} during {during}")]
    Timeout {
        portal: Portal,
        /// The phase: login or discovery.
        during: &'static str,
    },
    /// Every session is lost, and [`crate::Reconnect::give_up_after`] has passed.
    #[error("every connection to {target} is lost; the last attempt to come back failed: {last}")]
    PathsLost { target: String, last: String },
}

/// The reason for a failed login.
#[derive(Clone, Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the message shows what each field is")]
pub enum LoginError {
    /// The login ended with this failure.
    #[error("login to {target} at {portal}: {failure}")]
    Failed {
        /// The target's name; "discovery" in a discovery session.
        target: String,
        portal: Portal,
        failure: login::initiator::Failure,
    },
    /// The target's redirection cannot be followed.
    #[error("{portal} redirects the login to {address:?}, {problem}")]
    Redirection {
        /// The last portal tried.
        portal: Portal,
        address: String,
        problem: &'static str,
    },
    /// The list of targets is malformed.
    #[error("the list of targets from {portal}: {reason}")]
    TargetList { portal: Portal, reason: InvalidTargetList },
}

/// A target's refusal or failure of a command.
#[derive(Clone, Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the message shows what each field is")]
pub enum TargetError {
    /// The command ended with CHECK CONDITION.
    #[error("{command} at logical unit {lun} failed: {sense}")]
    CheckCondition { command: &'static str, lun: Lun, sense: SenseData },
    /// The command ended with a status other than GOOD and without sense data, or was not delivered.
    #[error("{command} at logical unit {lun} failed with {}", StatusName(*status))]
    Status {
        command: &'static str,
        lun: Lun,
        /// The status byte; `None` if the target failed to deliver the command to the unit.
        status: Option<u8>,
    },
    /// The command ended with GOOD, but moved less data than it must.
    #[error("{command} at logical unit {lun} moved {found} bytes instead of {expected}")]
    Short {
        command: &'static str,
        lun: Lun,
        /// Bytes that arrived, or that the target accepted.
        found: u32,
        /// Bytes that the command had to move.
        expected: u32,
    },
    /// The target answers pings but not the command. The command was aborted, its session reinstated if necessary, and
    /// the command sent once more if that was safe, without success.
    #[error(
        "{command} at logical unit {lun} was not answered for {seconds} seconds on a connection that lives: it was aborted; does the storage behind the target hang?"
    )]
    Unanswered {
        command: &'static str,
        lun: Lun,
        /// The time without progress at each attempt.
        seconds: u64,
    },
    /// The target did not carry out a task management function.
    #[error("{function} at logical unit {lun} was not done: the target answers {outcome:?}")]
    Function {
        function: &'static str,
        lun: Lun,
        /// The target's answer (RFC 7143 §11.6.1).
        outcome: TaskManagementOutcome,
    },
    /// The answer contradicts the standard or itself.
    #[error("{command} at logical unit {lun}: {problem}")]
    Nonsense { command: &'static str, lun: Lun, problem: &'static str },
    /// The logical unit is absent, or is not a disk.
    #[error(
        "logical unit {lun} is not a disk (peripheral qualifier {qualifier}, device type {device_type:#04x})"
    )]
    NotADisk {
        lun: Lun,
        /// PERIPHERAL QUALIFIER (SPC-4 §6.6.2).
        qualifier: u8,
        /// PERIPHERAL DEVICE TYPE (SPC-4 §6.6.2).
        device_type: u8,
    },
    /// Somebody else holds a persistent reservation.
    #[error("logical unit {lun} is reserved by {holder}")]
    Reserved { lun: Lun, holder: ReservationHolder },
    /// The reservation of this initiator has ended without its doing, and nobody holds one.
    #[error("the reservation of logical unit {lun} is gone: others may have written to it")]
    ReservationLost { lun: Lun },
    /// Another unit, or the same with another size, answers under this LUN than before.
    #[error("logical unit {lun} ({}) cannot be used over this path: {refusal}", Name(designator))]
    Changed {
        lun: Lun,
        /// The designator of the earlier unit.
        designator: Option<Designator>,
        refusal: PathRefusal,
    },
}

impl TargetError {
    /// A unit that cannot be used because it says that it has changed whenever it is looked at.
    pub(crate) const fn restless(lun: Lun) -> Self {
        Self::Nonsense {
            command: "INQUIRY",
            lun,
            problem: "it says that it changes whenever it is looked at",
        }
    }
}

struct StatusName(Option<u8>);

impl std::fmt::Display for StatusName {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        const CHECK_CONDITION: u8 = Status::CheckCondition.code();
        const BUSY: u8 = Status::Busy.code();
        const RESERVATION_CONFLICT: u8 = Status::ReservationConflict.code();
        const TASK_SET_FULL: u8 = Status::TaskSetFull.code();
        const TASK_ABORTED: u8 = Status::TaskAborted.code();
        let name = match self.0 {
            None => return formatter.write_str("an iSCSI target failure"),
            Some(CHECK_CONDITION) => "CHECK CONDITION without sense data",
            Some(BUSY) => "BUSY",
            Some(RESERVATION_CONFLICT) => "RESERVATION CONFLICT: another initiator has reserved it",
            Some(TASK_SET_FULL) => "TASK SET FULL",
            Some(0x30) => "ACA ACTIVE",
            Some(TASK_ABORTED) => "TASK ABORTED",
            Some(status) => return write!(formatter, "status {status:#04x}"),
        };
        formatter.write_str(name)
    }
}

impl From<NetworkError> for Error {
    fn from(error: NetworkError) -> Self {
        Self::Network(Arc::new(error))
    }
}

impl Error {
    /// The sense data of the failed command, if it had any.
    #[must_use]
    pub fn sense(&self) -> Option<&SenseData> {
        match self {
            Self::Target(TargetError::CheckCondition { sense, .. }) => Some(sense),
            _ => None,
        }
    }

    /// Whether the unit is reserved for somebody else, or was, by whichever kind of reservation.
    #[must_use]
    pub fn is_reservation_conflict(&self) -> bool {
        const CONFLICT: u8 = Status::ReservationConflict.code();
        matches!(
            self,
            Self::Target(
                TargetError::Reserved { .. }
                    | TargetError::ReservationLost { .. }
                    | TargetError::Status { status: Some(CONFLICT), .. }
            )
        )
    }
}

impl From<crate::InvalidUrl> for Error {
    fn from(error: crate::InvalidUrl) -> Self {
        Self::Usage(UsageError::Url(error))
    }
}
