//! Round trips by ICMP, which the far kernel answers by itself (RFC 792, RFC 4443 §4).

use crate::namespace::Namespace;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::io::{self, Read};
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

/// An answer that takes longer counts as lost.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(2);

const PAYLOAD: [u8; 48] = *b"ropewalk measures how long this takes, and back.";
const HEADER_BYTES: usize = 8;

/// The round trips of `count` echo requests to `address`, one after the other. Unanswered requests are missing.
///
/// # Errors
/// The kernel's own.
pub fn ping(from: &Namespace, address: IpAddr, count: u16) -> io::Result<Vec<Duration>> {
    from.run(|| {
        let echo = Echo::new(address)?;
        let round_trips = (0..count).map(|number| echo.round_trip(number));
        Ok(round_trips.collect::<io::Result<Vec<_>>>()?.into_iter().flatten().collect())
    })?
}

struct Echo {
    socket: Socket,
    /// The types of request and answer.
    request: u8,
    answer: u8,
    /// The bytes before the answer: raw sockets of IPv4 include its header.
    skipped_bytes: usize,
}

impl Echo {
    fn new(address: IpAddr) -> io::Result<Self> {
        let (domain, protocol, request, answer, skipped_bytes) = match address {
            IpAddr::V4(_) => (Domain::IPV4, Protocol::ICMPV4, 8, 0, 20),
            IpAddr::V6(_) => (Domain::IPV6, Protocol::ICMPV6, 128, 129, 0),
        };
        let socket = Socket::new(domain, Type::RAW, Some(protocol))?;
        socket.set_read_timeout(Some(ANSWER_TIME_MAX))?;
        socket.connect(&SockAddr::from(SocketAddr::new(address, 0)))?;
        Ok(Self { socket, request, answer, skipped_bytes })
    }

    fn round_trip(&self, number: u16) -> io::Result<Option<Duration>> {
        let begun = Instant::now();
        self.socket.send(&self.message(number))?;
        let mut answer = [0; 256];
        while begun.elapsed() < ANSWER_TIME_MAX {
            match (&self.socket).read(&mut answer) {
                Ok(bytes) if self.is_answer(&answer[..bytes], number) => return Ok(Some(begun.elapsed())),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    /// The kernel fills in the checksum of `ICMPv6` only.
    fn message(&self, number: u16) -> Vec<u8> {
        let mut message = vec![self.request, 0, 0, 0, 0, 0];
        message.extend(number.to_be_bytes());
        message.extend(PAYLOAD);
        let sum = crate::frame::checksum::Sum::of(&message).checksum();
        message[2..4].copy_from_slice(&sum.to_be_bytes());
        message
    }

    fn is_answer(&self, received: &[u8], number: u16) -> bool {
        let message = received.get(self.skipped_bytes..).unwrap_or_default();
        message.first() == Some(&self.answer) && message.get(6..HEADER_BYTES) == Some(&number.to_be_bytes())
    }
}
