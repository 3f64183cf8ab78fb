//! The byte stream under a connection.

use crate::{Congestion, Threads};
use policy::PathMeasurement;
use std::io::{self, IoSlice, IoSliceMut};
use std::task::{Context, Poll};
use std::time::Duration;

/// A byte stream between two ends: a TCP socket, a TLS stream over one, or a pipe of the simulator.
pub trait Wire {
    /// Reads once, into `to` in order. Zero bytes mean that the peer sends no more.
    ///
    /// # Errors
    /// The network broke the connection.
    fn poll_read(&mut self, cx: &mut Context<'_>, to: &mut [IoSliceMut<'_>]) -> Poll<io::Result<usize>>;

    /// Writes once, from `from` in order, as many bytes as there is room for.
    ///
    /// # Errors
    /// The network broke the connection.
    fn poll_write(&mut self, cx: &mut Context<'_>, from: &[IoSlice<'_>]) -> Poll<io::Result<usize>>;

    /// Tells the peer that no more bytes will be sent.
    ///
    /// # Errors
    /// The network broke the connection.
    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;

    /// Written bytes that the peer's end has not acknowledged.
    ///
    /// # Errors
    /// The stream is gone.
    fn unacknowledged_bytes(&self) -> io::Result<u64>;

    /// Measurements of the path under the stream; `None` if nothing measures it.
    fn measure(&self) -> Option<PathMeasurement>;

    /// Bounds the written bytes that the stream may keep before it sends them: TCP_NOTSENT_LOWAT. A stream that keeps
    /// none ignores this.
    fn limit_unsent(&self, bytes: u32) {
        let _ = bytes;
    }

    /// Acknowledges from now on what it has read without a wait for bytes to send with it: for a stream over which this
    /// end has little to say. TCP delays an acknowledgement by 40 ms at the least, which its peer counts into the round
    /// trip. A stream without acknowledgements ignores this.
    fn acknowledge_at_once(&mut self) {}

    /// Sets options, which may change during the stream's life; returns those in force.
    ///
    /// # Errors
    /// The first option that was refused.
    fn apply(&self, options: &SocketOptions) -> Result<InForce, SocketOptionsError>;
}

impl<W: Wire + ?Sized> Wire for Box<W> {
    fn poll_read(&mut self, cx: &mut Context<'_>, to: &mut [IoSliceMut<'_>]) -> Poll<io::Result<usize>> {
        (**self).poll_read(cx, to)
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, from: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        (**self).poll_write(cx, from)
    }

    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        (**self).poll_close(cx)
    }

    fn unacknowledged_bytes(&self) -> io::Result<u64> {
        (**self).unacknowledged_bytes()
    }

    fn measure(&self) -> Option<PathMeasurement> {
        (**self).measure()
    }

    fn limit_unsent(&self, bytes: u32) {
        (**self).limit_unsent(bytes);
    }

    fn acknowledge_at_once(&mut self) {
        (**self).acknowledge_at_once();
    }

    fn apply(&self, options: &SocketOptions) -> Result<InForce, SocketOptionsError> {
        (**self).apply(options)
    }
}

/// Options of one side's sockets.
///
/// By default SO_SNDBUF and SO_RCVBUF stay unset. Setting them turns off the kernel's autotuning, which limits a long
/// path to buffer ÷ RTT.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SocketOptions {
    /// Congestion control. `None` leaves the system's default.
    pub congestion: Option<Congestion>,
    /// The group with which the connection shares its congestion state, if its congestion control has groups: one of this
    /// user's numbers. Zero: none.
    pub group: u64,
    /// SO_SNDBUF, for experiments.
    pub send_buffer_bytes: Option<u32>,
    /// SO_RCVBUF, for experiments.
    pub receive_buffer_bytes: Option<u32>,
    /// The unsent bytes that the kernel may hold.
    pub unsent: UnsentLimit,
    /// The kernel spreads what the congestion window lets out over the round trip (`SO_MAX_PACING_RATE` without a bound),
    /// whatever the congestion control.
    pub is_paced: bool,
    /// The least time beyond the round trip after which the kernel sends again what is not acknowledged (RFC 6298 §2.4;
    /// `TCP_RTO_MIN_US`, which kernels before 6.15 ignore).
    pub retransmission_timeout_min: Duration,
    /// The threads that move the bytes.
    pub threads: Threads,
}

/// While one connection waits for a timeout, the later commands of all connections wait with it, so the kernel's 200 ms
/// would cost a short path dozens of round trips. This is longer than Linux delays an acknowledgement at the least
/// (40 ms).
const RETRANSMISSION_TIMEOUT_MIN: Duration = Duration::from_millis(50);

impl Default for SocketOptions {
    fn default() -> Self {
        Self {
            congestion: None,
            group: 0,
            send_buffer_bytes: None,
            receive_buffer_bytes: None,
            unsent: UnsentLimit::default(),
            is_paced: true,
            retransmission_timeout_min: RETRANSMISSION_TIMEOUT_MIN,
            threads: Threads::Shared,
        }
    }
}

/// The bound of a socket's unsent bytes (TCP_NOTSENT_LOWAT).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnsentLimit {
    /// The kernel's tuning of the send buffer.
    #[default]
    System,
    /// This many bytes.
    Fixed(u32),
    /// What the connection moves in half a round trip, as its owner measures that. Placement of commands needs such a
    /// bound, because bytes that the kernel holds can no longer be placed on another connection.
    RoundTrip,
}

impl UnsentLimit {
    /// The bound that follows the round trip before the first measurement.
    const FIRST_BYTES: u32 = 256 << 10;

    /// The bound with which a stream begins, if there is one.
    #[must_use]
    pub fn first_bytes(self) -> Option<u32> {
        match self {
            Self::System => None,
            Self::Fixed(bytes) => Some(bytes),
            Self::RoundTrip => Some(Self::FIRST_BYTES),
        }
    }
}

/// The present options of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InForce {
    /// The congestion control, by the kernel's name; `None` if the stream has none.
    pub congestion: Option<String>,
}

/// An option that was refused.
#[derive(Debug, thiserror::Error)]
#[error("cannot set {option} to {value}: {source}")]
pub struct SocketOptionsError {
    /// The option's name.
    pub option: &'static str,
    /// The requested value.
    pub value: String,
    /// The system's error.
    pub source: io::Error,
}
