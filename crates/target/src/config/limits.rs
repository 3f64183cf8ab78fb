//! The bounds that protect a server from its peers.

use crate::size::ByteSize;
use device::{Ipv6Prefix, SessionLimits};
use serde::Deserialize;
use std::time::Duration;

/// The bounds of the server, and the reaction to a peer that exceeds one.
///
/// | bound | beyond it |
/// |---|---|
/// | [`connections`](Self::connections), [`connections_per_address`](Self::connections_per_address) | closed at once |
/// | [`unauthenticated_connections`](Self::unauthenticated_connections) | the oldest of the busiest address is closed |
/// | [`login_seconds`](Self::login_seconds), however many bytes come | closed |
/// | a login of more than 32 PDUs, 8 KiB of data in one, or 16 KiB of text in all | refused (0200) or closed |
/// | [`sessions_per_target`](Self::sessions_per_target), [`sessions_per_address`](Self::sessions_per_address) | Login Response 0302, out of resources |
/// | a session's MaxConnections | Login Response 0206, too many connections |
/// | [`window_commands`](Self::window_commands) | MaxCmdSN; commands beyond it are dropped (RFC 7143 §4.2.2.1) |
/// | four immediate commands of a session, one of a kind on each connection aside | Reject, immediate command (0x06) |
/// | 16 KiB of one text request | Reject |
/// | [`buffer_bytes`](Self::buffer_bytes), a quarter of it for the solicited data of one address | R2Ts wait; TASK SET FULL if unsolicited data exceeds its reservation |
/// | [`ping_after_seconds`](Self::ping_after_seconds) and [`ping_timeout_seconds`](Self::ping_timeout_seconds) | closed |
///
/// Connections in login thus hold at most `unauthenticated_connections` × (8 KiB of data + 16 KiB of text + 8 KiB of
/// answer), 2 MiB by default. Sessions are bounded for each address and not for each name, because anybody can claim
/// another's name and use up its sessions.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Concurrent TCP connections.
    pub connections: usize,
    /// The length of the prefix that identifies an IPv6 host, from 1 to 128 bits. An "address" of the other limits is
    /// an IPv4 address, or an IPv6 network of this length, because one host may use every address of its network.
    pub ipv6_prefix: u8,
    /// Concurrent TCP connections from one address.
    pub connections_per_address: usize,
    /// Connections in login. One more closes the oldest of the address with the most: an honest login takes
    /// milliseconds.
    pub unauthenticated_connections: usize,
    /// The longest login, in seconds.
    pub login_seconds: u64,
    /// Concurrent sessions of one target.
    pub sessions_per_target: u16,
    /// Concurrent sessions of one target from one address.
    pub sessions_per_address: u16,
    /// Memory for data in transit, in all shards together.
    pub buffer_bytes: ByteSize,
    /// Commands that one session may have outstanding. The session gets fewer if their unsolicited data could exceed
    /// its reservation.
    pub window_commands: u32,
    /// Seconds of silence after which a connection is pinged.
    pub ping_after_seconds: u64,
    /// The longest silence after a ping, in seconds. It may be shorter if the round trip is known and nothing precedes
    /// the ping's answer. Any byte that arrives or is acknowledged ends the silence.
    pub ping_timeout_seconds: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            // Below the usual 1024 descriptors of a process, with some left for files.
            connections: 900,
            // The network of one link (RFC 4291 §2.5.1).
            ipv6_prefix: 64,
            // Four for each of its sessions; and no address can take them all.
            connections_per_address: 256,
            // More than log in at once after a power failure of a rack.
            unauthenticated_connections: 64,
            // Enough for an initiator that a person starts, with a slow name service in between.
            login_seconds: 15,
            sessions_per_target: 256,
            // Their short reads, bounded only by their command windows, fit half of the memory below.
            sessions_per_address: 64,
            // Half of it is for unsolicited data: four sessions with windows of 128 × 256 KiB, and a thousand with at
            // least 16 × 4 KiB. Memory is mapped when needed, and returned when idle.
            buffer_bytes: ByteSize(1 << 30),
            // With 256 KiB each, 32 MiB in flight without a single R2T.
            window_commands: 128,
            ping_after_seconds: 30,
            ping_timeout_seconds: 30,
        }
    }
}

impl Limits {
    /// The prefix of one IPv6 host.
    pub(crate) fn ipv6_prefix(&self) -> Ipv6Prefix {
        Ipv6Prefix::new(self.ipv6_prefix).unwrap_or(Ipv6Prefix::LINK)
    }

    /// The limits of every session.
    pub(crate) fn session(&self) -> SessionLimits {
        SessionLimits {
            window_commands: self.window_commands,
            sessions_per_address: self.sessions_per_address,
            ipv6_prefix: self.ipv6_prefix(),
            ping_after: Duration::from_secs(self.ping_after_seconds),
            ping_timeout: Duration::from_secs(self.ping_timeout_seconds),
        }
    }
}
