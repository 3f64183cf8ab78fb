//! The seam between a driver and a policy: a lane for the next command.

use crate::lane_sample::LaneSample;
use pdu::{Instant, LaneId};

/// Data that the command at the head of a queue will move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    /// Bytes to the target.
    pub data_out_bytes: u32,
    /// Bytes from the target.
    pub data_in_bytes: u32,
}

/// Chooses a connection for each command, at the moment at which the command is about to leave.
///
/// A policy decides everything about lanes. The driver shows it every connection of every session that carries the
/// command's unit, those that cannot take a command included ([`LaneSample::obstacle`]).
pub trait Placement: Send {
    /// Whether the policy reads [`LaneSample::path`]. A measurement costs a system call, about a microsecond, so the driver
    /// makes none for a policy that does not.
    fn wants_measurements(&self) -> bool {
        false
    }

    /// The lane for the command at the head of a queue: one of `lanes` that is usable, of which there is at least one.
    /// `now` and `lanes` describe this instant.
    ///
    /// `None` holds the command, and all that are queued behind it, back: better late than behind a stalled connection. The
    /// driver asks again whenever bytes leave or arrive on any connection, a command ends, or a connection comes or goes.
    /// Nothing of that is to be expected of lanes that are all idle ([`LaneSample::is_idle`]): then a policy must choose.
    fn place(&mut self, now: Instant, demand: Demand, lanes: &[LaneSample]) -> Option<LaneId>;
}
