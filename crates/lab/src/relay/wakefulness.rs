//! Keeps processors from halting while a relay works, where that helps.
//!
//! A hypervisor takes back a processor that halts, and may be milliseconds late to return it, for all of them at once.
//! The kernel can be asked, as for any work that cannot wait, to idle in a loop
//! (`Documentation/power/pm_qos_interface.rst`). But a host that limits a machine's processor time counts the loops, too,
//! and takes all processors away for milliseconds when the time is used up. Which kind of host this is, runs show: after one
//! in which the relay was late, the next one is done the other way.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};

/// Holds the request until it is closed: the longest wake-up time of the processors, in µs.
const LATENCY: &str = "/dev/cpu_dma_latency";

/// Whether processors may halt. All relays of a process have the same processors.
static MAY_HALT: AtomicBool = AtomicBool::new(false);

/// Processors stay awake until this is dropped.
#[derive(Debug)]
pub(crate) struct Wakefulness {
    _request: File,
}

impl Wakefulness {
    /// `None` if processors may halt. Fails without root, and on a kernel that does not manage its idle processors.
    pub fn begin() -> io::Result<Option<Self>> {
        if MAY_HALT.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let mut request = OpenOptions::new().write(true).open(LATENCY)?;
        request.write_all(&0_i32.to_ne_bytes())?;
        Ok(Some(Self { _request: request }))
    }

    /// Does it the other way from the next relay on.
    pub fn change() {
        MAY_HALT.fetch_not(Ordering::Relaxed);
    }
}
