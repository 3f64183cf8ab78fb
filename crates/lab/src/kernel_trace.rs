//! The BPF trace of a run: every event of the client's connections, and the waits of threads in the kernel.

#[cfg(feature = "bpf")]
mod programs;

use crate::namespace::Namespace;
use crate::sample::Sample;
use observe::{OffCpuReport, TcpTrace};
use serde::{Deserialize, Serialize};
use std::ffi::CStr;
use std::fmt::Display;
use std::time::Duration;

#[cfg(feature = "bpf")]
use programs::Programs;

/// Threads that write to plain streams at the client.
pub(crate) const SENDER: &CStr = c"sender";
/// The thread of our initiator.
pub(crate) const INITIATOR: &CStr = c"initiator";

/// Whether a thread of this name writes to the client's connections. A connection may have a thread of its own for that.
pub(crate) fn is_writer(name: &str) -> bool {
    let writes = |writer: &&CStr| writer.to_bytes() == name.as_bytes();
    name == transport::SENDING_THREAD || [SENDER, INITIATOR].iter().any(writes)
}

/// The result of tracing a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KernelTrace {
    /// The run was traced.
    Taken {
        /// The trace of the client's connections: its duration and cost. The events are among the samples.
        connections: TcpTrace,
        /// The same for the threads that run at the client. Their waits are among the samples.
        waits: OffCpuReport,
    },
    /// The run was not traced, for this reason.
    Missing(String),
}

/// The running programs, or the reason why there are none.
pub(crate) struct Tracing(Result<Programs, String>);

impl Tracing {
    /// Starts to trace the connections of a namespace, without events that change nothing within `quiet`, and the waits
    /// of this process's threads in it.
    pub fn begin(client: &Namespace, quiet: Duration) -> Self {
        Self(Programs::start(client, quiet).map_err(|error| in_words(&error)))
    }

    /// The results, and the samples.
    pub fn end(self) -> (KernelTrace, Vec<Sample>) {
        match self.0.and_then(|programs| programs.stop().map_err(|error| in_words(&error))) {
            Ok((connections, waits)) => take_samples(connections, waits),
            Err(reason) => {
                (KernelTrace::Missing(format!("The kernel's events are missing: {reason}.")), Vec::new())
            }
        }
    }
}

fn in_words(error: &impl Display) -> String {
    error.to_string()
}

fn take_samples(mut connections: TcpTrace, mut waits: OffCpuReport) -> (KernelTrace, Vec<Sample>) {
    let events = std::mem::take(&mut connections.events).into_iter().map(Sample::TcpEvent);
    let stacks = std::mem::take(&mut waits.stacks).into_iter().map(|stack| Sample::OffCpu(Box::new(stack)));
    let samples = events.chain(stacks).collect();
    (KernelTrace::Taken { connections, waits }, samples)
}

/// There are none in this build.
#[cfg(not(feature = "bpf"))]
enum Programs {}

#[cfg(not(feature = "bpf"))]
impl Programs {
    fn start(_: &Namespace, _: Duration) -> Result<Self, &'static str> {
        Err("this ropewalk was built without BPF programs (Cargo feature bpf)")
    }

    fn stop(self) -> Result<(TcpTrace, OffCpuReport), &'static str> {
        match self {}
    }
}
