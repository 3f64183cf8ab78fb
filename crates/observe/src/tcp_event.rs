//! Events of TCP connections. Times are those of `CLOCK_MONOTONIC`, in nanoseconds.

use crate::CongestionState;
use serde::{Deserialize, Serialize};

/// The events that a tracer recorded, and their cost.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TcpTrace {
    /// When it began.
    pub begun_ns: u64,
    /// When it ended.
    pub ended_ns: u64,
    /// In order of time.
    pub events: Vec<TcpEvent>,
    /// Missing events: they came too fast, or exceeded the limit.
    pub events_lost: u64,
    /// Calls of the tracer's programs by the kernel, including events of other namespaces.
    pub calls: u64,
    /// Their processor time, on the threads that caused the events.
    pub busy_ns: u64,
    /// Processor time of the tracer's own thread.
    pub processor_ns: u64,
}

impl TcpTrace {
    /// The share of one processor that the trace took in all.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a share, of times below 104 days")]
    pub fn processor_share(&self) -> f64 {
        let time_ns = self.ended_ns.saturating_sub(self.begun_ns).max(1);
        self.busy_ns.saturating_add(self.processor_ns) as f64 / time_ns as f64
    }
}

/// An event of a connection, and the connection's state then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TcpEvent {
    /// The time at which the kernel reported it.
    pub at_ns: u64,
    /// The end of the time in which the connection stayed as in its previous event: the time of the last skipped event.
    /// `None` if none was skipped. The state in an event holds since then, or since the previous event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unchanged_until_ns: Option<u64>,
    /// The socket's SO_COOKIE, as in [`SocketSeries`](crate::SocketSeries).
    pub cookie: u64,
    /// The port at this end.
    pub local_port: u16,
    /// The port at the other end.
    pub peer_port: u16,
    /// The kind of event.
    #[serde(rename = "event")]
    pub kind: TcpEventKind,
    /// The congestion state; the new one, if the event changed it.
    pub congestion_state: CongestionState,
    /// Congestion window, in segments.
    pub snd_cwnd: u32,
    /// Slow start's threshold, in segments; `None` before the first loss.
    pub snd_ssthresh: Option<u32>,
    /// Smoothed round trip, in microseconds.
    pub rtt_us: u32,
    /// The peer's window, in bytes.
    pub snd_wnd_bytes: u32,
    /// This end's window, in bytes.
    pub rcv_wnd_bytes: u32,
    /// Segments sent and not acknowledged.
    pub unacked: u32,
    /// Written and unsent, in bytes.
    pub notsent_bytes: u32,
    /// Memory of the written and unacknowledged data, in bytes.
    pub wmem_queued_bytes: u32,
    /// The limit of that memory at which a writer must wait, in bytes.
    pub sndbuf_bytes: u32,
    /// A writer waits for room, or has been told to retry (`SOCK_NOSPACE`).
    pub writer_waits: bool,
}

/// The kinds of events of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TcpEventKind {
    /// A segment has arrived (tracepoint `tcp_probe`), and is not yet counted. Consecutive arrivals that change nothing
    /// may be skipped.
    Arrived,
    /// A segment was sent again (`tcp_retransmit_skb`).
    Retransmitted,
    /// The congestion state has changed (`tcp_cong_state_set`).
    CongestionState,
    /// The application writes (`tcp_sendmsg_locked`): once for each new packet. Consecutive writes that change nothing
    /// may be skipped.
    Written,
}
