//! A command between its arrival and its answer.

use crate::logical_unit::LogicalUnit;
use block::Payload;
use futures_channel::oneshot;
use scsi::Step;
use session::target::Command;
use std::rc::Rc;

/// A command that was handed out and is not answered.
pub(crate) struct Task {
    pub command: Command,
    pub unit: Rc<LogicalUnit>,
    /// The operation that carries it out.
    pub step: Step,
    /// Its Data-Out, once it has arrived.
    pub data: Option<Payload>,
    /// The length of the transfer that the command asks for, for the residual count.
    pub wanted_bytes: u32,
    /// Block data handed to the session.
    pub delivered_bytes: u32,
    /// Its response is fenced (RFC 7143 §4.2.2.3.4).
    pub is_fenced: bool,
    /// Its response is suppressed, so it may stop early.
    pub aborted: bool,
    /// Waiters for its end; dropped with it.
    pub ends: Vec<oneshot::Sender<()>>,
    /// Set while it has started and waits for its turn at certain blocks.
    pub turn: Option<oneshot::Sender<()>>,
    /// Set while it is a read that waits for its turn; dropped if it is aborted.
    pub until_aborted: Option<oneshot::Sender<()>>,
    /// Waiters for the end of the piece that it copies now; dropped with the piece.
    pub piece_ends: Vec<oneshot::Sender<()>>,
}

impl Task {
    /// Suppresses its response, and lets it stop early.
    pub(crate) fn abort(&mut self) {
        self.aborted = true;
        self.until_aborted = None;
    }
}
