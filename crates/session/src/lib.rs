//! The iSCSI protocol as pure state machines, both roles (RFC 7143).
//!
//! Bytes, completions, entropy and timeouts go in; PDUs to send, events and wake-up times come out. There are no
//! sockets, clocks, threads, files or randomness inside: a driver with real sockets and a simulator with virtual ones
//! call the same methods, listed in [`seam`].
//!
//! A connection exists before its session: it starts as a [`login::target::Login`] or [`login::initiator::Login`], and
//! when its login is done it becomes a lane (a [`pdu::LaneId`]) of a [`target::Session`] or [`initiator::Session`].

#![forbid(unsafe_code)]

pub mod chap;
pub mod discovery;
mod inflow;
mod lanes;
mod liveness;
pub mod login;
pub mod name;
pub mod negotiation;
pub mod parameters;
pub mod peer_fault;
pub mod seam;
mod timer;

pub mod initiator;
pub mod target;

/// The test worlds in `tests` use the public crate name.
#[cfg(test)]
extern crate self as ropewalk_session;
