//! The interface between a driver and a policy: a lane for the next command.

use crate::lane_sample::LaneSample;
use pdu::{Instant, LaneId};

/// The command at the head of a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Demand {
    /// Bytes to the target.
    pub data_out_bytes: u32,
    /// Bytes from the target.
    pub data_in_bytes: u32,
    /// Bytes of all commands in the queue, this one included, in both directions.
    pub queued_bytes: u64,
    /// The command may be cut in two, because it reads or writes consecutive blocks, and other connections exist or are
    /// wanted. The rest then stays at the head of the queue.
    pub may_be_cut: bool,
    /// The connections that there are to be over all sessions that carry the unit, those that have not logged in
    /// included.
    pub connections_wanted: u32,
    /// The first connections are being made, and most of those wanted will be there within a few round trips.
    pub is_growing: bool,
    /// Later commands cannot go on without this one, which has lost its connection: the target waits for its number.
    pub is_urgent: bool,
}

impl Demand {
    /// The command's bytes in both directions.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        u64::from(self.data_out_bytes) + u64::from(self.data_in_bytes)
    }
}

/// A lane for a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The lane.
    pub lane: LaneId,
    /// The bytes of the command that the lane should carry. The driver cuts a longer command that
    /// [may be cut](Demand::may_be_cut) at a whole number of blocks.
    pub bytes_max: u64,
}

impl Choice {
    /// The whole command on this lane.
    #[must_use]
    pub fn whole(lane: LaneId) -> Self {
        Self { lane, bytes_max: u64::MAX }
    }
}

/// Chooses a connection for each command, when the command is about to leave, and again for one whose connection broke
/// while its session lives on (error recovery level 2).
///
/// A policy decides everything about lanes. The driver shows it every connection of every session that carries the
/// command's unit, including those that cannot take a command at present ([`LaneSample::obstacle`]); of a split session,
/// only the connection of its requests.
pub trait Placement: Send {
    /// Whether the policy reads [`LaneSample::path`]. A measurement costs a system call, about a microsecond, so the
    /// driver makes none for a policy that does not.
    fn wants_measurements(&self) -> bool {
        false
    }

    /// The lane for the command at the head of a queue, or for one that has lost its connection: a usable one of
    /// `lanes`, of which there is at least one. `now` and `lanes` describe this instant.
    ///
    /// `None` holds back the command, and all that are queued behind it, rather than place it behind a stalled
    /// connection. The driver asks again whenever bytes leave or arrive on any connection, a command ends, or a
    /// connection comes or goes; and, if the policy wants measurements, when they are out of date. Idle lanes
    /// ([`LaneSample::is_idle`]) cause none of these events: if all lanes are idle, a policy must choose one.
    fn place(&mut self, now: Instant, demand: Demand, lanes: &[LaneSample]) -> Option<Choice>;

    /// A lane is gone, and will not be shown again.
    fn forget(&mut self, lane: LaneId) {
        let _ = lane;
    }
}
