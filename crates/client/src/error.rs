//! What can go wrong, by who is at fault.

use crate::{Portal, ReservationHolder};
use framing::SocketOptionsError;
use nexus::initiator::{Generation, PathRefusal};
use pdu::{Lun, TaskManagementOutcome};
use scsi::client::{Designator, SenseData};
use session::discovery::InvalidTargetList;
use session::login;
use std::io;
use std::sync::Arc;

/// Why something was not done.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The caller's fault: asked again, it would fail again.
    #[error(transparent)]
    Usage(#[from] UsageError),
    /// The way to the target, or the target's absence, is at fault: it may work later.
    #[error(transparent)]
    Network(#[from] Arc<NetworkError>),
    /// The target does not let this initiator in, or does not speak iSCSI as it should.
    #[error(transparent)]
    Login(#[from] LoginError),
    /// The target refused or failed the command.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// The nexus was lost with the command outstanding, and the old nexus was not proven dead: whether the
    /// command was done, or will yet be done, is not known. Blocks that it writes stay closed to writes
    /// through this [`crate::Session`].
    #[error(
        "the connection to logical unit {lun} was lost during {command}, and whether it was done is unknown: check the data"
    )]
    OutcomeUnknown {
        /// What.
        command: &'static str,
        /// At which unit.
        lun: Lun,
    },
    /// Writes that had been acknowledged may be lost: their nexus was lost before they were flushed, perhaps with
    /// the target, or the unit says that it failed to write them. Write again what was acknowledged since the last
    /// successful flush, and flush again. Each [`crate::Lun`] is told once.
    #[error(
        "what was written since the last flush may be lost, with a connection or in the target's cache: write it \
         again, and flush again"
    )]
    WritesLost {
        /// The generation that begins now.
        generation: Generation,
    },
}

/// What a caller did wrong.
#[derive(Clone, Debug, thiserror::Error)]
pub enum UsageError {
    /// Not a whole number of blocks.
    #[error(
        "offset {offset} and length {bytes} of {command} must be multiples of the block length, {block_bytes}"
    )]
    Misaligned {
        /// What was asked.
        command: &'static str,
        /// Where.
        offset: u64,
        /// How much.
        bytes: u64,
        /// The unit's block length.
        block_bytes: u32,
    },
    /// Beyond the end.
    #[error("{command} of {bytes} bytes at offset {offset} goes beyond the capacity, {capacity_bytes} bytes")]
    OutOfRange {
        /// What was asked.
        command: &'static str,
        /// Where.
        offset: u64,
        /// How much.
        bytes: u64,
        /// The unit's capacity.
        capacity_bytes: u64,
    },
    /// The buffer budget is used up, or a buffer longer than [`block::BUFFER_BYTES_MAX`] was wanted.
    #[error(
        "no buffer of {bytes} bytes: the budget is {budget_bytes} bytes; wait for commands to end, or raise it"
    )]
    NoBuffer {
        /// How much was wanted.
        bytes: usize,
        /// [`crate::Config::buffer_budget_bytes`].
        budget_bytes: usize,
    },
    /// The device has no such command.
    #[error("logical unit {lun} does not support {command}")]
    Unsupported {
        /// What was asked.
        command: &'static str,
        /// Of which unit.
        lun: Lun,
    },
    /// More operations than [`crate::OPERATIONS_MAX`] have not ended.
    #[error("too many operations are waiting: let some end first")]
    TooManyOperations,
    /// An earlier write there was lost for good ([`Error::OutcomeUnknown`]): another could be overtaken by it.
    #[error("these blocks are closed: an earlier write to them was lost and may yet be done; connect anew")]
    Closed,
    /// The session was closed.
    #[error("the session was closed")]
    SessionClosed,
    /// An initiator's name that is none.
    #[error(transparent)]
    InitiatorName(#[from] session::name::InvalidName),
    /// A URL that cannot be understood.
    #[error(transparent)]
    Url(#[from] crate::InvalidUrl),
    /// A configuration that cannot work.
    #[error("{0}")]
    Config(&'static str),
}

/// What is wrong with the way to the target.
#[derive(Debug, thiserror::Error)]
pub enum NetworkError {
    /// No connection.
    #[error("cannot connect to {portal}: {source}")]
    Connect {
        /// Where to.
        portal: Portal,
        /// What the system said.
        source: io::Error,
    },
    /// A socket option.
    #[error("connection to {portal}: {source}")]
    SocketOptions {
        /// Where to.
        portal: Portal,
        /// Which option.
        source: SocketOptionsError,
    },
    /// The connection broke during login or discovery.
    #[error("the connection to {portal} broke during {during}: {source}")]
    Broken {
        /// Where to.
        portal: Portal,
        /// When.
        during: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// The system gives no random numbers.
    #[error("no random numbers for a session's identity: {source}")]
    Entropy {
        /// What the system said.
        source: io::Error,
    },
    /// It took longer than [`crate::Config::login_timeout`].
    #[error("no answer from {portal} during {during}")]
    Timeout {
        /// Where to.
        portal: Portal,
        /// When.
        during: &'static str,
    },
    /// Every session is lost, and [`crate::Reconnect::give_up_after`] is over.
    #[error("every connection to {target} is lost; the last attempt to come back failed: {last}")]
    PathsLost {
        /// The target's name.
        target: String,
        /// What the last attempt ran into.
        last: String,
    },
}

/// Why a login failed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum LoginError {
    /// What the protocol says.
    #[error("login to {target} at {portal}: {failure}")]
    Failed {
        /// The target's name; "discovery" in a discovery session.
        target: String,
        /// Where.
        portal: Portal,
        /// Why.
        failure: login::initiator::Failure,
    },
    /// The target sends the initiator from address to address.
    #[error("{portal} redirects the login to {address:?}, {problem}")]
    Redirection {
        /// The last portal tried.
        portal: Portal,
        /// Where it points.
        address: String,
        /// Why it is not followed.
        problem: &'static str,
    },
    /// The list of targets cannot be understood.
    #[error("the list of targets from {portal}: {reason}")]
    TargetList {
        /// From where.
        portal: Portal,
        /// What is wrong with it.
        reason: InvalidTargetList,
    },
    /// The peer breaks the protocol after login.
    #[error("{portal} broke the protocol: {reason}")]
    Protocol {
        /// Who.
        portal: Portal,
        /// How.
        reason: String,
    },
}

/// How a target refused or failed a command.
#[derive(Clone, Debug, thiserror::Error)]
pub enum TargetError {
    /// CHECK CONDITION.
    #[error("{command} at logical unit {lun} failed: {sense}")]
    CheckCondition {
        /// What.
        command: &'static str,
        /// At which unit.
        lun: Lun,
        /// Why.
        sense: SenseData,
    },
    /// Another status than GOOD, without sense data; or no delivery at all.
    #[error("{command} at logical unit {lun} failed with {}", StatusName(*status))]
    Status {
        /// What.
        command: &'static str,
        /// At which unit.
        lun: Lun,
        /// The status byte; `None` if the target failed to deliver the command to the unit.
        status: Option<u8>,
    },
    /// GOOD, but less data than the command must move.
    #[error("{command} at logical unit {lun} moved {found} bytes instead of {expected}")]
    Short {
        /// What.
        command: &'static str,
        /// At which unit.
        lun: Lun,
        /// Bytes that came, or that the target took.
        found: u32,
        /// Bytes that were due.
        expected: u32,
    },
    /// The target answers pings, and not the command. It was aborted, the session was made anew if need be, and what may be
    /// repeated was sent once more, as much in vain.
    #[error(
        "{command} at logical unit {lun} was not answered for {seconds} seconds on a connection that lives: it was aborted; does the storage behind the target hang?"
    )]
    Unanswered {
        /// What.
        command: &'static str,
        /// At which unit.
        lun: Lun,
        /// How long it stood still, each time.
        seconds: u64,
    },
    /// A task management function was not done.
    #[error("{function} at logical unit {lun} was not done: the target answers {outcome:?}")]
    Function {
        /// Which.
        function: &'static str,
        /// At which unit.
        lun: Lun,
        /// The target's answer (RFC 7143 §11.6.1).
        outcome: TaskManagementOutcome,
    },
    /// An answer that makes no sense.
    #[error("{command} at logical unit {lun}: {problem}")]
    Nonsense {
        /// What.
        command: &'static str,
        /// At which unit.
        lun: Lun,
        /// What is wrong with the answer.
        problem: &'static str,
    },
    /// Not a disk, or nothing there.
    #[error(
        "logical unit {lun} is not a disk (peripheral qualifier {qualifier}, device type {device_type:#04x})"
    )]
    NotADisk {
        /// Which unit.
        lun: Lun,
        /// PERIPHERAL QUALIFIER.
        qualifier: u8,
        /// PERIPHERAL DEVICE TYPE.
        device_type: u8,
    },
    /// Somebody else holds a persistent reservation.
    #[error("logical unit {lun} is reserved by {holder}")]
    Reserved {
        /// Which unit.
        lun: Lun,
        /// Who holds it.
        holder: ReservationHolder,
    },
    /// Another unit, or the same with another size, answers under this LUN than before.
    #[error("logical unit {lun} is no longer the one that was opened ({}): {refusal}", Name(designator.as_ref()))]
    Changed {
        /// Which unit.
        lun: Lun,
        /// Who it was.
        designator: Option<Designator>,
        /// What is different.
        refusal: PathRefusal,
    },
}

struct Name<'a>(Option<&'a Designator>);

impl std::fmt::Display for Name<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Some(name) => name.fmt(formatter),
            None => formatter.write_str("without a designator"),
        }
    }
}

struct StatusName(Option<u8>);

impl std::fmt::Display for StatusName {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = match self.0 {
            None => return formatter.write_str("an iSCSI target failure"),
            Some(0x02) => "CHECK CONDITION without sense data",
            Some(0x08) => "BUSY",
            Some(0x18) => "RESERVATION CONFLICT: another initiator has reserved it",
            Some(0x28) => "TASK SET FULL",
            Some(0x30) => "ACA ACTIVE",
            Some(0x40) => "TASK ABORTED",
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
    /// Sense data of the command that failed, if it came with any.
    #[must_use]
    pub fn sense(&self) -> Option<&SenseData> {
        match self {
            Self::Target(TargetError::CheckCondition { sense, .. }) => Some(sense),
            _ => None,
        }
    }

    /// Whether the unit is reserved for somebody else, by whichever kind of reservation.
    #[must_use]
    pub fn is_reservation_conflict(&self) -> bool {
        const CONFLICT: u8 = scsi::Status::ReservationConflict.code();
        matches!(
            self,
            Self::Target(TargetError::Reserved { .. } | TargetError::Status { status: Some(CONFLICT), .. })
        )
    }
}

impl From<crate::InvalidUrl> for Error {
    fn from(error: crate::InvalidUrl) -> Self {
        Self::Usage(UsageError::Url(error))
    }
}
