//! Both roles' sessions with each other, in virtual time.
#![allow(clippy::cast_possible_truncation, reason = "a test's numbers are small")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod lanes;
mod liveness;
mod order;
mod recovery_breaks;
mod recovery_digests;
mod recovery_storm;
mod slow_path;
mod split;
mod task_management;
mod text;
mod transfers;
mod world;
