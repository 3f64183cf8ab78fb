//! Links in virtual time: what becomes of packets.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod bottleneck;
mod caps;
mod configuration;
mod line;
mod promises;
mod schedule;
mod sharing;
mod world;
