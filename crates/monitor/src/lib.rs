//! The state of TCP connections in the kernel, sampled while they live.
//!
//! A [`Monitor`] asks the kernel of the connections of a network namespace, whoever's they are: `TCP_INFO`, `SO_MEMINFO` and
//! the congestion control, by `sock_diag(7)`, for which no rights are needed.
//!
//! With the Cargo feature `bpf` and root's rights there is also a `Tracer`, which misses nothing between samples: programs in
//! the kernel tell of each segment that arrives, each retransmission, each change of the congestion state, each write. And
//! there is `OffCpu`, which says where in the kernel a process waits.
//!
//! * **Nothing is held**: sockets are asked for by their cookie, not through a descriptor, and one that was closed is
//!   closed. A duplicate of its descriptor would keep it open, and its peer would wait for the end of the stream.
//! * **Nothing is unbounded**: sockets, samples and events beyond the options are counted, not kept.
//! * **It has a price**, which [`SocketsReport`](observe::SocketsReport) and [`TcpTrace`](observe::TcpTrace) tell.
//! * **One clock**: all times are those of [`monotonic_ns`].

#![forbid(unsafe_code)]

#[cfg(feature = "bpf")]
mod bpf;
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
    bpf::BpfError,
    off_cpu::OffCpu,
    tracer::{TraceOptions, Tracer},
};

/// For how long a tracer passes over what finds nothing new, unless told otherwise: shorter than any round trip over a long
/// distance. Known without the programs, too: what is to be traced is planned where there are none.
pub const TRACE_QUIET: std::time::Duration = std::time::Duration::from_millis(1);
