//! Two hosts and the path between them.

use netem::PathModel;
use rtnetlink::packet_route::route::RouteMetric;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The description from which a [`Lab`](crate::Lab) is built.
#[derive(Clone, Debug)]
pub struct Topology {
    /// The path: forward is from the client to the server.
    pub path: PathModel,
    /// The path to the server's second address, if it has one of its own. It needs two [`addresses`](Self::addresses).
    pub second: Option<PathModel>,
    /// The seed of all randomness on the path.
    pub seed: u64,
    /// The MTU of the hosts' interfaces, in bytes; the smaller one of the path, if missing. A larger one than the
    /// path's makes a black hole: the relay is not a router, and drops silently.
    pub mtu: Option<u32>,
    /// The size of packets that hosts hand over.
    pub segmentation: Segmentation,
    /// The number of addresses of each IP version for each host, for runs with several portals.
    pub addresses: u8,
    /// The version that workloads use; hosts have addresses of both, if the kernel supports both.
    pub ip: IpVersion,
    /// The congestion control of connections that choose none themselves, at both ends; the system's default if
    /// missing.
    pub congestion_control: Option<String>,
    /// Hosts acknowledge each segment at once, instead of every other one (ip-route(8), `quickack`).
    pub acknowledge_each: bool,
    /// Further settings of the kernel (sysctl), at both hosts.
    pub settings: BTreeMap<String, String>,
    /// The limit of TCP's buffer autotuning, in either direction: at least twice the path's bandwidth-delay product, or
    /// the buffer is the bottleneck.
    pub tcp_buffer_bytes_max: u32,
}

/// The size of packets that hosts hand over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Segmentation {
    /// Super-packets of at most this many segments. They travel as one, as if sent without a gap, and are acknowledged
    /// together: one of 64 KB takes 3.6 ms at 144 Mbit/s, so they should be small at such rates.
    Offloaded(u32),
    /// Single packets of at most the MTU. The relay carries fewer of them: up to about 500 Mbit/s.
    PerPacket,
}

/// A version of the Internet Protocol. In a file: 4 or 6.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "u8", into = "u8")]
pub enum IpVersion {
    /// IPv4 (RFC 791).
    #[default]
    V4,
    /// IPv6 (RFC 8200).
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
            second: None,
            seed: 1,
            mtu: None,
            segmentation: Segmentation::Offloaded(OFFLOADED_SEGMENTS),
            addresses: 1,
            ip: IpVersion::default(),
            congestion_control: None,
            acknowledge_each: false,
            settings: BTreeMap::new(),
            tcp_buffer_bytes_max: TCP_BUFFER_BYTES_MAX,
        }
    }

    /// The metrics of the hosts' routes to each other. A route can name any congestion control of the system
    /// (ip-route(8), `congctl`), while a namespace may choose only those that the system allows to everybody
    /// (`net.ipv4.tcp_congestion_control`).
    pub(crate) fn route_metrics(&self) -> Vec<RouteMetric> {
        let congestion_control = self.congestion_control.clone().map(RouteMetric::CcAlgo);
        congestion_control
            .into_iter()
            .chain(self.acknowledge_each.then_some(RouteMetric::QuickAck(1)))
            .collect()
    }

    /// The MTU of the hosts' interfaces.
    pub(crate) fn interface_mtu(&self) -> u32 {
        let second = self.second.as_ref().map_or(u32::MAX, PathModel::mtu);
        self.mtu.unwrap_or_else(|| self.path.mtu().min(second))
    }
}

/// One of the two hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Host {
    Client,
    Server,
}

/// All possible addresses are in one network, so that no route is needed.
pub(crate) const PREFIX_BITS_V4: u8 = 15;
/// The same for IPv6.
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

    /// Its interface's Ethernet address, locally administered.
    pub fn ethernet_address(self) -> [u8; 6] {
        [0x02, 0, 0, 0, 0, self as u8 + 1]
    }
}
