//! Where the next command goes.

use pdu::{Instant, LaneId};

/// What the command at the head of a session's queue will move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    /// Bytes to the target.
    pub data_out_bytes: u32,
    /// Bytes from the target.
    pub data_in_bytes: u32,
}

/// One connection as a policy sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneState {
    /// Which.
    pub lane: LaneId,
    /// Commands that were placed on it and have not been answered.
    pub outstanding_commands: u32,
    /// Bytes of those commands' data that have not moved yet, both directions.
    pub outstanding_bytes: u64,
}

/// Chooses a connection for each command, at the moment at which the command is about to leave.
pub trait Placement: Send {
    /// `now` and `lanes` describe this instant; lanes that must not be used (full, logging out) are already
    /// left out. `None` holds the command back: better late than behind a stalled connection. The policy is
    /// asked again whenever a lane's state changes.
    fn place(&mut self, now: Instant, demand: Demand, lanes: &[LaneState]) -> Option<LaneId>;
}
