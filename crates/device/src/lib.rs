//! The target's half of every SCSI command: sessions, logical units, and the way from a command to its backend and
//! back.
//!
//! This crate has no sockets, clocks or threads. A [`Host`] provides the time and runs tasks; a connection's bytes come
//! from a [`framing::Wire`]. A server on sockets and a simulator in virtual time drive the same code:
//!
//! 1. Make an [`Environment`] for each event loop, [`LogicalUnit`]s over [`block::Backend`]s, and a [`TargetNode`] for
//!    each target.
//! 2. Let a connection log in ([`session::login::target::Login`]); [`TargetNode::admit`] finds its place: a session
//!    that it leads, joins, or reinstates once the old one has come to rest.
//! 3. Call [`SessionDriver::add_lane`], and run the connection with [`SessionDriver::carry`] and then
//!    [`SessionDriver::part_with`].
//!
//! A target lives in one event loop, with all its logical units and sessions. No command needs a lock, and the effects
//! of one session on another (resets, cleared task sets) stay on one thread.

#![forbid(unsafe_code)]

mod admission;
mod command;
mod compare_and_write;
mod connection_task;
mod ending;
mod environment;
mod execution;
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
mod read_memory;
mod read_turns;
mod removable_medium;
mod reservation;
mod session_driver;
mod target_node;
mod task;
mod task_management;
mod threshold;
mod unmap;
mod verify;
mod window_share;
mod write;
mod write_and_verify;
mod write_same;

pub mod unit_state;

pub use admission::Leading;
pub use connection_task::End;
pub use environment::{Environment, Gauges, Host, LocalFuture, Observer, SessionLimits, Visibility, Visitor};
pub use logical_unit::{LogicalUnit, UnitDescription};
pub use memory::Memory;
pub use peer::{Ipv6Prefix, PeerHost};
pub use reservation::{Persist, Stored};
pub use session_driver::{Closing, SessionDriver, SessionState};
pub use target_node::TargetNode;
pub use window_share::first_burst_bytes_max;
