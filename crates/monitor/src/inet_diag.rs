//! Messages about sockets of the Internet protocols: `inet_diag.h` of Linux, in netlink(7) messages.

use observe::{Fields, SocketMemory, TcpInfo};
use rustix::io::Errno;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};

/// The length of a netlink message before its body.
const HEADER_BYTES: usize = 16;

/// The length of `struct inet_diag_sockid`, in requests and replies.
const ID_BYTES: usize = 48;

/// The length of a reply's body before its attributes (`struct inet_diag_msg`).
const REPLY_BYTES: usize = 72;

/// Types of messages.
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const SOCK_DIAG_BY_FAMILY: u16 = 20;

/// Flags of requests.
const NLM_F_REQUEST: u16 = 1;
const NLM_F_DUMP: u16 = 0x300;

/// Attributes of a reply. Bit number minus one of the request asks for each.
const INET_DIAG_INFO: u16 = 2;
const INET_DIAG_CONG: u16 = 4;
const INET_DIAG_SKMEMINFO: u16 = 7;
const EVERYTHING: u8 = 1 << (INET_DIAG_INFO - 1) | 1 << (INET_DIAG_CONG - 1) | 1 << (INET_DIAG_SKMEMINFO - 1);

const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;
const IPPROTO_TCP: u8 = 6;

/// Masks of TCP states: all states, and those in which data may still move (ESTABLISHED, FIN-WAIT-1 and 2, CLOSE-WAIT,
/// LAST-ACK, CLOSING).
const ANY_STATE: u32 = u32::MAX;
const CONNECTED: u32 = 1 << 1 | 1 << 4 | 1 << 5 | 1 << 8 | 1 << 9 | 1 << 11;

/// The kernel's identification of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SocketId {
    pub local: SocketAddr,
    pub peer: SocketAddr,
    pub cookie: u64,
}

/// An address family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    Inet,
    Inet6,
}

/// The kernel's account of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Diagnosis<'a> {
    pub id: SocketId,
    /// The state of the connection; `None` if it is unknown, or the socket no longer has any, as in `TIME_WAIT`.
    pub tcp: Option<TcpInfo>,
    pub memory: Option<SocketMemory>,
    pub congestion_control: Option<&'a str>,
}

/// A message from the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "there is one at a time, on the stack")]
pub(crate) enum Message<'a> {
    Socket(Diagnosis<'a>),
    Failed(Errno),
    /// The end of a dump.
    Done,
}

/// The request for everything of one socket.
pub(crate) fn question(id: &SocketId, sequence: u32) -> Vec<u8> {
    let family = if id.local.is_ipv4() { Family::Inet } else { Family::Inet6 };
    request(family, EVERYTHING, ANY_STATE, NLM_F_REQUEST, sequence, &emit_id(id))
}

/// The request for all connections of a family.
pub(crate) fn dump(family: Family, sequence: u32) -> Vec<u8> {
    request(family, 0, CONNECTED, NLM_F_REQUEST | NLM_F_DUMP, sequence, &[0; ID_BYTES])
}

fn request(
    family: Family,
    attributes: u8,
    states: u32,
    flags: u16,
    sequence: u32,
    id: &[u8; ID_BYTES],
) -> Vec<u8> {
    let family = match family {
        Family::Inet => AF_INET,
        Family::Inet6 => AF_INET6,
    };
    let mut request = vec![0; 4];
    request.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    request.extend(flags.to_ne_bytes());
    request.extend(sequence.to_ne_bytes());
    // The sender's id stays zero: the kernel knows the sender.
    request.extend([0; 4]);
    request.extend([family, IPPROTO_TCP, attributes, 0]);
    request.extend(states.to_ne_bytes());
    request.extend(id);
    let length = u32::try_from(request.len()).unwrap_or_default();
    request[..4].copy_from_slice(&length.to_ne_bytes());
    request
}

fn emit_id(id: &SocketId) -> [u8; ID_BYTES] {
    let mut place = [0; ID_BYTES];
    place[..2].copy_from_slice(&id.local.port().to_be_bytes());
    place[2..4].copy_from_slice(&id.peer.port().to_be_bytes());
    emit_address(&mut place[4..20], id.local.ip());
    emit_address(&mut place[20..36], id.peer.ip());
    // A link-local address includes its interface.
    let interface = if let SocketAddr::V6(local) = id.local { local.scope_id() } else { 0 };
    place[36..40].copy_from_slice(&interface.to_ne_bytes());
    for (word, place) in words(id.cookie).into_iter().zip(place[40..].chunks_exact_mut(4)) {
        place.copy_from_slice(&word.to_ne_bytes());
    }
    place
}

/// A cookie is two words, the lower first.
fn words(cookie: u64) -> [u32; 2] {
    [cookie, cookie >> 32].map(|word| u32::try_from(word & u64::from(u32::MAX)).unwrap_or_default())
}

fn emit_address(place: &mut [u8], address: IpAddr) {
    match address {
        IpAddr::V4(address) => place[..4].copy_from_slice(&address.octets()),
        IpAddr::V6(address) => place.copy_from_slice(&address.octets()),
    }
}

/// The messages in what was received that answer the request with this number.
pub(crate) fn messages(received: &[u8], sequence: u32) -> impl Iterator<Item = Message<'_>> {
    let mut rest = received;
    let cut = move || {
        let length = usize::try_from(Fields(rest).u32(0)?).ok()?;
        let message = rest.get(..length).filter(|message| message.len() >= HEADER_BYTES)?;
        rest = rest.get(aligned(length)..).unwrap_or_default();
        Some(message)
    };
    std::iter::from_fn(cut).filter(move |message| Fields(message).u32(8) == Some(sequence)).filter_map(parse)
}

fn parse(message: &[u8]) -> Option<Message<'_>> {
    let body = &message[HEADER_BYTES..];
    match Fields(message).u16(4)? {
        NLMSG_DONE => Some(Message::Done),
        NLMSG_ERROR => {
            Some(Message::Failed(Errno::from_raw_os_error(Fields(body).u32(0)?.cast_signed().wrapping_neg())))
        }
        SOCK_DIAG_BY_FAMILY => parse_reply(body).map(Message::Socket),
        _ => None,
    }
}

fn parse_reply(body: &[u8]) -> Option<Diagnosis<'_>> {
    let id = parse_id(*body.first()?, body.get(4..)?.first_chunk()?)?;
    let mut diagnosis = Diagnosis { id, tcp: None, memory: None, congestion_control: None };
    let mut attributes = body.get(REPLY_BYTES..)?;
    while let (Some(length), Some(kind)) = (Fields(attributes).u16(0), Fields(attributes).u16(2)) {
        let length = usize::from(length);
        let Some(value) = attributes.get(4..length) else { break };
        match kind {
            INET_DIAG_INFO => diagnosis.tcp = TcpInfo::parse(value),
            INET_DIAG_SKMEMINFO => diagnosis.memory = SocketMemory::parse(value),
            INET_DIAG_CONG => diagnosis.congestion_control = text(value),
            _ => {}
        }
        attributes = attributes.get(aligned(length)..).unwrap_or_default();
    }
    Some(diagnosis)
}

fn parse_id(family: u8, id: &[u8; ID_BYTES]) -> Option<SocketId> {
    let port = |offset: usize| Some(u16::from_be_bytes(*id[offset..].first_chunk()?));
    let interface = Fields(id).u32(36)?;
    let address = |offset: usize, port: u16| match family {
        AF_INET => Some(SocketAddr::from((Ipv4Addr::from(*id[offset..].first_chunk::<4>()?), port))),
        AF_INET6 => {
            let address = Ipv6Addr::from(*id[offset..].first_chunk::<16>()?);
            Some(SocketAddrV6::new(address, port, 0, interface).into())
        }
        _ => None,
    };
    let cookie = u64::from(Fields(id).u32(44)?) << 32 | u64::from(Fields(id).u32(40)?);
    Some(SocketId { local: address(4, port(0)?)?, peer: address(20, port(2)?)?, cookie })
}

/// The text before the terminating null byte.
fn text(value: &[u8]) -> Option<&str> {
    let text = value.split(|byte| *byte == 0).next()?;
    std::str::from_utf8(text).ok()
}

/// Rounds a length up: everything in these messages begins at a multiple of four.
fn aligned(length: usize) -> usize {
    length.next_multiple_of(4)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id() -> SocketId {
        let local = "[fe80::1%3]:3260".parse().unwrap();
        SocketId { local, peer: "[fe80::2%3]:40000".parse().unwrap(), cookie: 0x1_0000_0002 }
    }

    /// A kernel's answer with one attribute.
    fn reply(kind: u16, value: &[u8]) -> Vec<u8> {
        let mut body = vec![AF_INET6, 1, 0, 0];
        body.extend(emit_id(&id()));
        body.resize(REPLY_BYTES, 0);
        body.extend(u16::try_from(4 + value.len()).unwrap().to_ne_bytes());
        body.extend(kind.to_ne_bytes());
        body.extend(value);
        let mut message = u32::try_from(HEADER_BYTES + body.len()).unwrap().to_ne_bytes().to_vec();
        message.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
        message.extend([0; 2]);
        message.extend(7_u32.to_ne_bytes());
        message.extend([0; 4]);
        message.extend(body);
        message
    }

    #[test]
    fn a_socket_is_told_as_it_is_asked_for() {
        let reply = reply(INET_DIAG_CONG, b"reno\0");
        let Some(Message::Socket(diagnosis)) = messages(&reply, 7).next() else { panic!("no socket") };
        assert_eq!((diagnosis.id, diagnosis.congestion_control), (id(), Some("reno")));
        assert_eq!(messages(&reply, 8).next(), None, "the answer to another request");
    }

    #[test]
    fn a_message_that_is_cut_off_is_none() {
        let reply = reply(INET_DIAG_SKMEMINFO, &[1; 36]);
        for length in 0..reply.len() {
            assert_eq!(messages(&reply[..length], 7).next(), None);
        }
        assert!(messages(&reply, 7).next().is_some());
    }
}
