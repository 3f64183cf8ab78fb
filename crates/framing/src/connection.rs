//! One connection in full feature phase: the bytes of a lane, in both directions.

use crate::{
    BufferTable, ConnectionObserver, InForce, Overheard, Receiver, Scratch, Sender, SocketOptions,
    SocketOptionsError, Wire,
};
use pdu::{Instant, LaneId};
use policy::PathMeasurement;
use session::parameters::{ConnectionParameters, LaneRole};
use session::seam::{Endpoint, Fault};
use std::io::{self, IoSlice, IoSliceMut};
use std::task::{Context, Poll, ready};

/// The reason why a connection cannot continue.
#[derive(Debug, thiserror::Error)]
pub enum ConnectionError {
    /// The peer closed it.
    #[error("the peer closed the connection")]
    Closed,
    /// The network broke it.
    #[error("the connection broke: {0}")]
    Broken(#[from] io::Error),
    /// The peer sent something unacceptable.
    #[error(transparent)]
    Fault(#[from] Fault),
}

/// The traffic of a connection so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Bytes received, including all headers.
    pub received_bytes: u64,
    /// Bytes sent, including all headers.
    pub sent_bytes: u64,
    /// PDUs received completely.
    pub received_pdus: u64,
    /// PDUs sent completely.
    pub sent_pdus: u64,
}

/// The most bytes of a connection that are pulled before its stream takes them, unless
/// [`Connection::limit_ahead`] says less: one large gather.
const AHEAD_BYTES_MAX: u32 = 512 << 10;

/// The longest part of a payload that is pulled at once, if so much may be pulled ahead.
const PULL_BYTES_MAX: u32 = 256 << 10;

/// A PDU does not carry less than this because little more may be pulled ahead: the length of a command where many
/// connections share the work, whose immediate data then saves an R2T.
const PULL_BYTES_MIN: u32 = 64 << 10;

/// Slices of one gather. A PDU has two to four; Linux takes at most 1024 at once.
const GATHER_SLICES: usize = 64;

/// While more than this of a data segment is missing, a read takes only a little beyond it, so that the next segment is
/// not copied through the scratch area.
const LARGE_SEGMENT_BYTES: usize = 16 << 10;

/// The bytes that a read takes beyond a large segment: its digest and the next header.
const BEYOND_LARGE_SEGMENT_BYTES: usize = 256;

/// A byte stream and the state of both its directions.
///
/// Four steps move its bytes: fill reads the stream, feed hands the bytes to the endpoint, pull takes PDUs from the
/// endpoint, flush writes them. Only feed and pull touch the endpoint.
#[derive(Debug)]
pub struct Connection<W> {
    lane: LaneId,
    wire: W,
    receiver: Receiver,
    sender: Sender,
    received_bytes: u64,
    sent_bytes: u64,
    /// The most bytes that are pulled before the stream takes them.
    ahead_bytes_max: u32,
    observer: Option<Box<dyn ConnectionObserver>>,
}

/// The bytes of one read, by destination: a command's buffer, and the scratch area.
#[derive(Clone, Copy, Debug)]
struct Filled {
    direct_bytes: usize,
    scratch_bytes: usize,
}

impl<W: Wire> Connection<W> {
    /// Takes over a stream after its login.
    #[must_use]
    pub fn new(lane: LaneId, wire: W, parameters: &ConnectionParameters) -> Self {
        Self {
            lane,
            wire,
            receiver: Receiver::new(lane, parameters),
            sender: Sender::new(parameters),
            received_bytes: 0,
            sent_bytes: 0,
            ahead_bytes_max: AHEAD_BYTES_MAX,
            observer: None,
        }
    }

    /// Prepares the stream for its role. Where answers go over another connection, acknowledgements do not wait for them.
    #[must_use]
    pub fn carrying(mut self, role: LaneRole) -> Self {
        if role != LaneRole::Whole {
            self.wire.acknowledge_at_once();
        }
        self
    }

    /// Reports every further event to `observer`, if there is one.
    #[must_use]
    pub fn watched_by(self, observer: Option<Box<dyn ConnectionObserver>>) -> Self {
        Self { observer, ..self }
    }

    /// The lane of this connection.
    #[must_use]
    pub fn lane(&self) -> LaneId {
        self.lane
    }

    /// Bytes and PDUs moved so far.
    #[must_use]
    pub fn counters(&self) -> Counters {
        Counters {
            received_bytes: self.received_bytes,
            sent_bytes: self.sent_bytes,
            received_pdus: self.receiver.pdus(),
            sent_pdus: self.sender.pdus(),
        }
    }

    /// Whether it has pulled bytes that the stream has not taken.
    #[must_use]
    pub fn is_sending(&self) -> bool {
        !self.sender.is_empty()
    }

    /// Bytes of the stream that the peer's end has not acknowledged; none if the stream is gone.
    #[must_use]
    pub fn unacknowledged_bytes(&self) -> u64 {
        self.wire.unacknowledged_bytes().unwrap_or(0)
    }

    /// Changes options of the stream; returns those in force.
    ///
    /// # Errors
    /// The first option that was refused.
    pub fn apply(&self, options: &SocketOptions) -> Result<InForce, SocketOptionsError> {
        self.wire.apply(options)
    }

    /// Measurements of the path, if the stream provides any.
    #[must_use]
    pub fn measure(&self) -> Option<PathMeasurement> {
        self.wire.measure()
    }

    /// Bounds the bytes that have been taken from the endpoint and are not on their way: half of them pulled, and half
    /// in the stream. The endpoint can still decide about all others.
    pub fn limit_ahead(&mut self, bytes: u32) {
        let half = (bytes / 2).min(AHEAD_BYTES_MAX);
        if self.ahead_bytes_max != half {
            self.ahead_bytes_max = half;
            self.wire.limit_unsent(half);
        }
    }

    /// Reads the stream once and hands the bytes to `endpoint`. `Pending` if there is nothing to read.
    ///
    /// # Errors
    /// The connection cannot continue.
    pub fn poll_receive<E: Endpoint>(
        &mut self,
        cx: &mut Context<'_>,
        now: Instant,
        endpoint: &mut E,
        buffers: &mut BufferTable,
        scratch: &mut Scratch,
    ) -> Poll<Result<(), ConnectionError>> {
        let filled = ready!(self.poll_fill(cx, buffers, scratch))?;
        Poll::Ready(self.feed(now, filled, endpoint, buffers, scratch))
    }

    fn poll_fill(
        &mut self,
        cx: &mut Context<'_>,
        buffers: &mut BufferTable,
        scratch: &mut Scratch,
    ) -> Poll<Result<Filled, ConnectionError>> {
        let scratch = scratch.bytes_mut();
        let (bytes, direct_bytes_max) = match self.receiver.direct(buffers) {
            Some(direct) => {
                let direct_bytes = direct.len();
                let beyond = if direct_bytes < LARGE_SEGMENT_BYTES {
                    scratch.len()
                } else {
                    BEYOND_LARGE_SEGMENT_BYTES
                };
                let mut slices = [IoSliceMut::new(direct), IoSliceMut::new(&mut scratch[..beyond])];
                (ready!(self.wire.poll_read(cx, &mut slices))?, direct_bytes)
            }
            None => (ready!(self.wire.poll_read(cx, &mut [IoSliceMut::new(scratch)]))?, 0),
        };
        if bytes == 0 {
            return Poll::Ready(Err(ConnectionError::Closed));
        }
        self.received_bytes += bytes as u64;
        let direct_bytes = bytes.min(direct_bytes_max);
        Poll::Ready(Ok(Filled { direct_bytes, scratch_bytes: bytes - direct_bytes }))
    }

    fn feed<E: Endpoint>(
        &mut self,
        now: Instant,
        Filled { direct_bytes, scratch_bytes }: Filled,
        endpoint: &mut E,
        buffers: &mut BufferTable,
        scratch: &mut Scratch,
    ) -> Result<(), ConnectionError> {
        self.receiver.filled(direct_bytes, buffers)?;
        let beyond = &scratch.bytes_mut()[..scratch_bytes];
        match &mut self.observer {
            None => self.receiver.feed(beyond, now, endpoint, buffers)?,
            Some(observer) => {
                let mut overheard = Overheard { endpoint, listener: &mut **observer };
                self.receiver.feed(beyond, now, &mut overheard, buffers)?;
            }
        }
        Ok(())
    }

    /// Pulls from `endpoint` and writes, until nothing is left (`Ready`) or the stream accepts no more (`Pending`).
    /// Reports the peer's acknowledgements to an endpoint that is in doubt.
    ///
    /// # Errors
    /// The connection cannot continue.
    pub fn poll_send<E: Endpoint>(
        &mut self,
        cx: &mut Context<'_>,
        now: Instant,
        endpoint: &mut E,
        buffers: &BufferTable,
    ) -> Poll<Result<(), ConnectionError>> {
        if endpoint.doubts(self.lane) {
            // Some of the unacknowledged bytes may belong to the login.
            let bytes = self.sent_bytes.saturating_sub(self.wire.unacknowledged_bytes()?);
            endpoint.delivered(now, self.lane, bytes);
        }
        loop {
            self.pull(now, endpoint, buffers)?;
            if self.sender.is_empty() {
                return Poll::Ready(Ok(()));
            }
            let pdus = ready!(self.poll_flush(cx))?;
            if pdus > 0 {
                endpoint.transmitted(now, self.lane, pdus);
            }
        }
    }

    fn pull<E: Endpoint>(
        &mut self,
        now: Instant,
        endpoint: &mut E,
        buffers: &BufferTable,
    ) -> Result<(), ConnectionError> {
        while let Some(budget_bytes) = self.budget_bytes()
            && let Some(transmit) = endpoint.poll_transmit(now, self.lane, budget_bytes)
        {
            if let Some(observer) = &mut self.observer {
                observer.pulled(&transmit.header);
            }
            if !self.sender.push(transmit, buffers) {
                return Err(Fault::Limit("the buffer of a transfer is gone").into());
            }
        }
        Ok(())
    }

    /// The most data that the next PDU may carry; `None` if no more may be pulled. PDUs do not become too short for that.
    fn budget_bytes(&self) -> Option<u32> {
        let queued_bytes = u32::try_from(self.sender.queued_bytes()).unwrap_or(u32::MAX);
        let left_bytes = self.ahead_bytes_max.checked_sub(queued_bytes).filter(|left| *left > 0)?;
        Some(left_bytes.clamp(PULL_BYTES_MIN.min(self.ahead_bytes_max), PULL_BYTES_MAX))
    }

    /// Writes once; returns the number of PDUs completed by it.
    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<Result<u32, ConnectionError>> {
        let mut slices = [IoSlice::new(&[]); GATHER_SLICES];
        let filled = self.sender.gather(&mut slices);
        let written = self.wire.poll_write(cx, &slices[..filled]);
        if let (Poll::Pending, Some(observer)) = (&written, &mut self.observer) {
            observer.blocked();
        }
        let bytes = ready!(written)?;
        self.sent_bytes += bytes as u64;
        let pdus = self.sender.advance(bytes);
        if let Some(observer) = &mut self.observer {
            observer.sent(bytes, pdus);
        }
        Poll::Ready(Ok(pdus))
    }

    /// Waits until the peer has closed or broken the connection, and drops what it still sends.
    pub fn poll_closed(&mut self, cx: &mut Context<'_>, scratch: &mut Scratch) -> Poll<()> {
        match ready!(self.wire.poll_read(cx, &mut [IoSliceMut::new(scratch.bytes_mut())])) {
            Ok(0) | Err(_) => Poll::Ready(()),
            Ok(_) => {
                cx.waker().wake_by_ref();
                Poll::Pending
            }
        }
    }

    /// Tells the peer that no more bytes will be sent.
    ///
    /// # Errors
    /// The network broke the connection.
    pub fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.wire.poll_close(cx)
    }
}
