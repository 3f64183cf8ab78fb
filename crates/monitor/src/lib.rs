//! The state of TCP connections in the kernel, sampled while they live.
//!
//! A [`Monitor`] asks the kernel about all connections of a network namespace, whichever process owns them: `TCP_INFO`,
//! `SO_MEMINFO` and the congestion control, by `sock_diag(7)`, which needs no privileges.
//!
//! With the Cargo feature `bpf` and root's rights, a `Tracer` records the events between samples: programs in the
//! kernel report each segment that arrives, each retransmission, each change of the congestion state, and each write.
//! `OffCpu` reports where in the kernel a process waits.
//!
//! * **Nothing is held**: the monitor names sockets by their cookie, not by a descriptor, so a socket that its owner
//!   closes is closed. A duplicate descriptor would keep it open, and its peer would wait for the end of the stream.
//! * **Nothing is unbounded**: sockets, samples and events beyond the options are counted, not kept.
//! * **Its cost is measured**: [`SocketsReport`](observe::SocketsReport) and [`TcpTrace`](observe::TcpTrace) state it.
//! * **One clock**: all times are those of [`monotonic_ns`].

#![forbid(unsafe_code)]

mod clock;
mod inet_diag;
mod monitor;
#[cfg(feature = "bpf")]
mod off_cpu;
mod rounds;
mod sampler;

mod sock_diag;
#[cfg(feature = "bpf")]
mod tracer;

pub use clock::monotonic_ns;
pub use monitor::{Discovery, Monitor, Options, WatchError};
#[cfg(feature = "bpf")]
pub use {
    ::bpf::BpfError,
    off_cpu::OffCpu,
    tracer::{TraceOptions, Tracer},
};

/// The default of how long a tracer skips events that change nothing: shorter than any round trip over a long distance.
/// It is defined without the feature `bpf` too, because a trace can be planned without the programs.
pub const TRACE_QUIET: std::time::Duration = std::time::Duration::from_millis(1);
