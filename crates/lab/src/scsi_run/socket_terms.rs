//! Options of the sockets of a run.

use super::ScsiRunError;
use super::session_terms::Named;
use crate::session_monitor::ConnectionSample;
use framing::{Congestion, SocketOptions, Threads};
use initiator::Config;
use netem::{Bytes, InvalidQuantity, Span};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use transport::SocketBuffer;

/// Options of the sockets at both ends. Missing buffers are left to the kernel's own tuning, and the rest is as in the
/// product.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SocketTerms {
    /// `SO_SNDBUF`. Other initiators set it (often 512 KiB), and so limit the data in flight (paper 004).
    pub send_buffer: Option<Bytes>,
    /// `SO_RCVBUF`: limits the window that each end offers, and so the data in flight.
    pub receive_buffer: Option<Bytes>,
    /// `TCP_NOTSENT_LOWAT` at the initiator.
    pub unsent: UnsentLimit,
    /// `SO_MAX_PACING_RATE` without a bound: the kernel paces, whatever the congestion control.
    pub paced: bool,
    /// `TCP_RTO_MIN_US`: the least retransmission timeout beyond the round trip.
    pub retransmission_timeout_min: Span,
    /// The threads that move the bytes of connections: `"shared"`, or `"per-lane"`.
    pub threads: Named<Threads>,
}

impl Default for SocketTerms {
    fn default() -> Self {
        let ours = SocketOptions::default();
        Self {
            send_buffer: None,
            receive_buffer: None,
            unsent: UnsentLimit::default(),
            paced: ours.is_paced,
            retransmission_timeout_min: Span(ours.retransmission_timeout_min),
            threads: Named(ours.threads),
        }
    }
}

/// The unsent bytes that a socket may hold. As text: `"default"`, `"round trip"`, `"none"`, or a number of bytes as `"64KiB"`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum UnsentLimit {
    /// The initiator's own bound, which lets it place commands late.
    #[default]
    Default,
    /// What the connection moves in half a round trip.
    RoundTrip,
    /// The whole send buffer.
    None,
    /// This many bytes.
    Bytes(Bytes),
}

impl SocketTerms {
    pub(super) fn options(&self, congestion: &Congestion) -> SocketOptions {
        SocketOptions {
            congestion: Some(congestion.clone()),
            group: 0,
            send_buffer_bytes: self.send_buffer.map(whole),
            receive_buffer_bytes: self.receive_buffer.map(whole),
            unsent: self.unsent.into(),
            is_paced: self.paced,
            retransmission_timeout_min: self.retransmission_timeout_min.0,
            threads: self.threads.0,
        }
    }

    pub(super) fn target_config(&self, congestion: &Congestion) -> target::SocketConfig {
        target::SocketConfig {
            congestion: Some(congestion.clone()),
            send_buffer: self.send_buffer.map(whole),
            receive_buffer: self.receive_buffer.map(whole),
            paced: Some(self.paced),
            retransmission_timeout_min_ms: u16::try_from(self.retransmission_timeout_min.0.as_millis()).ok(),
            threads: self.threads.0,
        }
    }
}

impl SocketTerms {
    /// Checks that the sockets have the requested options.
    pub(super) fn check(&self, connections: &[ConnectionSample]) -> Result<(), ScsiRunError> {
        for connection in connections {
            let pairs = [
                (SocketBuffer::Send.option(), self.send_buffer, connection.send_buffer_bytes),
                (SocketBuffer::Receive.option(), self.receive_buffer, connection.receive_buffer_bytes),
            ];
            for (key, asked, found) in pairs {
                let found = found.map(|bytes| Bytes(SocketBuffer::asked(bytes)));
                if let (Some(asked), Some(found)) = (asked, found)
                    && found < asked
                {
                    let (asked, found) = (asked.to_string(), found.to_string());
                    return Err(ScsiRunError::Negotiated { key, asked, found });
                }
            }
        }
        Ok(())
    }
}

/// The kernel's bound is far below this.
fn whole(bytes: Bytes) -> u32 {
    u32::try_from(bytes.0).unwrap_or(u32::MAX)
}

impl From<UnsentLimit> for framing::UnsentLimit {
    fn from(limit: UnsentLimit) -> Self {
        match limit {
            UnsentLimit::Default => Config::default().socket.unsent,
            UnsentLimit::RoundTrip => Self::RoundTrip,
            UnsentLimit::None => Self::System,
            UnsentLimit::Bytes(bytes) => Self::Fixed(whole(bytes)),
        }
    }
}

impl UnsentLimit {
    /// The same with our initiator's default by its own name.
    pub(super) fn resolved(self) -> Self {
        match framing::UnsentLimit::from(self) {
            framing::UnsentLimit::RoundTrip => Self::RoundTrip,
            framing::UnsentLimit::System => Self::None,
            framing::UnsentLimit::Fixed(bytes) => Self::Bytes(Bytes(bytes.into())),
        }
    }
}

impl FromStr for UnsentLimit {
    type Err = InvalidQuantity;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "default" => Ok(Self::Default),
            "round trip" => Ok(Self::RoundTrip),
            "none" => Ok(Self::None),
            bytes => bytes.parse().map(Self::Bytes),
        }
    }
}

impl fmt::Display for UnsentLimit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => formatter.write_str("default"),
            Self::RoundTrip => formatter.write_str("round trip"),
            Self::None => formatter.write_str("none"),
            Self::Bytes(bytes) => bytes.fmt(formatter),
        }
    }
}

impl TryFrom<String> for UnsentLimit {
    type Error = InvalidQuantity;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<UnsentLimit> for String {
    fn from(limit: UnsentLimit) -> Self {
        limit.to_string()
    }
}
