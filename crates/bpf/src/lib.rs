//! The programs of the directory `bpf`, and how they get into the kernel.
//!
//! [`Programs`] holds those of a file that work as long as this process does, such as a tracer's. [`Pinned`] are those
//! that stay in the kernel, such as congestion controls: they, and the maps that they share, have names in a BPF file
//! system, by which any process finds them.

#![cfg(feature = "programs")]
#![forbid(unsafe_code)]

mod compiled;
mod error;
mod pinned;
mod programs;
mod running_costs;

pub use compiled::{
    Compiled, OFF_CPU, RW_BIC, RW_FAIR, RW_FAST, RW_HSTCP, RW_HTCP, RW_RENO, RW_SCALABLE, RW_WESTWOOD,
    TCP_TRACE,
};
pub use error::BpfError;
pub use libbpf_rs::{ErrorKind, MapCore, MapFlags, MapHandle, RingBufferBuilder};
pub use pinned::Pinned;
pub use programs::{Cost, Programs};
pub use running_costs::RunningCosts;

/// A map's value as words of 64 bits.
pub fn words(value: &[u8]) -> impl Iterator<Item = u64> {
    value.chunks_exact(size_of::<u64>()).map(|word| word.try_into().map_or(0, u64::from_ne_bytes))
}

/// The calling thread's network namespace, by its inode number.
///
/// # Errors
/// The system's own.
pub fn network_namespace() -> std::io::Result<u32> {
    use std::os::unix::fs::MetadataExt as _;
    u32::try_from(std::fs::metadata("/proc/thread-self/ns/net")?.ino()).map_err(std::io::Error::other)
}
