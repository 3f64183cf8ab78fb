//! The interface between a driver and a policy: a lane for the next command.

use crate::lane_sample::LaneSample;
use pdu::{Instant, LaneId};

/// The data of the command at the head of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    /// Bytes to the target.
    pub data_out_bytes: u32,
    /// Bytes from the target.
    pub data_in_bytes: u32,
}

/// Chooses a connection for each command, when the command is about to leave, and again for one whose connection broke
/// while its session lives on (error recovery level 2).
///
/// A policy decides everything about lanes. The driver shows it every connection of every session that carries the
/// command's unit, including those that cannot take a command ([`LaneSample::obstacle`]).
pub trait Placement: Send {
    /// Whether the policy reads [`LaneSample::path`]. A measurement costs a system call, about a microsecond, so the
    /// driver makes none for a policy that does not.
    fn wants_measurements(&self) -> bool {
        false
    }

    /// The lane for the command at the head of a queue, or for one that has lost its connection: a usable one of `lanes`, of which there is at least one. `now`
    /// and `lanes` describe this instant.
    ///
    /// `None` holds back the command, and all that are queued behind it, rather than place it behind a stalled
    /// connection. The driver asks again whenever bytes leave or arrive on any connection, a command ends, or a
    /// connection comes or goes. Idle lanes ([`LaneSample::is_idle`]) cause none of these events: if all lanes are
    /// idle, a policy must choose one.
    fn place(&mut self, now: Instant, demand: Demand, lanes: &[LaneSample]) -> Option<LaneId>;
}
