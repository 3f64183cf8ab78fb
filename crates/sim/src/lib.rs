//! A virtual world around the real protocol: hosts, a network, a target and its disks, in virtual time.
//!
//! One seed decides everything: parameters, workload, delays and faults ([`Scenario`]). A run ([`run`]) drives the
//! cores that real sockets drive, and the [`checker`] compares what they do with what was promised. A seed that fails
//! fails again, and can be reduced to what it takes ([`shrink`]).

#![forbid(unsafe_code)]

mod agenda;
pub mod checker;
mod clock;
pub mod disk;
mod executor;
pub mod fault;
pub mod host;
pub mod network;
pub mod portal;
mod random;
pub mod reached;
mod scenario;
mod shared_cell;
mod shrink;
mod sleep;
pub mod target;
pub mod unit;
pub mod users;
mod world;

pub use agenda::Agenda;
pub use clock::Clock;
pub use executor::Executor;
pub use random::Random;
pub use scenario::{CONNECTIONS_MIN, OPERATIONS, Reduction, Scenario};
pub use shared_cell::SharedCell;
pub use shrink::shrink;
pub use world::{Outcome, run};
