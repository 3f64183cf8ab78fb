//! Frames in, a report out.

use crate::analysis::{Analysis, CaptureReport};
use crate::connection::Connection;
use crate::digests::Digests;
use crate::frame::Frame;
use crate::pdu_record::PduRecord;
use crate::segment::Segment;
use crate::timeline::PointRoom;
use pdu::Duration;
use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;

/// Connections that are followed at once. Beyond that, one without iSCSI makes room for the next.
const CONNECTIONS_MAX: usize = 4096;
/// Bytes that wait for an earlier segment, of all connections.
const HELD_BYTES_MAX: usize = 256 << 20;
/// Commands that are followed and kept, of all connections; each takes less than a kilobyte.
const COMMANDS_MAX: usize = 1 << 18;

/// Points over time, of all connections; each takes less than 256 bytes.
const POINTS_MAX: usize = 1 << 20;

/// What the capture cannot say, and what is asked of it.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The digests of connections whose login was not captured.
    pub digests: Digests,
    /// Silences longer than this are gaps. Without: half the smallest round trip, and at least a millisecond.
    pub gap: Option<Duration>,
    /// How many points the timeline of a connection has at most.
    pub timeline_points_max: usize,
    /// Only frames from then on are looked into, counted from the first. What earlier ones say of a connection (its
    /// login, the scale of its windows) is not known then.
    pub from: Duration,
    /// Only frames before then; to the end of the capture, if it is missing.
    pub to: Option<Duration>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            digests: Digests::default(),
            gap: None,
            timeline_points_max: 512,
            from: Duration::ZERO,
            to: None,
        }
    }
}

impl Options {
    fn is_looked_into(&self, since_first: Duration) -> bool {
        self.from <= since_first && self.to.is_none_or(|to| since_first < to)
    }
}

/// What may yet be kept, by all connections together.
#[derive(Debug)]
pub(crate) struct Room {
    pub(crate) held_bytes: usize,
    pub(crate) commands: usize,
    pub(crate) points: PointRoom,
}

/// Follows every TCP connection of a capture, and the iSCSI in it. Memory is bounded whatever the capture holds.
#[derive(Debug)]
pub struct Analyser {
    options: Options,
    capture: CaptureReport,
    /// By their numbers.
    connections: BTreeMap<usize, Connection>,
    /// The latest connection between two ends, the lower address first.
    by_ends: HashMap<[SocketAddr; 2], usize>,
    next_number: usize,
    room: Room,
}

impl Analyser {
    /// An analyser that has seen nothing.
    #[must_use]
    pub fn new(options: Options) -> Self {
        Self {
            options,
            capture: CaptureReport::default(),
            connections: BTreeMap::new(),
            by_ends: HashMap::new(),
            next_number: 0,
            room: Room {
                held_bytes: HELD_BYTES_MAX,
                commands: COMMANDS_MAX,
                points: PointRoom { of_one: options.timeline_points_max, left: POINTS_MAX },
            },
        }
    }

    /// Takes in the next frame. Every PDU that it completes is told.
    pub fn frame(&mut self, frame: &Frame<'_>, mut tell: impl FnMut(&PduRecord)) {
        if self.capture.frames == 0 {
            self.capture.first_ns = frame.at.0;
        }
        self.capture.frames += 1;
        self.capture.last_ns = self.capture.last_ns.max(frame.at.0);
        let since_first = Duration::from_nanos(frame.at.0.saturating_sub(self.capture.first_ns));
        if !self.options.is_looked_into(since_first) {
            self.capture.frames_left_out += 1;
            return;
        }
        let Some(segment) = Segment::parse(frame) else { return };
        self.capture.segments += 1;
        let Some(number) = self.number(&segment) else { return };
        if let Some(connection) = self.connections.get_mut(&number) {
            connection.segment(&segment, self.capture.frames, number, &mut self.room, &mut tell);
        }
    }

    /// What has been seen so far.
    #[must_use]
    pub fn report(&self) -> Analysis {
        let connections = self.connections.iter().filter(|(_, connection)| connection.has_pdus());
        Analysis {
            capture: self.capture,
            connections: connections.map(|(number, connection)| connection.report(*number)).collect(),
        }
    }

    /// The number of the connection that the segment is of, a new one perhaps. `None` if there is no room for it.
    fn number(&mut self, segment: &Segment<'_>) -> Option<usize> {
        let mut ends = [segment.from, segment.to];
        ends.sort_unstable();
        if let Some(&known) = self.by_ends.get(&ends)
            && self.connections.get(&known).is_some_and(|connection| !connection.is_over_at(segment))
        {
            return Some(known);
        }
        if segment.payload_bytes == 0 && !segment.syn {
            // Nothing is learnt from a connection that only acknowledges.
            return None;
        }
        self.capture.connections += 1;
        if self.connections.len() == CONNECTIONS_MAX && !self.make_room() {
            self.capture.connections_ignored += 1;
            return None;
        }
        let number = self.next_number;
        self.next_number += 1;
        self.by_ends.insert(ends, number);
        self.connections.insert(number, Connection::new(segment, self.options));
        Some(number)
    }

    /// Forgets the oldest connection in which no PDU was found.
    fn make_room(&mut self) -> bool {
        let oldest = self.connections.iter().find(|(_, connection)| !connection.has_pdus());
        let Some((&number, connection)) = oldest else { return false };
        self.room.held_bytes += connection.held_bytes();
        self.room.points.left += connection.points();
        self.connections.remove(&number);
        self.by_ends.retain(|_, known| *known != number);
        true
    }
}
