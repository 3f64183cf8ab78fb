//! What the kernel knows of TCP connections, sampled while they live.
//!
//! A [`Monitor`] asks the kernel of the connections of a network namespace, whoever's they are: `TCP_INFO`, `SO_MEMINFO` and
//! the congestion control, by `sock_diag(7)`, for which no rights are needed.
//!
//! * **Nothing is held**: sockets are asked for by their cookie, not through a descriptor, and one that was closed is
//!   closed. A duplicate of its descriptor would keep it open, and its peer would wait for the end of the stream.
//! * **Nothing is unbounded**: samples and sockets beyond [`Options`] are counted, not kept.
//! * **It has a price**, which [`SocketsReport`](observe::SocketsReport) tells.
//! * **One clock**: all times are those of `CLOCK_MONOTONIC`.

#![forbid(unsafe_code)]

mod clock;
mod inet_diag;
mod monitor;
mod rounds;
mod sampler;

mod sock_diag;

pub use monitor::{Discovery, Monitor, Options, WatchError};
