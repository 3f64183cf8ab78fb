//! Samples of the kernel's view of sockets, over time. Times are those of `CLOCK_MONOTONIC`, in nanoseconds.

use crate::{SocketMemory, TcpInfo};
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

/// The samples of a monitor of sockets, and their cost.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SocketsReport {
    /// When it began.
    pub begun_ns: u64,
    /// When it ended.
    pub ended_ns: u64,
    /// The intended interval between samples.
    pub interval_ns: u64,
    /// The rounds omitted because the next one was already due.
    pub rounds_missed: u64,
    /// The sockets, in the order of their discovery.
    pub sockets: Vec<SocketSeries>,
    /// Sockets found when there was no room left.
    pub sockets_lost: u64,
    /// Queries that the kernel did not answer.
    pub failures: u64,
    /// Processor time that the monitor took.
    pub processor_ns: u64,
}

impl SocketsReport {
    /// The share of one processor that the monitor took.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a share, of times below 104 days")]
    pub fn processor_share(&self) -> f64 {
        self.processor_ns as f64 / self.ended_ns.saturating_sub(self.begun_ns).max(1) as f64
    }
}

/// The samples of one socket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SocketSeries {
    /// The kernel's number of the socket (SO_COOKIE), unique until the machine restarts.
    pub cookie: u64,
    /// Its own address.
    pub local: SocketAddr,
    /// The address of the other end.
    pub peer: SocketAddr,
    /// Its observed congestion controls (TCP_CONGESTION), in order.
    pub congestion_controls: Vec<CongestionControl>,
    /// The samples, in order of time.
    pub samples: Vec<SocketSample>,
    /// Samples taken when there was no room left.
    pub samples_lost: u64,
    /// The time at which it was first seen to be gone; a connection in `TIME_WAIT` counts as gone.
    pub ended_ns: Option<u64>,
}

/// A congestion control, and its start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CongestionControl {
    /// The time at which it was first seen.
    pub since_ns: u64,
    /// The kernel's name for it.
    pub name: String,
}

/// The kernel's view of a socket at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SocketSample {
    /// The time at which the kernel had answered.
    pub at_ns: u64,
    /// The connection's state.
    #[serde(flatten)]
    pub tcp: TcpInfo,
    /// The memory that the socket holds.
    #[serde(flatten)]
    pub memory: SocketMemory,
}
