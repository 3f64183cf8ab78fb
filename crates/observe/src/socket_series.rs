//! Samples of what the kernel knows of sockets, over time. Times are those of `CLOCK_MONOTONIC`, in nanoseconds.

use crate::{SocketMemory, TcpInfo};
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

/// What a monitor of sockets saw, and what that cost.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SocketsReport {
    /// When it began.
    pub begun_ns: u64,
    /// When it ended.
    pub ended_ns: u64,
    /// How far apart samples were meant to be.
    pub interval_ns: u64,
    /// How often it was so late that the next samples were due, which it left out.
    pub rounds_missed: u64,
    /// Of each socket, in the order in which they were found.
    pub sockets: Vec<SocketSeries>,
    /// How often a socket was found when there was no room left for one.
    pub sockets_lost: u64,
    /// Questions that the kernel did not answer.
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

/// What was sampled of one socket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SocketSeries {
    /// The kernel's number of the socket (SO_COOKIE), which no other has until the machine restarts.
    pub cookie: u64,
    /// Its own address.
    pub local: SocketAddr,
    /// Its peer's.
    pub peer: SocketAddr,
    /// The congestion controls it was seen to have (TCP_CONGESTION), in order.
    pub congestion_controls: Vec<CongestionControl>,
    /// In order.
    pub samples: Vec<SocketSample>,
    /// Samples that were taken when there was no room left.
    pub samples_lost: u64,
    /// When it was first seen to be no more, which a connection is that only waits in `TIME_WAIT`.
    pub ended_ns: Option<u64>,
}

/// A congestion control, and since when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CongestionControl {
    /// When it was first seen.
    pub since_ns: u64,
    /// As the kernel names it.
    pub name: String,
}

/// What the kernel knew of a socket at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SocketSample {
    /// When the kernel had been asked.
    pub at_ns: u64,
    /// Of the connection.
    #[serde(flatten)]
    pub tcp: TcpInfo,
    /// Of its memory.
    #[serde(flatten)]
    pub memory: SocketMemory,
}
