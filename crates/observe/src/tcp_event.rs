//! What happened to TCP connections, event by event. Times are those of `CLOCK_MONOTONIC`, in nanoseconds.

use crate::CongestionState;
use serde::{Deserialize, Serialize};

/// What a tracer saw, and what that cost.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TcpTrace {
    /// When it began.
    pub begun_ns: u64,
    /// When it ended.
    pub ended_ns: u64,
    /// In order of time.
    pub events: Vec<TcpEvent>,
    /// Events that are missing, because they came too fast, or there were more than were to be kept.
    pub events_lost: u64,
    /// How often the kernel called the tracer's programs, events of other namespaces included.
    pub calls: u64,
    /// What these took, in processor time of whoever caused the event.
    pub busy_ns: u64,
    /// Processor time of the tracer's own thread.
    pub processor_ns: u64,
}

impl TcpTrace {
    /// The share of one processor that it took to know this, in all.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a share, of times below 104 days")]
    pub fn processor_share(&self) -> f64 {
        let time_ns = self.ended_ns.saturating_sub(self.begun_ns).max(1);
        self.busy_ns.saturating_add(self.processor_ns) as f64 / time_ns as f64
    }
}

/// Something that happened to a connection, and its state then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TcpEvent {
    /// When.
    pub at_ns: u64,
    /// Until when it was as the event before it on this connection said: then the last of those was passed over
    /// that found nothing new. `None` if none was. What an event tells is how it was since then, or
    /// since the event before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unchanged_until_ns: Option<u64>,
    /// Of which socket: SO_COOKIE, as in [`SocketSeries`](crate::SocketSeries).
    pub cookie: u64,
    /// Its own port.
    pub local_port: u16,
    /// Its peer's.
    pub peer_port: u16,
    /// What happened.
    #[serde(rename = "event")]
    pub kind: TcpEventKind,
    /// What its congestion control is about; after the event, if that is what changed.
    pub congestion_state: CongestionState,
    /// Congestion window, in segments.
    pub snd_cwnd: u32,
    /// Slow start's threshold, in segments; `None` before the first loss.
    pub snd_ssthresh: Option<u32>,
    /// Smoothed round trip, in microseconds.
    pub rtt_us: u32,
    /// What the peer lets be in flight, in bytes.
    pub snd_wnd_bytes: u32,
    /// What this end lets be in flight, in bytes.
    pub rcv_wnd_bytes: u32,
    /// Segments sent and not acknowledged.
    pub unacked: u32,
    /// Written and never sent, in bytes.
    pub notsent_bytes: u32,
    /// Memory of what was written and is not acknowledged, in bytes.
    pub wmem_queued_bytes: u32,
    /// What that may be before a writer must wait, in bytes.
    pub sndbuf_bytes: u32,
    /// A writer waits for room, or has been told to come again when there is some (`SOCK_NOSPACE`).
    pub writer_waits: bool,
}

/// What happens to a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TcpEventKind {
    /// A segment has arrived (tracepoint `tcp_probe`); it is not accounted for yet. Of several in a row, those that
    /// find nothing new may be passed over.
    Arrived,
    /// A segment was sent again (`tcp_retransmit_skb`).
    Retransmitted,
    /// What the congestion control is about has changed (`tcp_cong_state_set`).
    CongestionState,
    /// The application writes (`tcp_sendmsg_locked`): once for each new packet, of which those in a row that find
    /// nothing new may be passed over.
    Written,
}
