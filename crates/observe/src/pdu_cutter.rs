//! Cuts the bytes of one direction into PDUs (RFC 7143 §11.2), where possible.
//!
//! As long as every header is captured, each gives the start of the next one; bytes of data may be missing, as in a
//! capture with a small snapshot length. If bytes of a header are missing, the start of the next one is unknown. The
//! cutter then tries segments until one starts with a plausible header: accepted by its parser, sent by the right side,
//! and with zeroes in all reserved bits. The bytes in between are lost.

use crate::digests::Digests;
use crate::stream::{Content, Piece, Stamp};
use pdu::{Crc32c, DIGEST_BYTES, Header, InitiatorPdu, Opcode, TargetPdu, header_digest, padding};

/// The most text of one PDU that is kept; a login's is far shorter.
const TEXT_BYTES_MAX: usize = 64 << 10;

/// The end that sends the cut bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sender {
    Initiator,
    Target,
}

impl Sender {
    /// The sender of such a PDU; `None` if the standard assigns no such opcode.
    pub(crate) fn of(header: &Header) -> Option<Self> {
        let opcode = header.opcode().ok()?;
        Some(if opcode.is_from_initiator() { Self::Initiator } else { Self::Target })
    }

    pub(crate) const fn peer(self) -> Self {
        match self {
            Self::Initiator => Self::Target,
            Self::Target => Self::Initiator,
        }
    }
}

/// A part of a stream, in order.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Cut<'a> {
    /// A header is complete. Its first byte was captured at `first`.
    Header { header: &'a Header, first: Stamp },
    /// Some of its data.
    Data { header: &'a Header, stamp: Stamp },
    /// The end of the PDU. `text` is that of a login, if it was captured.
    End { header: &'a Header, first: Stamp, stamp: Stamp, text: Option<&'a [u8]> },
    /// Bytes with unknown meaning, perhaps including PDUs.
    Lost { bytes: u64 },
}

impl Cut<'_> {
    pub(crate) const fn header(&self) -> Option<&Header> {
        match self {
            Self::Header { header, .. } | Self::Data { header, .. } | Self::End { header, .. } => {
                Some(header)
            }
            Self::Lost { .. } => None,
        }
    }
}

/// The receiver of both directions' parts.
pub(crate) trait Listener {
    /// The known digests, which a cutter may determine.
    fn digests(&mut self) -> &mut Digests;
    fn cut(&mut self, cut: Cut<'_>);
}

#[derive(Debug)]
struct Open {
    header: Header,
    first: Stamp,
    /// Its latest byte.
    last: Stamp,
    /// The CRC of the data and padding so far, while a digest is undecided.
    crc: Option<Crc32c>,
    /// The data, if it is a login's.
    text: Option<Vec<u8>>,
}

#[derive(Debug, Default)]
enum State {
    /// The start of the next header is unknown.
    #[default]
    Seeking,
    Bhs(Vec<u8>, Stamp),
    Ahs(Open, Vec<u8>),
    HeaderDigest(Open, Vec<u8>),
    /// This many bytes of data and padding are to come.
    Data(Open, u32),
    DataDigest(Open, Vec<u8>),
}

#[derive(Debug, Default)]
pub(crate) struct PduCutter {
    state: State,
    /// Known from the SYN, from the port, or from the first header.
    pub(crate) sender: Option<Sender>,
}

impl PduCutter {
    /// The next byte is the first of a header.
    pub(crate) fn begin(&mut self) {
        self.state = State::Bhs(Vec::new(), Stamp::default());
    }

    /// Cuts the next bytes.
    pub(crate) fn feed(&mut self, piece: Piece<'_>, to: &mut impl Listener) {
        match piece.content {
            Content::Lost(bytes) => self.lose(bytes, piece.stamp, to),
            Content::Bytes(bytes) => {
                if matches!(self.state, State::Seeking) && piece.starts_segment && self.is_header(bytes) {
                    self.begin();
                }
                self.read(bytes, piece.stamp, to);
                self.settle(to);
            }
        }
    }

    /// If a digest is undecided and a segment ends just before it, there is none, because senders write digests
    /// together with the digested bytes. That holds for this PDU only.
    fn settle(&mut self, to: &mut impl Listener) {
        match core::mem::take(&mut self.state) {
            State::HeaderDigest(open, have) if have.is_empty() && to.digests().header.is_none() => {
                self.begin_data(open, to);
            }
            State::DataDigest(open, have) if have.is_empty() && to.digests().data.is_none() => {
                self.end(&open, to);
            }
            state => self.state = state,
        }
    }

    fn read(&mut self, bytes: &[u8], stamp: Stamp, to: &mut impl Listener) {
        let mut rest = bytes;
        while !rest.is_empty() {
            rest = self.step(rest, stamp, to);
        }
    }

    /// Consumes at least one byte, or changes the state; returns the rest.
    fn step<'a>(&mut self, bytes: &'a [u8], stamp: Stamp, to: &mut impl Listener) -> &'a [u8] {
        match core::mem::take(&mut self.state) {
            State::Seeking => {
                to.cut(Cut::Lost { bytes: bytes.len() as u64 });
                &[]
            }
            State::Bhs(mut have, first) => {
                let first = if have.is_empty() { stamp } else { first };
                let rest = fill(&mut have, Header::BHS_BYTES, bytes);
                self.bhs(have, first, stamp, to);
                rest
            }
            State::Ahs(mut open, mut have) => {
                open.last = stamp;
                let rest = fill(&mut have, open.header.ahs_bytes(), bytes);
                if have.len() < open.header.ahs_bytes() {
                    self.state = State::Ahs(open, have);
                } else if open.header.set_ahs(have).is_ok() {
                    self.header(open, to);
                }
                rest
            }
            State::HeaderDigest(open, mut have) => {
                let rest = fill(&mut have, DIGEST_BYTES, bytes);
                if have.len() < DIGEST_BYTES {
                    self.state = State::HeaderDigest(open, have);
                } else {
                    self.header_digest(open, &have, stamp, to);
                }
                rest
            }
            State::Data(mut open, left) => {
                open.last = stamp;
                let (taken, rest) = bytes.split_at(bytes.len().min(left as usize));
                open.take(taken);
                to.cut(Cut::Data { header: &open.header, stamp });
                let left = left - u32::try_from(taken.len()).unwrap_or(left);
                self.data(open, left, to);
                rest
            }
            State::DataDigest(open, mut have) => {
                let rest = fill(&mut have, DIGEST_BYTES, bytes);
                if have.len() < DIGEST_BYTES {
                    self.state = State::DataDigest(open, have);
                } else {
                    self.data_digest(open, &have, stamp, to);
                }
                rest
            }
        }
    }

    fn bhs(&mut self, have: Vec<u8>, first: Stamp, stamp: Stamp, to: &mut impl Listener) {
        let Ok(bhs) = <[u8; Header::BHS_BYTES]>::try_from(have.as_slice()) else {
            self.state = State::Bhs(have, first);
            return;
        };
        let header = Header::new(bhs);
        let sender = Sender::of(&header);
        if sender.is_none() || self.sender.is_some_and(|known| Some(known) != sender) {
            to.cut(Cut::Lost { bytes: Header::BHS_BYTES as u64 });
            return;
        }
        self.sender = sender;
        let open = Open { header, first, last: stamp, crc: None, text: None };
        if open.header.ahs_bytes() > 0 {
            self.state = State::Ahs(open, Vec::new());
        } else {
            self.header(open, to);
        }
    }

    fn header(&mut self, mut open: Open, to: &mut impl Listener) {
        let is_login = matches!(open.header.opcode(), Ok(Opcode::LoginRequest | Opcode::LoginResponse));
        if is_login {
            *to.digests() = Digests::NONE;
            open.text = Some(Vec::new());
        }
        to.cut(Cut::Header { header: &open.header, first: open.first });
        if to.digests().header == Some(false) {
            self.begin_data(open, to);
        } else {
            self.state = State::HeaderDigest(open, Vec::new());
        }
    }

    fn header_digest(&mut self, mut open: Open, have: &[u8], stamp: Stamp, to: &mut impl Listener) {
        let is_there = *to.digests().header.get_or_insert_with(|| header_digest(&open.header) == have);
        if is_there {
            open.last = stamp;
        }
        self.begin_data(open, to);
        if !is_there {
            self.read(have, stamp, to);
        }
    }

    fn begin_data(&mut self, mut open: Open, to: &mut impl Listener) {
        let bytes = open.header.data_segment_bytes();
        if bytes == 0 {
            self.end(&open, to);
            return;
        }
        open.crc = to.digests().data.is_none().then(Crc32c::new);
        self.data(open, bytes + padding(bytes), to);
    }

    fn data(&mut self, open: Open, left: u32, to: &mut impl Listener) {
        if left > 0 {
            self.state = State::Data(open, left);
        } else if to.digests().data.unwrap_or(open.crc.is_some()) {
            self.state = State::DataDigest(open, Vec::new());
        } else {
            self.end(&open, to);
        }
    }

    fn data_digest(&mut self, mut open: Open, have: &[u8], stamp: Stamp, to: &mut impl Listener) {
        let fits = || open.crc.as_ref().is_some_and(|crc| crc.finish() == have);
        let is_there = *to.digests().data.get_or_insert_with(fits);
        if is_there {
            open.last = stamp;
        }
        self.end(&open, to);
        if !is_there {
            self.read(have, stamp, to);
        }
    }

    fn end(&mut self, open: &Open, to: &mut impl Listener) {
        let text =
            open.text.as_deref().and_then(|text| text.get(..open.header.data_segment_bytes() as usize));
        to.cut(Cut::End { header: &open.header, first: open.first, stamp: open.last, text });
        self.begin();
    }

    /// Skips bytes that the capture lacks.
    fn lose(&mut self, bytes: u64, stamp: Stamp, to: &mut impl Listener) {
        let mut left = bytes;
        while left > 0 {
            left = self.lose_some(left, stamp, to);
        }
    }

    fn lose_some(&mut self, bytes: u64, stamp: Stamp, to: &mut impl Listener) -> u64 {
        match core::mem::take(&mut self.state) {
            State::Data(mut open, left) => {
                open.last = stamp;
                open.crc = None;
                open.text = None;
                to.cut(Cut::Data { header: &open.header, stamp });
                let taken = u32::try_from(bytes).unwrap_or(u32::MAX).min(left);
                self.data(open, left - taken, to);
                bytes - u64::from(taken)
            }
            // An uncaptured digest is present if digests are known to be.
            State::HeaderDigest(open, have) => {
                if to.digests().header.is_none() {
                    self.begin_data(open, to);
                    return bytes;
                }
                let taken = bytes.min((DIGEST_BYTES - have.len()) as u64);
                let have = [have, vec![0; usize::try_from(taken).unwrap_or(0)]].concat();
                if have.len() < DIGEST_BYTES {
                    self.state = State::HeaderDigest(open, have);
                } else {
                    self.begin_data(open, to);
                }
                bytes - taken
            }
            State::DataDigest(open, have) => {
                if to.digests().data.is_none() {
                    self.end(&open, to);
                    return bytes;
                }
                let taken = bytes.min((DIGEST_BYTES - have.len()) as u64);
                let have = [have, vec![0; usize::try_from(taken).unwrap_or(0)]].concat();
                if have.len() < DIGEST_BYTES {
                    self.state = State::DataDigest(open, have);
                } else {
                    self.end(&open, to);
                }
                bytes - taken
            }
            State::Bhs(have, _) | State::Ahs(_, have) => {
                to.cut(Cut::Lost { bytes: bytes + have.len() as u64 });
                0
            }
            State::Seeking => {
                to.cut(Cut::Lost { bytes });
                0
            }
        }
    }

    /// Whether these bytes start with a plausible header.
    fn is_header(&self, bytes: &[u8]) -> bool {
        let Some(bhs) = bytes.first_chunk::<{ Header::BHS_BYTES }>() else { return false };
        let header = Header::new(*bhs);
        let Some(sender) = Sender::of(&header) else { return false };
        let written = match sender {
            Sender::Initiator => InitiatorPdu::parse(&header).map(|pdu| pdu.emit()),
            Sender::Target => TargetPdu::parse(&header).map(|pdu| pdu.emit()),
        };
        self.sender.is_none_or(|known| known == sender) && written.is_ok_and(|written| written.bhs() == bhs)
    }
}

impl Open {
    fn take(&mut self, bytes: &[u8]) {
        if let Some(crc) = &mut self.crc {
            crc.update(bytes);
        }
        if let Some(text) = &mut self.text {
            let room = TEXT_BYTES_MAX - text.len();
            text.extend_from_slice(&bytes[..bytes.len().min(room)]);
        }
    }
}

/// Appends to `have` up to `want` bytes.
fn fill<'a>(have: &mut Vec<u8>, want: usize, bytes: &'a [u8]) -> &'a [u8] {
    let (taken, rest) = bytes.split_at(bytes.len().min(want - have.len()));
    have.extend_from_slice(taken);
    rest
}
