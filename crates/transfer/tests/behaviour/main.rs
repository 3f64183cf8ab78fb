//! Copies between disks of this process and files of this machine.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod bandwidth;
mod block_devices;
mod copying;
mod failures;
mod inputs;
mod local_files;
mod losses;
mod refusals;
mod sampling;
mod signatures;
mod world;
