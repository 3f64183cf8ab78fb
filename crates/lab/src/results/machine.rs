//! The machine on which something was measured.

use serde::{Deserialize, Serialize};
use std::fs;
use std::thread;

/// What decides about results, and does not change while a machine runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// The system, as in `Linux 6.18.5`.
    pub kernel: String,
    /// When and how that was built.
    pub kernel_version: String,
    /// The processor's name.
    pub processor: String,
    /// How many of them this process may use.
    pub processors: usize,
    /// Of memory, in bytes.
    pub memory_bytes: u64,
}

impl Machine {
    /// This one. What the system does not tell is empty.
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

/// How many processes wanted a processor, on average of the last minute.
pub(crate) fn load_average() -> Option<f64> {
    fs::read_to_string("/proc/loadavg").ok()?.split(' ').next()?.parse().ok()
}

/// Of the first line `name : value`.
fn value_of<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let pairs = text.lines().filter_map(|line| line.split_once(':'));
    pairs
        .map(|(key, value)| (key.trim(), value.trim()))
        .find_map(|(key, value)| (key == name).then_some(value))
}
