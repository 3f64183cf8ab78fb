//! Processors that do not halt while a relay works.
//!
//! The host of a virtual machine takes back a processor that halts, and may be milliseconds late to return it, for all of
//! them at once. So the kernel is asked, as for any work that cannot wait, to idle in a loop
//! (`Documentation/power/pm_qos_interface.rst`).

use std::fs::{File, OpenOptions};
use std::io::{self, Write};

/// Holds what is asked of the kernel, until it is closed: how long its processors may take to wake up, in µs.
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
