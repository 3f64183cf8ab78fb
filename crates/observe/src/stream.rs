//! One direction of a TCP connection, put in order; bytes that the capture lacks are marked as lost.

use crate::segment::Segment;
use pdu::Instant;
use serde::Serialize;
use std::collections::BTreeMap;

/// The time and frame of a capture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub(crate) at: Instant,
    /// The frame's number, from 1 as in other tools.
    pub(crate) frame: u64,
}

/// The next bytes of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece<'a> {
    /// The first time they were captured.
    pub(crate) stamp: Stamp,
    /// Whether a segment starts here.
    pub(crate) starts_segment: bool,
    pub(crate) content: Content<'a>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content<'a> {
    Bytes(&'a [u8]),
    /// A number of bytes that the capture lacks.
    Lost(u64),
}

/// Counters of one direction's segments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct StreamCounters {
    /// Segments with payload. Super-packets count once.
    pub segments: u64,
    /// New payload bytes.
    pub bytes: u64,
    /// Segments with payload already seen at the point of capture.
    pub retransmitted_segments: u64,
    /// Bytes seen before.
    pub retransmitted_bytes: u64,
    /// Segments captured before an earlier one: reordered, or repeated after a loss between the sender and the point of
    /// capture.
    pub out_of_order_segments: u64,
    /// Bytes that the peer acknowledged, but that the capture lacks.
    pub missed_bytes: u64,
    /// Bytes that were truncated when the capture was written (a snapshot length).
    pub cut_bytes: u64,
}

/// The memory for a held segment besides its bytes.
const HELD_OVERHEAD_BYTES: usize = 128;

#[derive(Debug)]
struct Held {
    stamp: Stamp,
    kept: Vec<u8>,
    bytes: u32,
}

/// Puts the segments of one direction in order. Positions count the bytes of the stream from its first one, or from the
/// first one captured.
#[derive(Debug, Default)]
pub(crate) struct Stream {
    /// The sequence number of position 0.
    origin: Option<u32>,
    next: u64,
    acknowledged: u64,
    held: BTreeMap<u64, Held>,
    pub(crate) counters: StreamCounters,
}

impl Stream {
    /// The position of a sequence number within 2 GiB of the next byte. `None` before the first byte.
    pub(crate) fn position(&self, sequence: u32) -> Option<u64> {
        let expected = self.origin?.wrapping_add(low(self.next));
        let distance = i64::from(sequence.wrapping_sub(expected).cast_signed());
        self.next.checked_add_signed(distance)
    }

    /// Whether its first byte has been seen, or its place is known.
    pub(crate) const fn has_begun(&self) -> bool {
        self.origin.is_some()
    }

    /// The stream begins here.
    pub(crate) fn begin(&mut self, sequence: u32) {
        self.origin.get_or_insert(sequence);
    }

    /// The room that it takes.
    pub(crate) fn held_bytes(&self) -> usize {
        self.held.values().map(|held| held.kept.len() + HELD_OVERHEAD_BYTES).sum()
    }

    /// Adds a segment, and delivers the bytes now in order. `room` is the number of bytes that may still be held, over
    /// all streams.
    pub(crate) fn push(
        &mut self,
        segment: &Segment<'_>,
        frame: u64,
        room: &mut usize,
        tell: &mut dyn FnMut(Piece<'_>),
    ) {
        if segment.payload_bytes == 0 {
            return;
        }
        let sequence = segment.sequence.wrapping_add(u32::from(segment.syn));
        self.begin(sequence);
        // Far before the beginning: from an earlier connection, or garbage.
        let Some(position) = self.position(sequence) else { return };
        let stamp = Stamp { at: segment.at, frame };
        self.counters.segments += 1;
        self.counters.cut_bytes += u64::from(segment.payload_bytes) - segment.payload.len() as u64;
        if position > self.next && *room >= HELD_OVERHEAD_BYTES {
            self.hold(position, segment, stamp, room);
        } else {
            self.give_up_until(position, stamp, tell);
            self.deliver(position, stamp, segment.payload, segment.payload_bytes, tell);
        }
        self.advance(room, tell);
    }

    /// The peer has everything before this sequence number. Missing bytes before it will not come.
    pub(crate) fn acknowledge(&mut self, sequence: u32, room: &mut usize, tell: &mut dyn FnMut(Piece<'_>)) {
        if let Some(position) = self.position(sequence) {
            self.acknowledged = self.acknowledged.max(position);
            self.advance(room, tell);
        }
    }

    fn hold(&mut self, position: u64, segment: &Segment<'_>, stamp: Stamp, room: &mut usize) {
        if self.held.contains_key(&position) {
            self.counters.retransmitted_segments += 1;
            self.counters.retransmitted_bytes += u64::from(segment.payload_bytes);
            return;
        }
        self.counters.out_of_order_segments += 1;
        *room -= HELD_OVERHEAD_BYTES;
        // Without room, only the number of bytes is kept.
        let kept = if segment.payload.len() <= *room { segment.payload } else { &[] };
        *room -= kept.len();
        self.held.insert(position, Held { stamp, kept: kept.to_vec(), bytes: segment.payload_bytes });
    }

    /// Delivers held segments that are in order now, and gives up missing bytes before those that need not wait.
    fn advance(&mut self, room: &mut usize, tell: &mut dyn FnMut(Piece<'_>)) {
        while let Some(first) = self.held.first_entry() {
            let position = *first.key();
            if position > self.next && self.acknowledged < position {
                return;
            }
            let held = first.remove();
            *room += held.kept.len() + HELD_OVERHEAD_BYTES;
            self.give_up_until(position, held.stamp, tell);
            self.deliver(position, held.stamp, &held.kept, held.bytes, tell);
        }
    }

    fn give_up_until(&mut self, position: u64, stamp: Stamp, tell: &mut dyn FnMut(Piece<'_>)) {
        let missed = position.saturating_sub(self.next);
        if missed > 0 {
            self.counters.missed_bytes += missed;
            self.next = position;
            tell(Piece { stamp, starts_segment: false, content: Content::Lost(missed) });
        }
    }

    /// Delivers the new part of a segment that starts at or before the next byte.
    fn deliver(
        &mut self,
        position: u64,
        stamp: Stamp,
        kept: &[u8],
        bytes: u32,
        tell: &mut dyn FnMut(Piece<'_>),
    ) {
        let old = (self.next - position).min(bytes.into());
        if old > 0 {
            self.counters.retransmitted_segments += 1;
            self.counters.retransmitted_bytes += old;
        }
        let new = u64::from(bytes) - old;
        if new == 0 {
            return;
        }
        self.next += new;
        self.counters.bytes += new;
        let kept = usize::try_from(old).ok().and_then(|old| kept.get(old..)).unwrap_or(&[]);
        if !kept.is_empty() {
            tell(Piece { stamp, starts_segment: old == 0, content: Content::Bytes(kept) });
        }
        let lost = new - kept.len() as u64;
        if lost > 0 {
            tell(Piece { stamp, starts_segment: kept.is_empty() && old == 0, content: Content::Lost(lost) });
        }
    }
}

/// The lower half, because sequence numbers wrap.
pub(crate) const fn low(position: u64) -> u32 {
    let [_, _, _, _, b4, b5, b6, b7] = position.to_be_bytes();
    u32::from_be_bytes([b4, b5, b6, b7])
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, SocketAddr};

    const ORIGIN: u32 = u32::MAX - 3;

    struct World {
        stream: Stream,
        room: usize,
        told: Vec<u8>,
        lost: u64,
    }

    impl World {
        fn new() -> Self {
            let mut stream = Stream::default();
            stream.begin(ORIGIN);
            Self { stream, room: 1 << 20, told: Vec::new(), lost: 0 }
        }

        /// The stream's bytes are their positions.
        fn send(&mut self, from: u8, to: u8) {
            let payload: Vec<u8> = (from..to).collect();
            self.send_cut(from, &payload, u32::from(to - from));
        }

        fn send_cut(&mut self, from: u8, payload: &[u8], payload_bytes: u32) {
            let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
            let segment = Segment {
                at: Instant::ZERO,
                from: address,
                to: address,
                sequence: ORIGIN.wrapping_add(from.into()),
                acknowledgment: None,
                syn: false,
                window: 0,
                window_shift: None,
                payload,
                payload_bytes,
            };
            let Self { stream, room, told, lost } = self;
            stream.push(&segment, 1, room, &mut |piece| collect(piece, told, lost));
        }

        fn acknowledge(&mut self, position: u8) {
            let Self { stream, room, told, lost } = self;
            let sequence = ORIGIN.wrapping_add(position.into());
            stream.acknowledge(sequence, room, &mut |piece| collect(piece, told, lost));
        }
    }

    fn collect(piece: Piece<'_>, told: &mut Vec<u8>, lost: &mut u64) {
        match piece.content {
            Content::Bytes(bytes) => told.extend_from_slice(bytes),
            Content::Lost(bytes) => *lost += bytes,
        }
    }

    #[test]
    fn segments_out_of_order_are_put_in_order_across_the_wrap_of_sequence_numbers() {
        let mut world = World::new();
        world.send(6, 9);
        world.send(3, 6);
        world.send(0, 3);
        assert_eq!(world.told, (0..9).collect::<Vec<u8>>());
        assert_eq!(world.stream.counters.out_of_order_segments, 2);
        assert_eq!(world.room, 1 << 20);
    }

    #[test]
    fn what_is_sent_again_is_told_once() {
        let mut world = World::new();
        world.send(0, 4);
        world.send(0, 4);
        world.send(2, 6);
        assert_eq!(world.told, (0..6).collect::<Vec<u8>>());
        assert_eq!(world.stream.counters.retransmitted_bytes, 6);
    }

    #[test]
    fn a_hole_that_the_peer_acknowledged_is_lost_to_the_capture() {
        let mut world = World::new();
        world.send(0, 2);
        world.send(5, 8);
        assert_eq!((world.told.len(), world.lost), (2, 0));
        world.acknowledge(8);
        assert_eq!(world.told, [0, 1, 5, 6, 7]);
        assert_eq!(world.lost, 3);
        assert_eq!(world.stream.counters.missed_bytes, 3);
    }

    #[test]
    fn the_end_of_a_segment_that_was_cut_off_is_lost() {
        let mut world = World::new();
        world.send_cut(0, &[0, 1], 10);
        world.send(10, 12);
        assert_eq!(world.told, [0, 1, 10, 11]);
        assert_eq!((world.lost, world.stream.counters.cut_bytes), (8, 8));
    }

    #[test]
    fn without_room_only_the_length_of_what_is_early_is_kept() {
        let mut world = World::new();
        world.room = HELD_OVERHEAD_BYTES + 1;
        world.send(4, 8);
        world.send(0, 4);
        assert_eq!((world.told.len(), world.lost, world.room), (4, 4, HELD_OVERHEAD_BYTES + 1));
    }
}
