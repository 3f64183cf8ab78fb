//! One TCP segment (RFC 9293 §3.1) in a frame.

use crate::frame::{Frame, LinkType};
use etherparse::{EtherType, LaxNetSlice, LaxSlicedPacket, TcpOptionElement, TcpSlice, TransportSlice};
use pdu::Instant;
use std::net::{IpAddr, SocketAddr};

/// The offsets of the protocol in Linux's cooked headers, and their lengths.
const LINUX_COOKED_PROTOCOL: usize = 14;
const LINUX_COOKED_BYTES: usize = 16;
const LINUX_COOKED2_PROTOCOL: usize = 0;
const LINUX_COOKED2_BYTES: usize = 20;

/// A segment in a frame, perhaps with a truncated payload; all segments of a super-packet count as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment<'a> {
    /// The time of the capture.
    pub at: Instant,
    /// The sender's address and port.
    pub from: SocketAddr,
    /// The receiver's address and port.
    pub to: SocketAddr,
    /// The sequence number of its first byte.
    pub sequence: u32,
    /// The acknowledgement number, with the ACK bit.
    pub acknowledgment: Option<u32>,
    /// The SYN bit.
    pub syn: bool,
    /// As in the header, without scaling.
    pub window: u16,
    /// The shift count of the Window Scale option (RFC 7323 §2), which only a SYN has.
    pub window_shift: Option<u8>,
    /// The captured part of the payload.
    pub payload: &'a [u8],
    /// The length of the whole payload.
    pub payload_bytes: u32,
}

impl<'a> Segment<'a> {
    /// The segment in this frame; `None` if there is none, it is a fragment, or its header is incomplete.
    pub fn parse(frame: &Frame<'a>) -> Option<Self> {
        let packet = slice(frame)?;
        let Some(TransportSlice::Tcp(tcp)) = &packet.transport else { return None };
        let network = packet.net.as_ref()?;
        let (source, destination) = addresses(network)?;
        let payload_bytes = ip_payload_bytes(network, frame)?.checked_sub(tcp.header_slice().len())?;
        let captured = tcp.payload();
        Some(Self {
            at: frame.at,
            from: SocketAddr::new(source, tcp.source_port()),
            to: SocketAddr::new(destination, tcp.destination_port()),
            sequence: tcp.sequence_number(),
            acknowledgment: tcp.ack().then(|| tcp.acknowledgment_number()),
            syn: tcp.syn(),
            window: tcp.window_size(),
            window_shift: window_shift(tcp),
            payload: captured.get(..payload_bytes).unwrap_or(captured),
            payload_bytes: u32::try_from(payload_bytes).ok()?,
        })
    }
}

fn slice<'a>(frame: &Frame<'a>) -> Option<LaxSlicedPacket<'a>> {
    match frame.link {
        LinkType::Ethernet => LaxSlicedPacket::from_ethernet(frame.bytes).ok(),
        LinkType::RawIp => LaxSlicedPacket::from_ip(frame.bytes).ok(),
        LinkType::LinuxCooked => cooked(frame.bytes, LINUX_COOKED_PROTOCOL, LINUX_COOKED_BYTES),
        LinkType::LinuxCooked2 => cooked(frame.bytes, LINUX_COOKED2_PROTOCOL, LINUX_COOKED2_BYTES),
        LinkType::Other(_) => None,
    }
}

fn cooked(bytes: &[u8], protocol: usize, header_bytes: usize) -> Option<LaxSlicedPacket<'_>> {
    let protocol = bytes.get(protocol..protocol + 2)?.try_into().ok()?;
    let rest = bytes.get(header_bytes..)?;
    Some(LaxSlicedPacket::from_ether_type(EtherType(u16::from_be_bytes(protocol)), rest))
}

fn addresses(network: &LaxNetSlice<'_>) -> Option<(IpAddr, IpAddr)> {
    match network {
        LaxNetSlice::Ipv4(ip) => {
            Some((ip.header().source_addr().into(), ip.header().destination_addr().into()))
        }
        LaxNetSlice::Ipv6(ip) => {
            Some((ip.header().source_addr().into(), ip.header().destination_addr().into()))
        }
        LaxNetSlice::Arp(_) => None,
    }
}

/// The length of the data after the Internet Protocol's headers. Super-packets of more than 64 KiB have 0 in their
/// length field (BIG TCP), so the frame gives their length.
fn ip_payload_bytes(network: &LaxNetSlice<'_>, frame: &Frame<'_>) -> Option<usize> {
    let (told, headers, captured) = match network {
        LaxNetSlice::Ipv4(ip) => {
            let extensions = ip.extensions().auth.map_or(0, |header| header.slice().len());
            let headers = ip.header().slice().len() + extensions;
            (usize::from(ip.header().total_len()), headers, ip.payload().payload.len())
        }
        LaxNetSlice::Ipv6(ip) => {
            let told = usize::from(ip.header().payload_length());
            (told, ip.extensions().slice().len(), ip.payload().payload.len())
        }
        LaxNetSlice::Arp(_) => return None,
    };
    match told {
        0 => Some(captured + (frame.wire_bytes as usize).saturating_sub(frame.bytes.len())),
        told => told.checked_sub(headers),
    }
}

fn window_shift(tcp: &TcpSlice<'_>) -> Option<u8> {
    if !tcp.syn() {
        return None;
    }
    tcp.options_iterator().find_map(|option| match option {
        Ok(TcpOptionElement::WindowScale(shift)) => Some(shift),
        _ => None,
    })
}
