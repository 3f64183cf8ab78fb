//! The initiator with a target in the same process, and with peers that misbehave.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod changed_units;
mod disk_commands;
mod failed_flushes;
mod login;
mod lost_connections;
mod many_connections;
mod many_sessions;
mod portal_groups;
mod recovered_connections;
mod refused_write_same;
mod reservations;
mod restarting_target;
mod unanswered_commands;
mod world;
