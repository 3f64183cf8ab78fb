//! From a socket's bytes to headers, and to data segments in their buffers.

use crate::BufferTable;
use pdu::{Crc32c, DIGEST_BYTES, Header, Instant, LaneId};
use session::parameters::ConnectionParameters;
use session::peer_fault::PeerFault;
use session::seam::{Destination, Digest, Endpoint, Fault, PayloadRef};

/// The area that headers and short segments pass through, shared by all connections of a thread.
#[derive(Debug)]
pub struct Scratch(Box<[u8]>);

/// The most bytes that one read takes beyond a command's own buffer: enough for a dozen 4 KiB writes in one system
/// call, and small enough for the nearest cache.
const SCRATCH_BYTES: usize = 64 << 10;

impl Default for Scratch {
    fn default() -> Self {
        Self(vec![0; SCRATCH_BYTES].into())
    }
}

impl Scratch {
    /// The area, to be filled; its old contents are meaningless.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.0
    }
}

/// The part of a PDU that is being received.
#[derive(Debug)]
enum Stage {
    /// BHS, AHS and header digest; [`Receiver::head`] holds their first `have` bytes.
    Header,
    /// A data segment.
    Segment(Segment),
    /// The data segment, padding and digest of a PDU that is lost because its header digest failed.
    Lost { bytes_left: usize },
}

#[derive(Debug)]
struct Segment {
    destination: Destination,
    filled_bytes: u32,
    bytes: u32,
    /// Padding and digest after the data.
    tail_bytes: usize,
}

/// Cuts the stream of one connection into PDUs. Holds at most one header, one inline segment, and counts.
#[derive(Debug)]
pub struct Receiver {
    lane: LaneId,
    header_digest: bool,
    data_digest: bool,
    segment_bytes_max: u32,
    stage: Stage,
    /// The CRC of the data segment being received.
    crc: Crc32c,
    head: Vec<u8>,
    inline: Vec<u8>,
    tail: Vec<u8>,
    /// The last header digest failed, so a header may not begin here.
    is_astray: bool,
    /// Bytes have arrived directly since the last [`Self::feed`].
    was_filled: bool,
    pdus: u64,
}

impl Receiver {
    /// Starts at the first byte of full feature phase.
    #[must_use]
    pub fn new(lane: LaneId, parameters: &ConnectionParameters) -> Self {
        Self {
            lane,
            header_digest: parameters.header_digest,
            data_digest: parameters.data_digest,
            segment_bytes_max: parameters.receive_segment_bytes_max,
            stage: Stage::Header,
            crc: Crc32c::new(),
            head: Vec::with_capacity(Header::BHS_BYTES + DIGEST_BYTES),
            inline: Vec::new(),
            tail: Vec::with_capacity(8),
            is_astray: false,
            was_filled: false,
            pdus: 0,
        }
    }

    /// PDUs that arrived completely.
    #[must_use]
    pub fn pdus(&self) -> u64 {
        self.pdus
    }

    /// The rest of the data segment being received, if it belongs to a command's buffer. Read the socket into these
    /// bytes, then call [`Self::filled`].
    pub fn direct<'b>(&self, buffers: &'b mut BufferTable) -> Option<&'b mut [u8]> {
        let Stage::Segment(segment) = &self.stage else { return None };
        buffers.bytes_mut(segment.rest()?)
    }

    /// Says that the first `bytes` of [`Self::direct`] were filled.
    ///
    /// # Errors
    /// The buffer is gone: the connection cannot continue.
    pub fn filled(&mut self, bytes: usize, buffers: &mut BufferTable) -> Result<(), Fault> {
        let Stage::Segment(segment) = &mut self.stage else { return Ok(()) };
        let Some(mut rest) = segment.rest() else { return Ok(()) };
        rest.bytes = rest.bytes.min(u32::try_from(bytes).unwrap_or(u32::MAX));
        self.was_filled |= rest.bytes > 0;
        if self.data_digest {
            self.crc.update(buffers.bytes_mut(rest).ok_or(LOST_BUFFER)?);
        }
        segment.filled_bytes += rest.bytes;
        Ok(())
    }

    /// Takes bytes in the order of their arrival; none, if [`Self::filled`] took all of them. Call it after each read,
    /// because it tells the endpoint of the sign of life.
    ///
    /// # Errors
    /// The lane is unusable: the endpoint says so, or a header cannot be framed.
    pub fn feed<E: Endpoint>(
        &mut self,
        mut input: &[u8],
        now: Instant,
        endpoint: &mut E,
        buffers: &mut BufferTable,
    ) -> Result<(), Fault> {
        let has_come = std::mem::take(&mut self.was_filled) || !input.is_empty();
        // Bytes that are passed over may be the peer's next PDUs: a corrupted length must not keep a connection alive.
        if has_come && !self.is_astray {
            endpoint.heard(now, self.lane);
        }
        loop {
            let done = match &mut self.stage {
                Stage::Header => self.feed_header(&mut input, now, endpoint, buffers)?,
                Stage::Segment(_) => self.feed_segment(&mut input, now, endpoint, buffers)?,
                Stage::Lost { .. } => self.feed_lost(&mut input),
            };
            if !done {
                return Ok(());
            }
        }
    }

    /// Collects one header; `true` once it is complete and handed over.
    fn feed_header<E: Endpoint>(
        &mut self,
        input: &mut &[u8],
        now: Instant,
        endpoint: &mut E,
        buffers: &mut BufferTable,
    ) -> Result<bool, Fault> {
        if !collect(&mut self.head, Header::BHS_BYTES, input) {
            return Ok(false);
        }
        let bhs = self.head.first_chunk().ok_or(LOST_BUFFER)?;
        let mut header = Header::new(*bhs);
        let header_bytes = Header::BHS_BYTES + header.ahs_bytes();
        let digest_bytes = if self.header_digest { DIGEST_BYTES } else { 0 };
        if !collect(&mut self.head, header_bytes + digest_bytes, input) {
            return Ok(false);
        }
        let (covered, digest) = self.head.split_at(header_bytes);
        if self.header_digest && digest != pdu::digest(covered) {
            self.head.clear();
            self.pass_over(&header, now, endpoint, buffers)?;
            return Ok(true);
        }
        self.is_astray = false;
        if header_bytes > Header::BHS_BYTES {
            header.set_ahs(covered[Header::BHS_BYTES..].to_vec())?;
        }
        self.head.clear();
        self.begin_segment(&header, now, endpoint, buffers)?;
        Ok(true)
    }

    /// Skips a PDU whose header digest failed, if the endpoint can do without it. The length may be wrong too; the next
    /// header's digest shows it, and must then be good (RFC 7143 §7.8).
    fn pass_over<E: Endpoint>(
        &mut self,
        header: &Header,
        now: Instant,
        endpoint: &mut E,
        buffers: &mut BufferTable,
    ) -> Result<(), Fault> {
        let bytes = header.data_segment_bytes();
        if std::mem::replace(&mut self.is_astray, true) || bytes > self.segment_bytes_max {
            return Err(Fault::HeaderDigest);
        }
        endpoint.receive_header(now, self.lane, header, Digest::Bad, buffers)?;
        if bytes > 0 {
            self.stage = Stage::Lost { bytes_left: bytes as usize + self.tail_bytes(bytes) };
        }
        Ok(())
    }

    /// Skips the rest of a lost PDU; `true` at its end.
    fn feed_lost(&mut self, input: &mut &[u8]) -> bool {
        let Stage::Lost { bytes_left } = &mut self.stage else { return true };
        let skipped = input.len().min(*bytes_left);
        *input = &input[skipped..];
        *bytes_left -= skipped;
        let is_past = *bytes_left == 0;
        if is_past {
            self.stage = Stage::Header;
        }
        is_past
    }

    fn begin_segment<E: Endpoint>(
        &mut self,
        header: &Header,
        now: Instant,
        endpoint: &mut E,
        buffers: &mut BufferTable,
    ) -> Result<(), Fault> {
        let bytes = header.data_segment_bytes();
        if bytes > self.segment_bytes_max {
            return Err(PeerFault::SegmentTooLong.into());
        }
        let destination = endpoint.receive_header(now, self.lane, header, Digest::Good, buffers)?;
        if bytes == 0 {
            self.pdus += 1;
            return Ok(());
        }
        let tail_bytes = self.tail_bytes(bytes);
        if self.data_digest {
            self.crc = Crc32c::new();
        }
        self.stage = Stage::Segment(Segment { destination, filled_bytes: 0, bytes, tail_bytes });
        Ok(())
    }

    /// The bytes of padding and digest that follow `bytes` of data.
    fn tail_bytes(&self, bytes: u32) -> usize {
        pdu::padding(bytes) as usize + if self.data_digest { DIGEST_BYTES } else { 0 }
    }

    /// Moves data, padding and digest; `true` once the segment is complete and handed over.
    fn feed_segment<E: Endpoint>(
        &mut self,
        input: &mut &[u8],
        now: Instant,
        endpoint: &mut E,
        buffers: &mut BufferTable,
    ) -> Result<bool, Fault> {
        let Stage::Segment(segment) = &mut self.stage else { return Ok(true) };
        let take = input.len().min((segment.bytes - segment.filled_bytes) as usize);
        let (data, rest) = input.split_at(take);
        *input = rest;
        if !data.is_empty() {
            match segment.destination {
                Destination::Buffer(_) => {
                    let place =
                        segment.rest().and_then(|place| buffers.bytes_mut(place)).ok_or(LOST_BUFFER)?;
                    place[..take].copy_from_slice(data);
                }
                Destination::Inline { .. } => self.inline.extend_from_slice(data),
                Destination::Discard { .. } | Destination::None => {}
            }
            if self.data_digest {
                self.crc.update(data);
            }
            segment.filled_bytes += u32::try_from(take).unwrap_or(u32::MAX);
        }
        if segment.filled_bytes < segment.bytes || !collect(&mut self.tail, segment.tail_bytes, input) {
            return Ok(false);
        }
        let digest = self.verdict();
        self.stage = Stage::Header;
        self.tail.clear();
        self.pdus += 1;
        let inline = std::mem::take(&mut self.inline);
        endpoint.receive_data(now, self.lane, &inline, digest)?;
        Ok(true)
    }

    /// Compares the digest at the end of [`Self::tail`] with the CRC of data and padding.
    fn verdict(&mut self) -> Digest {
        if !self.data_digest {
            return Digest::Good;
        }
        let (padding, digest) = self.tail.split_at(self.tail.len() - DIGEST_BYTES);
        self.crc.update(padding);
        if digest == self.crc.finish() { Digest::Good } else { Digest::Bad }
    }
}

impl Segment {
    /// The place of the missing bytes, if they belong to a buffer.
    fn rest(&self) -> Option<PayloadRef> {
        let Destination::Buffer(whole) = self.destination else { return None };
        let bytes = self.bytes - self.filled_bytes;
        (bytes > 0).then_some(PayloadRef {
            buffer: whole.buffer,
            offset_bytes: whole.offset_bytes + self.filled_bytes,
            bytes,
        })
    }
}

/// The core named a buffer that this driver does not have, or has lent out: the connection cannot continue.
const LOST_BUFFER: Fault = Fault::Limit("the buffer of a transfer is gone");

/// Appends from `input` until `to` has `bytes` bytes; `false` if `input` ran out first.
fn collect(to: &mut Vec<u8>, bytes: usize, input: &mut &[u8]) -> bool {
    let take = bytes.saturating_sub(to.len()).min(input.len());
    let (head, rest) = input.split_at(take);
    to.extend_from_slice(head);
    *input = rest;
    to.len() >= bytes
}
