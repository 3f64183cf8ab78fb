//! One TCP connection in full feature phase: a lane's bytes, both ways.

use crate::{Clock, ConnectionObserver, TcpInfo, send_queue};
use framing::{BufferTable, Overheard, Receiver, Scratch, Sender};
use pdu::LaneId;
use session::parameters::ConnectionParameters;
use session::seam::{Endpoint, Fault};
use std::io::{self, IoSlice, IoSliceMut};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// Why a connection cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum ConnectionError {
    /// The peer closed it.
    #[error("the peer closed the connection")]
    Closed,
    /// The network broke it.
    #[error("the connection broke: {0}")]
    Broken(#[from] io::Error),
    /// What arrived cannot be accepted.
    #[error(transparent)]
    Fault(#[from] Fault),
}

/// What went over a connection so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Bytes received, all headers included.
    pub received_bytes: u64,
    /// Bytes sent, all headers included.
    pub sent_bytes: u64,
    /// PDUs received whole.
    pub received_pdus: u64,
    /// PDUs sent whole.
    pub sent_pdus: u64,
}

/// Pulled but unsent bytes per connection, above which nothing more is pulled: enough for one large gather,
/// small enough that placement stays above it.
const QUEUED_BYTES_MAX: usize = 512 << 10;

/// The longest piece of payload pulled at once.
const PULL_BYTES_MAX: u32 = 256 << 10;

/// Slices of one gather. A PDU has two to four; Linux takes at most 1024 at once.
const GATHER_SLICES: usize = 64;

/// While this much of a data segment is still to come, a read takes only a little beyond it, so that the next
/// segment is not copied through the scratch area.
const LARGE_SEGMENT_BYTES: usize = 16 << 10;

/// What a read takes beyond a large segment: its digest and the next header.
const BEYOND_LARGE_SEGMENT_BYTES: usize = 256;

/// A socket and the state of both its directions.
#[derive(Debug)]
pub struct Connection {
    lane: LaneId,
    stream: TcpStream,
    receiver: Receiver,
    sender: Sender,
    received_bytes: u64,
    sent_bytes: u64,
    observer: Option<Box<dyn ConnectionObserver>>,
}

impl Connection {
    /// Takes over a socket whose login is done.
    #[must_use]
    pub fn new(lane: LaneId, stream: TcpStream, parameters: &ConnectionParameters) -> Self {
        Self {
            lane,
            stream,
            receiver: Receiver::new(lane, parameters),
            sender: Sender::new(parameters),
            received_bytes: 0,
            sent_bytes: 0,
            observer: None,
        }
    }

    /// Tells `observer`, if there is one, what happens from now on.
    #[must_use]
    pub fn watched_by(self, observer: Option<Box<dyn ConnectionObserver>>) -> Self {
        Self { observer, ..self }
    }

    /// The lane whose bytes these are.
    #[must_use]
    pub fn lane(&self) -> LaneId {
        self.lane
    }

    /// What went over it so far.
    #[must_use]
    pub fn counters(&self) -> Counters {
        Counters {
            received_bytes: self.received_bytes,
            sent_bytes: self.sent_bytes,
            received_pdus: self.receiver.pdus(),
            sent_pdus: self.sender.pdus(),
        }
    }

    /// What the kernel knows of it.
    ///
    /// # Errors
    /// What the kernel said.
    pub fn tcp_info(&self) -> io::Result<TcpInfo> {
        TcpInfo::of(&self.stream)
    }

    /// Reads the socket once and hands what arrived to `endpoint`. `Pending` when there is nothing to read.
    ///
    /// # Errors
    /// The connection cannot go on.
    pub fn poll_receive<E: Endpoint>(
        &mut self,
        cx: &mut Context<'_>,
        clock: &Clock,
        endpoint: &mut E,
        buffers: &mut BufferTable,
        scratch: &mut Scratch,
    ) -> Poll<Result<(), ConnectionError>> {
        let scratch = scratch.bytes_mut();
        let (direct_bytes, beyond_bytes) = match self.receiver.direct(buffers) {
            Some(direct) => {
                let (stream, direct_bytes) = (&self.stream, direct.len());
                let beyond = if direct_bytes < LARGE_SEGMENT_BYTES {
                    scratch.len()
                } else {
                    BEYOND_LARGE_SEGMENT_BYTES
                };
                let bytes = ready!(poll_read_scattered(stream, cx, direct, &mut scratch[..beyond]))?;
                (bytes.min(direct_bytes), bytes.saturating_sub(direct_bytes))
            }
            None => {
                let mut buffer = ReadBuf::new(scratch);
                ready!(Pin::new(&mut self.stream).poll_read(cx, &mut buffer))?;
                (0, buffer.filled().len())
            }
        };
        if direct_bytes + beyond_bytes == 0 {
            return Poll::Ready(Err(ConnectionError::Closed));
        }
        self.received_bytes += (direct_bytes + beyond_bytes) as u64;
        self.receiver.filled(direct_bytes, buffers)?;
        let (beyond, now) = (&scratch[..beyond_bytes], clock.now());
        match &mut self.observer {
            None => self.receiver.feed(beyond, now, endpoint, buffers)?,
            Some(observer) => {
                let mut overheard = Overheard { endpoint, listener: &mut **observer };
                self.receiver.feed(beyond, now, &mut overheard, buffers)?;
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Pulls from `endpoint` and writes, until nothing is left (`Ready`) or the socket takes no more (`Pending`). Tells
    /// what the peer has acknowledged, if that is wanted.
    ///
    /// # Errors
    /// The connection cannot go on.
    pub fn poll_send<E: Endpoint>(
        &mut self,
        cx: &mut Context<'_>,
        clock: &Clock,
        endpoint: &mut E,
        buffers: &BufferTable,
    ) -> Poll<Result<(), ConnectionError>> {
        if endpoint.doubts(self.lane) {
            let unacknowledged_bytes = send_queue::unacknowledged_bytes(&self.stream)?;
            // What is unacknowledged may be of the login yet.
            let bytes = self.sent_bytes.saturating_sub(unacknowledged_bytes);
            endpoint.delivered(clock.now(), self.lane, bytes);
        }
        loop {
            self.pull(clock, endpoint, buffers)?;
            if self.sender.is_empty() {
                return Poll::Ready(Ok(()));
            }
            let mut slices = [IoSlice::new(&[]); GATHER_SLICES];
            let filled = self.sender.gather(&mut slices);
            let written = Pin::new(&mut self.stream).poll_write_vectored(cx, &slices[..filled]);
            if let (Poll::Pending, Some(observer)) = (&written, &mut self.observer) {
                observer.blocked();
            }
            let bytes = ready!(written)?;
            self.sent_bytes += bytes as u64;
            let pdus = self.sender.advance(bytes);
            if let Some(observer) = &mut self.observer {
                observer.sent(bytes, pdus);
            }
            if pdus > 0 {
                endpoint.transmitted(clock.now(), self.lane, pdus);
            }
        }
    }

    fn pull<E: Endpoint>(
        &mut self,
        clock: &Clock,
        endpoint: &mut E,
        buffers: &BufferTable,
    ) -> Result<(), ConnectionError> {
        while self.sender.queued_bytes() < QUEUED_BYTES_MAX {
            let Some(transmit) = endpoint.poll_transmit(clock.now(), self.lane, PULL_BYTES_MAX) else {
                break;
            };
            if let Some(observer) = &mut self.observer {
                observer.pulled(&transmit.header);
            }
            if !self.sender.push(transmit, buffers) {
                return Err(Fault::Limit("the buffer of a transfer is gone").into());
            }
        }
        Ok(())
    }

    /// Says goodbye to the peer: no more bytes will be sent.
    ///
    /// # Errors
    /// The network broke the connection.
    pub fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// Reads into `first`, and what does not fit there into `second`.
fn poll_read_scattered(
    stream: &TcpStream,
    cx: &mut Context<'_>,
    first: &mut [u8],
    second: &mut [u8],
) -> Poll<io::Result<usize>> {
    loop {
        ready!(stream.poll_read_ready(cx))?;
        let mut slices = [IoSliceMut::new(first), IoSliceMut::new(second)];
        match stream.try_read_vectored(&mut slices) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            result => return Poll::Ready(result),
        }
    }
}
