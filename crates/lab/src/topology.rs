//! Two hosts and the path between them.

use netem::PathModel;
use serde::{Deserialize, Serialize};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What a [`Lab`](crate::Lab) is built from.
#[derive(Clone, Debug)]
pub struct Topology {
    /// The path: forward is from the client to the server.
    pub path: PathModel,
    /// Decides about all that looks random on the path.
    pub seed: u64,
    /// Of the hosts' interfaces, in bytes; the path's smaller one if it is missing. A larger one than the path's makes
    /// a black hole: the relay is no router, and tells nobody.
    pub mtu: Option<u32>,
    /// What hosts hand over at once.
    pub segmentation: Segmentation,
    /// So many of each IP version for each host, for runs with several portals.
    pub addresses: u8,
    /// The version that workloads use; hosts have addresses of both, if the machine knows both.
    pub ip: IpVersion,
    /// Of connections that choose none themselves, at both ends; the system's default if it is missing.
    pub congestion_control: Option<String>,
    /// The largest buffer to which TCP's autotuning may go, in either direction: the path's bandwidth-delay product
    /// twice or more, or the buffer is what limits.
    pub tcp_buffer_bytes_max: u32,
}

/// What hosts hand over at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Segmentation {
    /// Super-packets of at most so many segments. They travel as one, as if sent without a gap, and are acknowledged
    /// together: at 144 Mbit/s one of 64 KB takes 3.6 ms, so at such rates they should be small.
    Offloaded(u32),
    /// Single packets of at most the MTU. The relay can do less of them: up to about 500 Mbit/s.
    PerPacket,
}

/// A version of the Internet Protocol. In a file: 4 or 6.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "u8", into = "u8")]
pub enum IpVersion {
    /// RFC 791.
    #[default]
    V4,
    /// RFC 8200.
    V6,
}

impl TryFrom<u8> for IpVersion {
    type Error = String;

    fn try_from(number: u8) -> Result<Self, Self::Error> {
        match number {
            4 => Ok(Self::V4),
            6 => Ok(Self::V6),
            other => Err(format!("IP has no version {other} here: 4 or 6")),
        }
    }
}

impl From<IpVersion> for u8 {
    fn from(version: IpVersion) -> Self {
        match version {
            IpVersion::V4 => 4,
            IpVersion::V6 => 6,
        }
    }
}

/// Enough to be cheap, few enough to be a short burst at rates of a WAN.
pub const OFFLOADED_SEGMENTS: u32 = 8;

/// 64 MiB: 2 Gbit/s at 250 ms.
const TCP_BUFFER_BYTES_MAX: u32 = 64 << 20;

impl Topology {
    /// One address of each kind, and buffers that do not limit.
    #[must_use]
    pub fn new(path: PathModel) -> Self {
        Self {
            path,
            seed: 1,
            mtu: None,
            segmentation: Segmentation::Offloaded(OFFLOADED_SEGMENTS),
            addresses: 1,
            ip: IpVersion::default(),
            congestion_control: None,
            tcp_buffer_bytes_max: TCP_BUFFER_BYTES_MAX,
        }
    }

    /// Of the hosts' interfaces.
    pub(crate) fn interface_mtu(&self) -> u32 {
        self.mtu.unwrap_or_else(|| self.path.forward.mtu.min(self.path.backward().mtu))
    }
}

/// One of the two hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Host {
    Client,
    Server,
}

/// All that may be chosen is one network, so that no route is needed.
pub(crate) const PREFIX_BITS_V4: u8 = 15;
/// Likewise.
pub(crate) const PREFIX_BITS_V6: u8 = 48;

impl Host {
    pub fn other(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }

    /// Its addresses: `count` of IPv4 and, if `ipv6`, as many of IPv6, from the networks for benchmarks (RFC 2544
    /// §C.2.2, RFC 5180 §8).
    pub fn addresses(self, count: u8, ipv6: bool) -> Vec<IpAddr> {
        let host = self as u8;
        let v4 = (1..=count).map(|number| IpAddr::V4(Ipv4Addr::new(198, 18 + host, 0, number)));
        let v6 = (1..=u16::from(count))
            .filter(|_| ipv6)
            .map(|number| IpAddr::V6(Ipv6Addr::new(0x2001, 2, 0, 0, 0, 0, u16::from(host) + 1, number)));
        v4.chain(v6).collect()
    }

    /// Its interface's address on the Ethernet, a locally administered one.
    pub fn ethernet_address(self) -> [u8; 6] {
        [0x02, 0, 0, 0, 0, self as u8 + 1]
    }
}
