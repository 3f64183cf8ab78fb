//! A server in this process, with initiators that are nothing but a socket.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod access;
mod commands;
mod configuration;
mod hostile_peers;
mod ipv6_hosts;
mod memory;
mod reservations;
mod sessions;
mod vulnerability_classes;
mod world;
