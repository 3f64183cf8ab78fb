//! The headers of a frame, as far as the parts of a super-packet differ in them.

use super::checksum::Sum;
use std::hash::{DefaultHasher, Hasher};

/// Destination, source, type.
pub(crate) const ETHERNET_BYTES: usize = 14;

const TYPE_IPV4: u16 = 0x0800;
const TYPE_IPV6: u16 = 0x86dd;
const PROTOCOL_TCP: u8 = 6;
const PROTOCOL_UDP: u8 = 17;

const IPV4_BYTES_MIN: usize = 20;
const IPV6_BYTES: usize = 40;
const TCP_BYTES_MIN: usize = 20;
const UDP_BYTES: usize = 8;

/// The positions of the headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Headers {
    pub network: Network,
    /// The transport header, if it is TCP or UDP, and not a later fragment.
    pub transport: Option<Transport>,
    /// The offset of the transport's payload.
    pub payload: Option<usize>,
    /// The same for all packets of a flow.
    pub flow: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Network {
    /// With the length of its header.
    V4(usize),
    V6,
    Other,
}

/// A transport header and its offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Transport {
    pub kind: Kind,
    pub start: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Tcp,
    Udp,
}

impl Headers {
    /// Parses a frame. Leaves out headers that are too short or unknown.
    pub fn parse(frame: &[u8]) -> Self {
        let network = Network::parse(frame);
        let transport = network.transport(frame);
        let payload = transport.and_then(|transport| transport.payload(frame));
        Self { network, transport, payload, flow: flow(frame, network, transport) }
    }
}

impl Network {
    fn parse(frame: &[u8]) -> Self {
        let Some((_, packet)) = frame.split_at_checked(ETHERNET_BYTES) else { return Self::Other };
        let kind = u16::from_be_bytes([frame[12], frame[13]]);
        match packet.first().map(|byte| usize::from(byte & 0xf) * 4) {
            Some(bytes) if kind == TYPE_IPV4 && bytes >= IPV4_BYTES_MIN && packet.len() >= bytes => {
                Self::V4(bytes)
            }
            Some(_) if kind == TYPE_IPV6 && packet.len() >= IPV6_BYTES => Self::V6,
            _ => Self::Other,
        }
    }

    /// Does not look behind extension headers of IPv6: TCP and UDP of a host have none.
    fn transport(self, frame: &[u8]) -> Option<Transport> {
        let (protocol, start) = match self {
            // Neither more fragments nor an offset.
            Self::V4(bytes) if frame[20] & 0x3f == 0 && frame[21] == 0 => (frame[23], ETHERNET_BYTES + bytes),
            Self::V6 => (frame[20], ETHERNET_BYTES + IPV6_BYTES),
            Self::V4(_) | Self::Other => return None,
        };
        let (kind, bytes_min) = match protocol {
            PROTOCOL_TCP => (Kind::Tcp, TCP_BYTES_MIN),
            PROTOCOL_UDP => (Kind::Udp, UDP_BYTES),
            _ => return None,
        };
        (frame.len() >= start + bytes_min).then_some(Transport { kind, start })
    }

    /// Where the addresses of the sender and the receiver are, one after the other.
    pub fn addresses(self) -> std::ops::Range<usize> {
        match self {
            Self::V4(_) => 26..34,
            Self::V6 => 22..54,
            Self::Other => 0..0,
        }
    }

    /// Sets the length of the transport's header and payload.
    pub fn set_length(self, frame: &mut [u8], transport_bytes: usize) {
        let word = |bytes: usize| u16::try_from(bytes).unwrap_or(u16::MAX).to_be_bytes();
        match self {
            Self::V4(bytes) => frame[16..18].copy_from_slice(&word(bytes + transport_bytes)),
            Self::V6 => frame[18..20].copy_from_slice(&word(transport_bytes)),
            Self::Other => return,
        }
        self.renew_checksum(frame);
    }

    /// Advances the identification: each segment of a super-packet has the next one.
    pub fn advance_identification(self, frame: &mut [u8], segments: usize) {
        if let Self::V4(_) = self {
            let identification = u16::from_be_bytes([frame[18], frame[19]]);
            let advanced = identification.wrapping_add(u16::try_from(segments & 0xffff).unwrap_or(0));
            frame[18..20].copy_from_slice(&advanced.to_be_bytes());
            self.renew_checksum(frame);
        }
    }

    /// Sets ECN's "congestion experienced" (RFC 3168 §5); false if the sender does not support ECN.
    pub fn mark_congestion(self, frame: &mut [u8]) -> bool {
        let (byte, shift) = match self {
            Self::V4(_) => (15, 0),
            Self::V6 => (15, 4),
            Self::Other => return false,
        };
        let is_capable = frame[byte] >> shift & 3 != 0;
        if is_capable {
            frame[byte] |= 3 << shift;
            self.renew_checksum(frame);
        }
        is_capable
    }

    fn renew_checksum(self, frame: &mut [u8]) {
        if let Self::V4(bytes) = self {
            frame[24..26].fill(0);
            let sum = Sum::of(&frame[ETHERNET_BYTES..ETHERNET_BYTES + bytes]).checksum();
            frame[24..26].copy_from_slice(&sum.to_be_bytes());
        }
    }

    /// The sum of the pseudo-header, which a transport's checksum also covers (RFC 9293 §3.1, RFC 8200 §8.1).
    pub fn pseudo_header_sum(self, frame: &[u8], kind: Kind, transport_bytes: usize) -> Sum {
        Sum::of(&frame[self.addresses()]).plus(kind.protocol().into()).plus(transport_bytes as u64)
    }
}

impl Kind {
    fn protocol(self) -> u8 {
        match self {
            Self::Tcp => PROTOCOL_TCP,
            Self::Udp => PROTOCOL_UDP,
        }
    }

    /// The checksum's offset in the header.
    pub fn checksum_offset(self) -> usize {
        match self {
            Self::Tcp => 16,
            Self::Udp => 6,
        }
    }
}

/// Bits of TCP's byte of flags.
const FIN: u8 = 0x01;
const PSH: u8 = 0x08;
const CWR: u8 = 0x80;

impl Transport {
    fn payload(self, frame: &[u8]) -> Option<usize> {
        let bytes = match self.kind {
            Kind::Tcp => usize::from(frame[self.start + 12] >> 4) * 4,
            Kind::Udp => UDP_BYTES,
        };
        let payload = self.start + bytes;
        (self.kind == Kind::Udp || bytes >= TCP_BYTES_MIN)
            .then_some(payload)
            .filter(|payload| *payload <= frame.len())
    }

    /// Sets TCP's sequence number for `payload_before` earlier bytes, or UDP's length.
    pub fn rewrite(self, frame: &mut [u8], payload_before: usize) {
        let length = frame.len() - self.start;
        let header = &mut frame[self.start..];
        match self.kind {
            Kind::Tcp => {
                let number = u32::from_be_bytes([header[4], header[5], header[6], header[7]]);
                // A super-packet is not longer than 64 KiB.
                let number = number.wrapping_add(u32::try_from(payload_before).unwrap_or(0));
                header[4..8].copy_from_slice(&number.to_be_bytes());
            }
            Kind::Udp => header[4..6].copy_from_slice(&u16::try_from(length).unwrap_or(0).to_be_bytes()),
        }
    }

    pub fn set_checksum(self, frame: &mut [u8], sum: u16) {
        let at = self.start + self.kind.checksum_offset();
        frame[at..at + 2].copy_from_slice(&sum.to_be_bytes());
    }

    /// Clears PSH and FIN, which only the last segment carries.
    pub fn clear_flags_of_last(self, frame: &mut [u8]) {
        if self.kind == Kind::Tcp {
            frame[self.start + 13] &= !(FIN | PSH);
        }
    }

    pub fn clear_congestion_reported(self, frame: &mut [u8]) {
        if self.kind == Kind::Tcp {
            frame[self.start + 13] &= !CWR;
        }
    }
}

/// A hash of addresses, protocol and ports, or of nothing for a frame without IP. The same in every process.
fn flow(frame: &[u8], network: Network, transport: Option<Transport>) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(&frame[network.addresses()]);
    if let Some(Transport { kind, start }) = transport {
        hasher.write_u8(kind.protocol());
        hasher.write(&frame[start..start + 4]);
    }
    hasher.finish()
}
