//! Where in the kernel threads waited. Times are those of `CLOCK_MONOTONIC`, in nanoseconds.

use serde::{Deserialize, Serialize};

/// Where the threads of a process waited, and what it cost to know.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OffCpuReport {
    /// When it began.
    pub begun_ns: u64,
    /// When it ended.
    pub ended_ns: u64,
    /// Where they waited, the longest first.
    pub stacks: Vec<OffCpuStack>,
    /// Waits that are missing, because there was no room for more.
    pub waits_lost: u64,
    /// How often the kernel called the program: whenever a processor went from one thread to another.
    pub calls: u64,
    /// What that took, in processor time.
    pub busy_ns: u64,
}

/// One place where threads waited.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OffCpuStack {
    /// Functions of the kernel, the innermost first, as it names them; addresses where it hides the names.
    pub frames: Vec<String>,
    /// How often.
    pub waits: u64,
    /// How long, together.
    pub waited_ns: u64,
}
