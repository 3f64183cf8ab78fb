//! The kernel's view of a TCP connection: the option TCP_INFO, `struct tcp_info` of Linux.

use crate::fields::Fields;
use serde::{Deserialize, Serialize};

/// A state of TCP (RFC 9293 §3.3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names are the standard's")]
pub enum TcpState {
    Established,
    SynSent,
    SynReceived,
    FinWait1,
    FinWait2,
    TimeWait,
    Closed,
    CloseWait,
    LastAck,
    Listen,
    Closing,
}

impl TcpState {
    /// The state with the kernel's number; `None` for transient states.
    #[must_use]
    pub fn from_number(number: u8) -> Option<Self> {
        Some(match number {
            1 => Self::Established,
            2 => Self::SynSent,
            // A request that waits for its last ACK has the number 12.
            3 | 12 => Self::SynReceived,
            4 => Self::FinWait1,
            5 => Self::FinWait2,
            6 => Self::TimeWait,
            7 => Self::Closed,
            8 => Self::CloseWait,
            9 => Self::LastAck,
            10 => Self::Listen,
            11 => Self::Closing,
            _ => return None,
        })
    }
}

/// The state of a sender's congestion control: `enum tcp_ca_state` of Linux.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CongestionState {
    /// No loss and no congestion is suspected.
    Open,
    /// Duplicate acknowledgements or SACK: perhaps a loss.
    Disorder,
    /// The window is being reduced for ECN, or because the sender's own interface dropped a packet.
    Cwr,
    /// Fast recovery (RFC 6675).
    Recovery,
    /// The retransmission timer has expired (RFC 6298).
    Loss,
}

impl CongestionState {
    /// The state with the kernel's number.
    #[must_use]
    pub fn from_number(number: u8) -> Option<Self> {
        [Self::Open, Self::Disorder, Self::Cwr, Self::Recovery, Self::Loss].get(usize::from(number)).copied()
    }
}

/// A sample of TCP_INFO. Segments are of `snd_mss_bytes`; counts and sums are since the connection began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TcpInfo {
    /// The state of the connection.
    pub state: TcpState,
    /// The state of its congestion control.
    pub congestion_state: CongestionState,
    /// The number of doublings of the retransmission timer.
    pub backoff: u8,
    /// The retransmission timeout, in microseconds.
    pub rto_us: u32,
    /// Smoothed round trip, in microseconds.
    pub rtt_us: u32,
    /// Its mean deviation, in microseconds.
    pub rttvar_us: u32,
    /// The recent minimum, in microseconds; `None` before the first.
    pub min_rtt_us: Option<u32>,
    /// The most bytes in a sent segment.
    pub snd_mss_bytes: u32,
    /// Congestion window, in segments.
    pub snd_cwnd: u32,
    /// Slow start's threshold, in segments; `None` before the first loss.
    pub snd_ssthresh: Option<u32>,
    /// The peer's window, in bytes.
    pub snd_wnd_bytes: u32,
    /// This end's window, in bytes; `None` before Linux 6.2.
    pub rcv_wnd_bytes: Option<u32>,
    /// The reader's data per round trip, by which the receive buffer grows, in bytes.
    pub rcv_space_bytes: u32,
    /// Segments sent and not acknowledged.
    pub unacked: u32,
    /// Those acknowledged selectively.
    pub sacked: u32,
    /// Those considered lost.
    pub lost: u32,
    /// Those sent again.
    pub retrans: u32,
    /// Written and unsent, in bytes.
    pub notsent_bytes: u32,
    /// The reordering distance, in segments, beyond which one counts as lost.
    pub reordering: u32,
    /// Acknowledged, in bytes. The SYN of a connection opened here counts for one (RFC 4898).
    pub bytes_acked: u64,
    /// Sent, including repetitions, in bytes.
    pub bytes_sent: u64,
    /// Sent again, in bytes.
    pub bytes_retrans: u64,
    /// Received in order, in bytes.
    pub bytes_received: u64,
    /// Segments sent again.
    pub total_retrans: u32,
    /// Segments that the peer got twice (D-SACK, RFC 2883).
    pub dsack_dups: u32,
    /// The number of observed reorderings.
    pub reord_seen: u32,
    /// Expiries of the retransmission timer; `None` before Linux 6.7.
    pub total_rto: Option<u16>,
    /// The latest rate of delivery, in bytes per second.
    pub delivery_rate: u64,
    /// Whether the application limited that rate, rather than the path.
    pub delivery_rate_app_limited: bool,
    /// The pacing rate, in bytes per second; `None` without pacing.
    pub pacing_rate: Option<u64>,
    /// The time with data unacknowledged or unsent, in microseconds.
    pub busy_us: u64,
    /// The part of it limited by the peer's window.
    pub rwnd_limited_us: u64,
    /// The part of it limited by the send buffer. Counts only while a writer waits and nothing is unsent, so it is far
    /// too low.
    pub sndbuf_limited_us: u64,
}

/// The length of the structure in Linux 5.5, which added the last required field.
const BYTES_MIN: usize = 232;

/// Slow start without a threshold (`TCP_INFINITE_SSTHRESH`).
const NO_THRESHOLD: u32 = 0x7fff_ffff;

/// Slow start's threshold from the kernel's number; `None` before the first loss.
#[must_use]
pub fn slow_start_threshold(number: u32) -> Option<u32> {
    (number < NO_THRESHOLD).then_some(number)
}

impl TcpInfo {
    /// Parses the kernel's data. `None` if it is shorter than Linux 5.5's, or a state is unknown.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        if bytes.len() < BYTES_MIN {
            return None;
        }
        let fields = Fields(bytes);
        Some(Self {
            state: TcpState::from_number(fields.u8(0)?)?,
            congestion_state: CongestionState::from_number(fields.u8(1)?)?,
            backoff: fields.u8(4)?,
            delivery_rate_app_limited: fields.u8(7)? & 1 != 0,
            rto_us: fields.u32(8)?,
            snd_mss_bytes: fields.u32(16)?,
            unacked: fields.u32(24)?,
            sacked: fields.u32(28)?,
            lost: fields.u32(32)?,
            retrans: fields.u32(36)?,
            rtt_us: fields.u32(68)?,
            rttvar_us: fields.u32(72)?,
            snd_ssthresh: fields.u32(76).and_then(slow_start_threshold),
            snd_cwnd: fields.u32(80)?,
            reordering: fields.u32(88)?,
            rcv_space_bytes: fields.u32(96)?,
            total_retrans: fields.u32(100)?,
            pacing_rate: fields.u64(104).filter(|rate| *rate != u64::MAX),
            bytes_acked: fields.u64(120)?,
            bytes_received: fields.u64(128)?,
            notsent_bytes: fields.u32(144)?,
            min_rtt_us: fields.u32(148).filter(|rtt| *rtt != u32::MAX),
            delivery_rate: fields.u64(160)?,
            busy_us: fields.u64(168)?,
            rwnd_limited_us: fields.u64(176)?,
            sndbuf_limited_us: fields.u64(184)?,
            bytes_sent: fields.u64(200)?,
            bytes_retrans: fields.u64(208)?,
            dsack_dups: fields.u32(216)?,
            reord_seen: fields.u32(220)?,
            snd_wnd_bytes: fields.u32(228)?,
            rcv_wnd_bytes: fields.u32(232),
            total_rto: fields.u16(240),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As long as Linux 6.18's; each u32 is its own number, which shows where a field was read.
    fn numbered(bytes: usize) -> Vec<u8> {
        let mut numbered: Vec<u8> = (0_u32..).take(bytes / 4).flat_map(u32::to_ne_bytes).collect();
        numbered[..8].copy_from_slice(&[1, 3, 0, 0, 2, 0, 0, 1]);
        numbered
    }

    #[test]
    fn fields_are_where_the_kernel_has_them() {
        let info = TcpInfo::parse(&numbered(280)).unwrap();
        assert_eq!((info.state, info.congestion_state), (TcpState::Established, CongestionState::Recovery));
        assert!(info.delivery_rate_app_limited);
        assert_eq!((info.backoff, info.rto_us, info.rtt_us, info.snd_cwnd), (2, 2, 17, 20));
        assert_eq!((info.notsent_bytes, info.min_rtt_us, info.snd_wnd_bytes), (36, Some(37), 57));
        assert_eq!((info.bytes_acked & 0xffff, info.busy_us & 0xffff), (30, 42));
        assert_eq!((info.rcv_wnd_bytes, info.total_rto), (Some(58), Some(60)));
    }

    #[test]
    fn an_older_kernel_knows_less() {
        let info = TcpInfo::parse(&numbered(232)).unwrap();
        assert_eq!((info.rcv_wnd_bytes, info.total_rto), (None, None));
        assert_eq!(TcpInfo::parse(&numbered(104)), None);
    }

    #[test]
    fn what_is_unlimited_is_no_number() {
        let mut bytes = numbered(280);
        bytes[76..80].copy_from_slice(&NO_THRESHOLD.to_ne_bytes());
        bytes[104..112].fill(0xff);
        bytes[148..152].fill(0xff);
        let info = TcpInfo::parse(&bytes).unwrap();
        assert_eq!((info.snd_ssthresh, info.pacing_rate, info.min_rtt_us), (None, None, None));
    }
}
