//! The target's side of every SCSI command: sessions, logical units, and the way from a command to its backend and back.
//!
//! Nothing here has a socket, a clock or a thread. A [`Host`] lends the time and runs what cannot be finished at once;
//! whoever owns the connections feeds bytes in and takes bytes out. A server on sockets and a simulator in virtual
//! time drive the same code:
//!
//! 1. Make an [`Environment`] for each event loop, [`LogicalUnit`]s over [`block::Backend`]s, and a [`TargetNode`] for
//!    each target.
//! 2. Let a connection log in ([`session::login::target::Login`]); [`TargetNode::admit`] finds its place: a session that
//!    it leads, joins, or, once the old one has come to rest, takes the place of.
//! 3. [`SessionDriver::add_lane`]. From then on, for each connection: hand what arrives to a [`framing::Receiver`] with
//!    the state's session and buffers, call [`SessionDriver::drain`], and send what a [`framing::Sender`] gathers; go on
//!    when the waker that was registered in [`SessionState::wakers`] is woken. Close the connection when
//!    [`SessionState::closing`] says so.
//! 4. [`SessionDriver::remove_lane`] and [`TargetNode::lane_closed`] when the connection is gone.
//!
//! A target lives in one event loop, with all its logical units and sessions: nothing of a command's path needs a lock,
//! and what one session does to another (resets, cleared task sets) stays on one thread.

#![forbid(unsafe_code)]

mod admission;
mod command;
mod compare_and_write;
mod environment;
mod extended_copy;
mod flush;
mod forced;
mod get_lba_status;
mod logical_unit;
mod memory;
mod mode_parameters;
mod or_write;
mod peer;
mod permit;
mod piecewise;
mod pre_fetch;
mod read;
mod removable_medium;
mod reservation;
mod session_driver;
mod target_node;
mod task_management;
mod threshold;
mod unmap;
mod verify;
mod window_share;
mod write;
mod write_and_verify;
mod write_same;

pub use admission::Leading;
pub use environment::{Environment, Gauges, Host, LocalFuture, Observer, SessionLimits, Visibility, Visitor};
pub use logical_unit::{LogicalUnit, UnitDescription};
pub use memory::Memory;
pub use peer::{Ipv6Prefix, PeerHost};
pub use reservation::{Persist, Stored};
pub use session_driver::{Closing, SessionDriver, SessionState};
pub use target_node::TargetNode;
pub use window_share::first_burst_bytes_max;
