//! Disks of this machine over backends that tests control.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod disk;
mod nbd;
mod scripted;
