//! A command on its way through the client.

use super::slots::OperationId;
use crate::durability::{CacheLosses, FlushMark};
use crate::path_id::PathId;
use crate::retry::{CommandKind, Ending};
use pdu::{Cdb, Instant, Lun, TaskAttribute};
use scsi::Extent;
use session::initiator::Data;

/// One command of an operation, from its submission until its outcome is known.
#[derive(Clone)]
pub(super) struct Request {
    pub operation: OperationId,
    pub lun: Lun,
    pub kind: CommandKind,
    pub cdb: Cdb,
    pub data: Data,
    pub extent: Extent,
    /// Whether a short transfer is an error.
    pub exact: bool,
    /// The only path that may carry it; `None` for any path to the unit.
    pub path: Option<PathId>,
    /// Whether its write needs a flush to be durable.
    pub dirties: bool,
    pub attribute: TaskAttribute,
    /// The cache losses of its unit that were known when a session took it.
    pub losses: CacheLosses,
    /// Its number in the order in which sessions took commands.
    pub placed: u64,
    /// When a session took it.
    pub placed_at: Instant,
    /// How often it exceeded the command limit.
    pub overdue: u32,
    /// For a SYNCHRONIZE CACHE: the writes that it covers.
    pub flush: Option<FlushMark>,
    /// The time of the target's first decline.
    pub declined_since: Option<Instant>,
    /// How often it was declined or got a unit attention.
    pub attempts: u32,
}

impl Request {
    /// A command without an effect, to be filled in.
    pub fn new(operation: OperationId, lun: Lun) -> Self {
        Self {
            operation,
            lun,
            kind: CommandKind::Read,
            cdb: [0; Cdb::INLINE_BYTES].into(),
            data: Data::None,
            extent: Extent::default(),
            exact: false,
            path: None,
            dirties: false,
            attribute: TaskAttribute::Simple,
            losses: CacheLosses::default(),
            placed: 0,
            placed_at: Instant::ZERO,
            overdue: 0,
            flush: None,
            declined_since: None,
            attempts: 0,
        }
    }

    /// Whether it asks this one path about the unit, or about its reservation.
    pub const fn is_question(&self) -> bool {
        self.path.is_some() && self.flush.is_none()
    }

    /// Whether it is one of several questions whose order matters: it is not sent again, because that would be behind
    /// commands that were sent after it.
    pub fn is_in_order(&self) -> bool {
        self.is_question() && self.attribute == TaskAttribute::Ordered
    }

    /// A conflict ends a command before it begins, but may end EXTENDED COPY amid its segments.
    pub const fn ending_of_conflict(&self) -> Ending {
        match self.kind {
            CommandKind::Once => Ending::Failed,
            _ => Ending::Told,
        }
    }
}
