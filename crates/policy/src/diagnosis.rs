//! What keeps a session from moving more.
//!
//! A [`Tally`] looks at the connections of a session again and again, and adds up for how long the next byte waited for
//! what: the caller, the target, its command window, an R2T, a buffer, or the network. What took most of the time is
//! the [`Limit`], unless the network was busy for 70 % of it, or nothing else for 20 %. Then the kernel's measurements say
//! which of its parts limits: the receiver's window, losses, timeouts, or a queue that shows that the path is full.
//!
//! Before that, a thread that uses all of a processor is the limit, and then windows that grow again after pauses.
//!
//! A session that moves a share s of what its network carries while it moves anything would be 1 / s times as fast if it
//! did not wait for anything else, until the path is full. Where something limits each connection, or each request waits for
//! its round trip, twice as many move twice as much ([`Remedy`]).
//!
//! The sender of data measures the path. Of reads, the initiator has the receiver's measurements: a round trip that has
//! become long shows a queue, and segments out of order show losses. Without either, it cannot tell whether the network or
//! the target's sending limits ([`Limit::Arrival`]).

mod path_tally;
mod remedy;
mod seen;
mod tally;
mod wait;

pub use remedy::{Change, Remedy};
pub use seen::Seen;
pub use tally::Tally;
pub use wait::{Look, ThreadTime};

use core::fmt;
use pdu::Duration;

/// What keeps a session from moving more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
pub enum Limit {
    /// The caller asks for too little: it was idle, or is itself slow.
    Caller,
    /// Too few requests are outstanding at a time to fill the path.
    #[cfg_attr(feature = "serde", serde(rename = "queue_depth", alias = "depth"))]
    Depth,
    /// The target admits too few commands at a time (RFC 7143 §4.2.2.1).
    CommandWindow,
    /// The target asks for a write's data in too many steps (R2T, §11.8).
    #[cfg_attr(feature = "serde", serde(rename = "r2t", alias = "ready_to_transfer"))]
    ReadyToTransfer,
    /// The target, or its disk, takes its time.
    Target,
    /// Data of reads arrives all the time, without a queue or losses: the network, or the target's sending, limits.
    #[cfg_attr(feature = "serde", serde(rename = "network_or_target", alias = "arrival"))]
    Arrival,
    /// The send buffer of a socket is too small for the path.
    SendBuffer,
    /// The receiver's window is too small for the path, or the receiver reads too slowly.
    ReceiveWindow,
    /// Losses that come without a queue keep the congestion windows small.
    Losses,
    /// Losses that only the retransmission timer repairs.
    Timeouts,
    /// The congestion windows have not grown to the path yet.
    SlowStart,
    /// The congestion windows grow again from the beginning, because the connections were idle (RFC 5681 §4.1).
    IdleRestart,
    /// The congestion windows are small, and neither losses nor a queue explains it.
    CongestionWindow,
    /// The path is full: data waits in a queue.
    Saturation,
    /// The thread that carries out the session's work always runs, or waits for a processor that others use.
    Processor,
}

impl Limit {
    /// What limits whatever the number of connections, and for longer than windows take to grow, in words; `None` for the
    /// others.
    #[must_use]
    pub fn beyond_connections(self) -> Option<&'static str> {
        match self {
            Self::Target => Some("the target"),
            Self::Caller => Some("the caller"),
            Self::Processor => Some("the processor"),
            Self::Depth => Some("the number of requests"),
            Self::CommandWindow => Some("the target's command window"),
            Self::ReadyToTransfer => Some("the target's R2Ts"),
            Self::Arrival
            | Self::SendBuffer
            | Self::ReceiveWindow
            | Self::Losses
            | Self::Timeouts
            | Self::SlowStart
            | Self::IdleRestart
            | Self::CongestionWindow
            | Self::Saturation => None,
        }
    }

    /// A word for programs.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Caller => "caller",
            Self::Depth => "queue_depth",
            Self::CommandWindow => "command_window",
            Self::ReadyToTransfer => "r2t",
            Self::Target => "target",
            Self::Arrival => "network_or_target",
            Self::SendBuffer => "send_buffer",
            Self::ReceiveWindow => "receive_window",
            Self::Losses => "losses",
            Self::Timeouts => "timeouts",
            Self::SlowStart => "slow_start",
            Self::IdleRestart => "idle_restart",
            Self::CongestionWindow => "congestion_window",
            Self::Saturation => "saturation",
            Self::Processor => "processor",
        }
    }
}

/// What limited a session while it was watched, and the evidence.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Diagnosis {
    /// What limited it.
    pub limit: Limit,
    /// The share of the time for which that was waited for, from 0 to 1.
    pub share: f64,
    /// What would help; `None` if nothing would, or if that cannot be known beforehand.
    pub remedy: Option<Remedy>,
    /// The share of the time in which the network carried what it could.
    pub network_share: f64,
    /// The verdict is on data from the target.
    pub is_incoming: bool,
    /// What the kernel measured of the paths.
    pub path: PathEvidence,
}

impl Diagnosis {
    /// The share of the data in flight that waits in queues on the path, from 0 to 1.
    #[must_use]
    pub fn queue_share(&self) -> f64 {
        let rtt = if self.is_incoming { self.path.receive_rtt } else { self.path.rtt };
        let (rtt_s, rtt_min_s) = (rtt.as_secs_f64(), self.path.rtt_min.as_secs_f64());
        if rtt_s > rtt_min_s { 1.0 - rtt_min_s / rtt_s } else { 0.0 }
    }
}

/// What the kernel measured of all connections: of data to the target, except where the receiver is named.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct PathEvidence {
    /// The part of the sent payload that was sent again, from 0 to 1.
    pub loss: f64,
    /// Expiries of the retransmission timer.
    pub timeouts: u64,
    /// The mean round-trip time of connections with work, each moment and each connection alike.
    pub rtt: Duration,
    /// The mean round-trip time when data was sent again, each byte alike; zero if none was.
    pub rtt_at_loss: Duration,
    /// The mean of the shortest round-trip times of all connections.
    pub rtt_min: Duration,
    /// The share of the busy time in which the receiver's window let nothing more be sent.
    pub receive_window_share: f64,
    /// The mean round-trip time that the receiver measured while data came.
    pub receive_rtt: Duration,
    /// The same when segments came out of order, each of them alike; zero if none did.
    pub receive_rtt_at_loss: Duration,
    /// The part of the segments from the target that came before others that precede them, from 0 to 1.
    pub out_of_order: f64,
}

impl fmt::Display for Diagnosis {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PathEvidence {
            loss,
            timeouts,
            rtt,
            rtt_min,
            receive_window_share,
            receive_rtt,
            out_of_order,
            ..
        } = self.path;
        let milliseconds = |time: Duration| time.as_secs_f64() * 1e3;
        let rtt = if self.is_incoming { receive_rtt } else { rtt };
        let (rtt, rtt_min, loss) = (milliseconds(rtt), milliseconds(rtt_min), loss * 100.0);
        let round_trip = format!("round trip {rtt:.1} ms (shortest {rtt_min:.1})");
        let of_the_time = |what, share| format!("{what} {:.0} % of the time", share * 100.0);
        let waited = |what| of_the_time(what, self.share);
        let what = match self.limit {
            Limit::Caller => waited("the local side, which asked for nothing"),
            Limit::Depth => waited("the number of requests at a time: the path waited for more"),
            Limit::CommandWindow => waited("the target's command window, which was closed"),
            Limit::ReadyToTransfer => waited("the target's R2Ts: data waited to be asked for"),
            Limit::Target => waited("the target or its disk, which had all it needed"),
            Limit::Arrival => waited("the network or the target's sending: data arrived"),
            Limit::SendBuffer => waited("the send buffer, which was full"),
            Limit::ReceiveWindow => {
                of_the_time("the receiver's window, which was full", receive_window_share)
            }
            Limit::Losses if self.is_incoming => format!(
                "losses on the path: {:.1} % of the segments came out of order; {round_trip}",
                out_of_order * 100.0
            ),
            Limit::Losses => format!("losses on the path: {loss:.2} % was sent again; {round_trip}"),
            Limit::Timeouts => format!("retransmission timeouts: {timeouts}, with {loss:.2} % sent again"),
            Limit::SlowStart => {
                format!("slow start: the congestion windows still grew; round trip {rtt:.1} ms")
            }
            Limit::IdleRestart => of_the_time(
                "congestion windows that grew again after pauses (net.ipv4.tcp_slow_start_after_idle)",
                self.share,
            ),
            Limit::CongestionWindow => {
                format!("the congestion windows: {loss:.2} % was sent again; {round_trip}")
            }
            Limit::Saturation => format!("the path, which is full; {round_trip}"),
            Limit::Processor => {
                of_the_time("the processor, which this program used or waited for", self.share)
            }
        };
        match self.remedy {
            Some(remedy) => write!(formatter, "{what}; {remedy}"),
            None => formatter.write_str(&what),
        }
    }
}
