//! What every backend promises, and each kind of its own.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

#[cfg(feature = "file")]
mod block_device;
mod device;
mod every_backend;
#[cfg(feature = "file")]
mod file;
mod paced;
mod pending;
mod ram;
mod rewriting;
mod slab;
mod volatile;
