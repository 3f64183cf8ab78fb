//! Logins of both roles, with each other and with strangers; the answer to SendTargets.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod authentication;
mod between_both_ends;
mod discovery_list;
mod of_an_initiator;
mod of_strangers;
mod to_a_target;
mod world;
