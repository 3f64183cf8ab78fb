//! Keeps processors from halting while a relay works.
//!
//! A hypervisor takes back a processor that halts, and may be milliseconds late to return it, for all of them at once.
//! The kernel is therefore asked, as for any work that cannot wait, to idle in a loop
//! (`Documentation/power/pm_qos_interface.rst`).

use std::fs::{File, OpenOptions};
use std::io::{self, Write};

/// Holds the request until it is closed: the longest wake-up time of the processors, in µs.
const LATENCY: &str = "/dev/cpu_dma_latency";

/// Processors stay awake until this is dropped.
#[derive(Debug)]
pub(crate) struct Wakefulness {
    _request: File,
}

impl Wakefulness {
    /// Fails without root, and on a kernel that does not manage its idle processors.
    pub fn begin() -> io::Result<Self> {
        let mut request = OpenOptions::new().write(true).open(LATENCY)?;
        request.write_all(&0_i32.to_ne_bytes())?;
        Ok(Self { _request: request })
    }
}
