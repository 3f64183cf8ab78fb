//! The interface between the protocol and its driver.
//!
//! A driver repeats for each lane: read a header, hand it to [`Endpoint::receive_header`], move the data segment to the
//! returned destination, hand the digest's verdict to [`Endpoint::receive_data`]; then drain [`Endpoint::poll_event`],
//! and pull PDUs with [`Endpoint::poll_transmit`] as fast as the socket takes them. It reports every arrival of bytes
//! ([`Endpoint::heard`]) and, when asked ([`Endpoint::doubts`]), the bytes that the peer's network has acknowledged.

use crate::peer_fault::PeerFault;
use pdu::{BufferId, Header, Instant, InvalidPdu, LaneId};

/// A range of bytes in one of the driver's buffers. The protocol names payload and never carries it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PayloadRef {
    /// The buffer, in the driver's numbering.
    pub buffer: BufferId,
    /// Where in the buffer the bytes start.
    pub offset_bytes: u32,
    /// The number of bytes.
    pub bytes: u32,
}

/// Where the data segment that follows a header belongs. The driver handles padding and digests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Destination {
    /// No data segment follows.
    None,
    /// Straight into a command's buffer.
    Buffer(PayloadRef),
    /// Collect the segment and hand it to [`Endpoint::receive_data`]: text, sense or ping data. It is never longer than
    /// the MaxRecvDataSegmentLength that this side declared.
    Inline {
        /// Length of the data segment.
        bytes: u32,
    },
    /// Read the segment and discard it: data of an ended task.
    Discard {
        /// Length of the data segment.
        bytes: u32,
    },
}

/// The driver's verdict on a digest of bytes that it moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Digest {
    /// The digest matched, or none was negotiated.
    Good,
    /// The digest did not match.
    Bad,
}

/// The data segment of a PDU to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Payload {
    /// No data segment.
    None,
    /// A few bytes that the protocol itself made: text, sense or ping data.
    Inline(Vec<u8>),
    /// Bytes of a command's buffer, to be gathered.
    Buffer(PayloadRef),
}

impl Payload {
    /// Length of the data segment.
    #[must_use]
    pub fn bytes(&self) -> usize {
        match self {
            Self::None => 0,
            Self::Inline(data) => data.len(),
            Self::Buffer(payload) => payload.bytes as usize,
        }
    }
}

/// One PDU to send. The driver adds digests and padding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// BHS and AHS, complete.
    pub header: Header,
    /// The data segment, without padding.
    pub payload: Payload,
}

/// Buffers for the data of writes. The driver implements this; the protocol only sees buffer names.
pub trait Buffers {
    /// Reserves a buffer of `preferred_bytes` if the budget has that much to spare, else of `least_bytes`, else none.
    ///
    /// The protocol keeps the command window small enough that `least_bytes` of every command that the
    /// window admits fits the budget (see [`crate::parameters::TargetLimits`]), so `None` means that the
    /// driver broke that promise; the command is then answered with TASK SET FULL.
    fn allocate(&mut self, least_bytes: u32, preferred_bytes: u32) -> Option<Allocation>;

    /// Makes a buffer at least `bytes` long, keeping its contents. `false` if the budget has no room now:
    /// the protocol asks again when [`crate::target::Session::buffers_available`] is called.
    fn grow(&mut self, buffer: BufferId, bytes: u32) -> bool;
}

/// A buffer that was reserved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allocation {
    /// The buffer's name.
    pub buffer: BufferId,
    /// The buffer's length in bytes.
    pub bytes: u32,
}

/// Why a lane is unusable. The driver closes the connection and reports [`Endpoint::lane_lost`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// A header's digest failed, and either the start of the next PDU is unknown or this error recovery level cannot do
    /// without the PDU (RFC 7143 §7.8).
    #[error("header digest error")]
    HeaderDigest,
    /// The peer broke the protocol, so that the connection must end. If a Reject is due, it has been queued.
    #[error("the peer broke the protocol: {0}")]
    Peer(#[from] PeerFault),
    /// A data segment's digest failed and this error recovery level cannot repair it (RFC 7143 §7.8).
    #[error("data digest error")]
    DataDigest,
    /// The peer did not answer a ping, or did not complete an exchange, in time.
    #[error("the peer did not answer in time: {0}")]
    Timeout(&'static str),
    /// The peer exceeded a limit.
    #[error("the peer exceeded a limit: {0}")]
    Limit(&'static str),
}

impl From<InvalidPdu> for Fault {
    fn from(invalid: InvalidPdu) -> Self {
        Self::Peer(invalid.into())
    }
}

/// How a lane ended, as its driver saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaneLoss {
    /// The lane was logged out: nothing is lost.
    LoggedOut,
    /// The connection broke, or the driver closed it because of a [`Fault`].
    Broken,
}

/// The interface of both roles' sessions that a connection's driver needs.
pub trait Endpoint {
    /// The events that the session reports to its owner.
    type Event;

    /// Takes a header that arrived on `lane` and says where its data segment belongs.
    ///
    /// If a data segment follows, exactly one [`Self::receive_data`] must come before the next header. A header with
    /// [`Digest::Bad`] is the exception, because nothing in it can be trusted: if the answer is `Ok`, the driver skips
    /// the whole PDU and does not call [`Self::receive_data`].
    ///
    /// # Errors
    /// The lane is unusable: send what [`Self::poll_transmit`] still has for it, close it, report it lost.
    fn receive_header(
        &mut self,
        now: Instant,
        lane: LaneId,
        header: &Header,
        digest: Digest,
        buffers: &mut dyn Buffers,
    ) -> Result<Destination, Fault>;

    /// Says that the data segment of the last header is where it belongs. `inline` holds its bytes when the
    /// destination was [`Destination::Inline`], else it is empty.
    ///
    /// # Errors
    /// As [`Self::receive_header`].
    fn receive_data(
        &mut self,
        now: Instant,
        lane: LaneId,
        inline: &[u8],
        digest: Digest,
    ) -> Result<(), Fault>;

    /// Hands out the next PDU for `lane`, or `None` if there is nothing to send now. Its data segment is no longer than
    /// `budget_bytes` if the PDU's data can be divided.
    fn poll_transmit(&mut self, now: Instant, lane: LaneId, budget_bytes: u32) -> Option<Transmit>;

    /// Whether [`Self::poll_transmit`] would have something for `lane`. Cheap.
    fn wants_transmit(&self, lane: LaneId) -> bool;

    /// Reports that `pdus` more of the pulled PDUs of `lane` have left, in the order in which they were pulled.
    fn transmitted(&mut self, now: Instant, lane: LaneId, pdus: u32);

    /// Reports that bytes have arrived on `lane`, even if only a part of a PDU: a sign of life. Bytes that are passed over
    /// after a bad header digest are none. Cheap.
    fn heard(&mut self, now: Instant, lane: LaneId);

    /// Whether the session doubts that the peer of `lane` lives, and needs to know what its network has acknowledged.
    /// The driver then reads all bytes that have arrived, and calls [`Self::delivered`]. Cheap.
    fn doubts(&self, lane: LaneId) -> bool;

    /// Reports that the peer's network has acknowledged the first `bytes` of all bytes sent on `lane`. On a network
    /// without acknowledgements, the driver reports the bytes that have left.
    fn delivered(&mut self, now: Instant, lane: LaneId, bytes: u64);

    /// Reports that `lane` is gone.
    fn lane_lost(&mut self, now: Instant, lane: LaneId, loss: LaneLoss);

    /// The next thing to tell the session's owner.
    fn poll_event(&mut self) -> Option<Self::Event>;

    /// When [`Self::handle_timeout`] wants to be called, if nothing happens before.
    fn poll_timeout(&self) -> Option<Instant>;

    /// Expires timers. Events name the lanes that must be closed.
    fn handle_timeout(&mut self, now: Instant);
}
