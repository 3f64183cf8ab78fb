//! The machine of a measurement.

use serde::{Deserialize, Serialize};
use std::fs;
use std::thread;

/// The properties of a machine that affect results, and stay while it runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// The system, as in `Linux 6.18.5`.
    pub kernel: String,
    /// The kernel's build.
    pub kernel_version: String,
    /// The processor's name.
    pub processor: String,
    /// The number of processors that this process may use.
    pub processors: usize,
    /// Memory, in bytes.
    pub memory_bytes: u64,
}

impl Machine {
    /// This machine. Properties that the system does not report are empty.
    #[must_use]
    pub fn this() -> Self {
        let line = |file: &str| fs::read_to_string(file).unwrap_or_default().trim().to_owned();
        let memory_kib = value_of(&line("/proc/meminfo"), "MemTotal").and_then(|text| {
            let number = text.strip_suffix("kB")?.trim().parse::<u64>();
            number.ok()
        });
        Self {
            kernel: format!("{} {}", line("/proc/sys/kernel/ostype"), line("/proc/sys/kernel/osrelease")),
            kernel_version: line("/proc/sys/kernel/version"),
            processor: value_of(&line("/proc/cpuinfo"), "model name").unwrap_or_default().to_owned(),
            processors: thread::available_parallelism().map_or(1, usize::from),
            memory_bytes: memory_kib.unwrap_or(0) * 1024,
        }
    }
}

/// The average number of runnable processes over the last minute.
pub(crate) fn load_average() -> Option<f64> {
    fs::read_to_string("/proc/loadavg").ok()?.split(' ').next()?.parse().ok()
}

/// The value of the first line `name : value`.
fn value_of<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let pairs = text.lines().filter_map(|line| line.split_once(':'));
    pairs
        .map(|(key, value)| (key.trim(), value.trim()))
        .find_map(|(key, value)| (key == name).then_some(value))
}
