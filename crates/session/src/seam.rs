//! The verbs and nouns between the protocol and whatever drives it.
//!
//! A driver repeats, for each lane: read a header, hand it to [`Endpoint::receive_header`], move the data
//! segment to where the answer says, hand the digest's verdict to [`Endpoint::receive_data`]; then drain
//! [`Endpoint::poll_event`], and pull PDUs with [`Endpoint::poll_transmit`] as fast as the socket takes them. Whenever
//! bytes arrive, it says so ([`Endpoint::heard`]), and when asked ([`Endpoint::doubts`]), what the peer has taken.

use crate::peer_fault::PeerFault;
use pdu::{BufferId, Header, Instant, InvalidPdu, LaneId};

/// Some bytes of one of the driver's buffers: named, never carried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PayloadRef {
    /// Which buffer, in the driver's numbering.
    pub buffer: BufferId,
    /// Where in the buffer the bytes start.
    pub offset_bytes: u32,
    /// How many.
    pub bytes: u32,
}

/// Where the data segment that follows a header belongs. Padding and digest are the driver's own business.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Destination {
    /// No data segment follows.
    None,
    /// Straight into a command's buffer.
    Buffer(PayloadRef),
    /// Collect it and hand it to [`Endpoint::receive_data`]: text, sense, ping data. Never more than the
    /// MaxRecvDataSegmentLength this side declared.
    Inline {
        /// Length of the data segment.
        bytes: u32,
    },
    /// Read it and forget it: data of a task that is no more.
    Discard {
        /// Length of the data segment.
        bytes: u32,
    },
}

/// What the driver found when it computed a digest over bytes it moved.
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
    /// A few bytes made by the protocol itself: text, sense, ping data.
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

/// One PDU to send. Digests and padding are added by the driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// BHS and AHS, complete.
    pub header: Header,
    /// Data segment.
    pub payload: Payload,
}

/// Where a write's data is put while it arrives. Implemented by the driver; the protocol sees names only.
pub trait Buffers {
    /// Reserves a buffer of `preferred_bytes` if the budget has it to spare, else of `least_bytes`, else none.
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
    /// Its name.
    pub buffer: BufferId,
    /// Its length.
    pub bytes: u32,
}

/// What makes a lane unusable, by who is at fault. The driver closes the connection and reports
/// [`Endpoint::lane_lost`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The header cannot be framed, or its digest failed and the place of the next PDU cannot be told, or this error
    /// recovery level cannot do without the PDU (RFC 7143 §7.8).
    #[error("header digest error")]
    HeaderDigest,
    /// The peer broke the protocol, and going on with this connection could not help. Where there is a Reject for that,
    /// it has been queued.
    #[error("protocol error by the peer: {0}")]
    Peer(#[from] PeerFault),
    /// A data segment's digest failed and this error recovery level cannot repair it (RFC 7143 §7.8).
    #[error("data digest error")]
    DataDigest,
    /// The peer did not answer a ping, or did not finish what it began, in time.
    #[error("the peer did not answer in time: {0}")]
    Timeout(&'static str),
    /// More than a bound allows.
    #[error("the peer exceeded a limit: {0}")]
    Limit(&'static str),
}

impl From<InvalidPdu> for Fault {
    fn from(invalid: InvalidPdu) -> Self {
        Self::Peer(invalid.into())
    }
}

/// Why a lane is gone, as its driver saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaneLoss {
    /// After a logout that both sides finished: nothing is lost.
    LoggedOut,
    /// The connection broke, or the driver closed it because of a [`Fault`].
    Broken,
}

/// What both roles' sessions have in common: all that a connection's driver needs.
pub trait Endpoint {
    /// What the session tells its owner.
    type Event;

    /// Takes a header that arrived on `lane` and says where its data segment belongs.
    ///
    /// If a data segment follows, exactly one [`Self::receive_data`] must come before the next header. Not so where
    /// `digest` is [`Digest::Bad`]: nothing in such a header can be trusted, so the PDU is passed over whole if the
    /// answer is `Ok`, and nothing more is said of it.
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

    /// Hands out the next PDU for `lane`, its data segment no longer than `budget_bytes` where the PDU's data
    /// can be divided. `None`: nothing to send now.
    fn poll_transmit(&mut self, now: Instant, lane: LaneId, budget_bytes: u32) -> Option<Transmit>;

    /// Whether [`Self::poll_transmit`] would have something for `lane`. Cheap.
    fn wants_transmit(&self, lane: LaneId) -> bool;

    /// Reports that `pdus` more of the pulled PDUs of `lane` have left, in the order in which they were pulled.
    fn transmitted(&mut self, now: Instant, lane: LaneId, pdus: u32);

    /// Reports that bytes have arrived on `lane`, if only a part of a PDU: a sign of life. Cheap.
    fn heard(&mut self, now: Instant, lane: LaneId);

    /// Whether there is doubt that the peer of `lane` lives, so that it must be known what its network has acknowledged.
    /// The driver then reads what there is to read, and calls [`Self::delivered`]. Cheap.
    fn doubts(&self, lane: LaneId) -> bool;

    /// Reports that the network at the other end of `lane` has acknowledged the first `bytes` of all that was sent on
    /// it. A network without acknowledgements tells what has left.
    fn delivered(&mut self, now: Instant, lane: LaneId, bytes: u64);

    /// Reports that `lane` is gone.
    fn lane_lost(&mut self, now: Instant, lane: LaneId, loss: LaneLoss);

    /// The next thing to tell the session's owner.
    fn poll_event(&mut self) -> Option<Self::Event>;

    /// When [`Self::handle_timeout`] wants to be called, if nothing happens before.
    fn poll_timeout(&self) -> Option<Instant>;

    /// Time has come. Lanes that must be closed are named in events.
    fn handle_timeout(&mut self, now: Instant);
}
