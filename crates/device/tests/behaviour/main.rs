//! Target nodes, their units and their sessions, without a runtime, a socket or a clock.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod copies_in_turn;
mod fenced_copies;
mod hidden_units;
mod long_reads;
mod long_write_same;
mod lost_writes;
mod many_reads;
mod observers;
mod one_host;
mod shared_and_rare_commands;
mod thresholds;
mod virtual_time;
mod world;
