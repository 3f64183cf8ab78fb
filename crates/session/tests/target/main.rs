//! A target's session, PDU by PDU, with an initiator that the test plays.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod command_order;
mod connection_recovery;
mod data_in;
mod data_out;
mod ping;
mod recovery_r2t;
mod registry;
mod response_fence;
mod response_numbers;
mod session_end;
mod snack;
mod strangers;
mod task_management;
mod task_reassign;
mod text;
mod world;
mod wrong_pdus;
