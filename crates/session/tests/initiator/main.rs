//! An initiator's session, PDU by PDU, with a target that the test plays.
#![allow(clippy::cast_possible_truncation, reason = "a test's numbers are small")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod answers;
mod data_out;
mod faults;
mod liveness;
mod logout;
mod recovery_commands;
mod recovery_connections;
mod recovery_data;
mod recovery_status;
mod world;
