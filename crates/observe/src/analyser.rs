//! Analyses the frames of a capture.

use crate::analysis::{Analysis, CaptureReport, ConnectionReport};
use crate::commands::Commands;
use crate::connection::Connection;
use crate::digests::Digests;
use crate::frame::Frame;
use crate::login::SessionName;
use crate::pdu_record::PduRecord;
use crate::segment::Segment;
use crate::timeline::PointRoom;
use pdu::Duration;
use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;

/// The most connections followed at once. Beyond it, one without iSCSI makes room for the next.
const CONNECTIONS_MAX: usize = 4096;
/// The most bytes that wait for an earlier segment, over all connections.
const HELD_BYTES_MAX: usize = 256 << 20;
/// The most commands followed and kept, over all connections; each takes less than a kilobyte.
const COMMANDS_MAX: usize = 1 << 18;

/// The most points over time, over all connections; each takes less than 256 bytes.
const POINTS_MAX: usize = 1 << 20;

/// The options of an analysis, and facts that the capture lacks.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The digests of connections without a captured login.
    pub digests: Digests,
    /// The shortest pause that counts as a gap. `None`: [`Gap::duration_min`](crate::Gap::duration_min)
    /// of the smallest round trip.
    pub gap: Option<Duration>,
    /// The most points in a connection's timeline.
    pub timeline_points_max: usize,
    /// Analyses only frames from this time on, counted from the first. The contents of earlier ones (a login, the scale
    /// of the windows) are then unknown.
    pub from: Duration,
    /// Analyses only frames before this time; to the end of the capture, if missing.
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

/// The remaining room for all connections together.
#[derive(Debug)]
pub(crate) struct Room {
    pub(crate) held_bytes: usize,
    pub(crate) commands: usize,
    pub(crate) points: PointRoom,
}

/// Follows every TCP connection of a capture, and the iSCSI in it. Its memory is bounded for any capture.
#[derive(Debug)]
pub struct Analyser {
    options: Options,
    capture: CaptureReport,
    /// By their numbers.
    connections: BTreeMap<usize, Connection>,
    /// The commands that began on each.
    commands: BTreeMap<usize, Commands>,
    /// The latest connection between two ends, the lower address first.
    by_ends: HashMap<[SocketAddr; 2], usize>,
    next_number: usize,
    room: Room,
}

impl Analyser {
    /// An analyser before the first frame.
    #[must_use]
    pub fn new(options: Options) -> Self {
        Self {
            options,
            capture: CaptureReport::default(),
            connections: BTreeMap::new(),
            commands: BTreeMap::new(),
            by_ends: HashMap::new(),
            next_number: 0,
            room: Room {
                held_bytes: HELD_BYTES_MAX,
                commands: COMMANDS_MAX,
                points: PointRoom { of_one: options.timeline_points_max, left: POINTS_MAX },
            },
        }
    }

    /// Analyses the next frame. Reports every PDU that it completes.
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
        let Some(connection) = self.connections.get_mut(&number) else { return };
        let commands = self.commands.entry(connection.companion_of().unwrap_or(number)).or_default();
        connection.segment(&segment, self.capture.frames, number, commands, &mut self.room, &mut tell);
        if connection.companion_of().is_none()
            && let Some(session) = connection.accompanied()
        {
            self.find_leader(number, &session);
        }
    }

    /// Joins a connection of a split session to that of the session's requests, if it was captured.
    fn find_leader(&mut self, number: usize, session: &SessionName) {
        let leader = self.connections.iter().rfind(|(_, connection)| connection.leads(session));
        if let Some(leader) = leader.map(|(leader, _)| *leader)
            && let Some(connection) = self.connections.get_mut(&number)
        {
            connection.accompany(leader);
        }
    }

    /// The results so far.
    #[must_use]
    pub fn report(&self) -> Analysis {
        let connections = self.connections.iter().filter(|(_, connection)| connection.has_pdus());
        Analysis {
            capture: self.capture,
            connections: connections
                .map(|(number, connection)| self.of_connection(*number, connection))
                .collect(),
        }
    }

    fn of_connection(&self, number: usize, connection: &Connection) -> ConnectionReport {
        let none = Commands::default();
        connection.report(number, self.commands.get(&number).unwrap_or(&none))
    }

    /// The number of the segment's connection, which may be new. `None` if there is no room for it.
    fn number(&mut self, segment: &Segment<'_>) -> Option<usize> {
        let mut ends = [segment.from, segment.to];
        ends.sort_unstable();
        if let Some(&known) = self.by_ends.get(&ends)
            && self.connections.get(&known).is_some_and(|connection| !connection.is_over_at(segment))
        {
            return Some(known);
        }
        if segment.payload_bytes == 0 && !segment.syn {
            // A connection that only acknowledges reveals nothing.
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

    /// Forgets the oldest connection without a PDU.
    fn make_room(&mut self) -> bool {
        let oldest = self.connections.iter().find(|(_, connection)| !connection.has_pdus());
        let Some((&number, connection)) = oldest else { return false };
        self.room.held_bytes += connection.held_bytes();
        self.room.points.left += connection.points();
        self.connections.remove(&number);
        self.commands.remove(&number);
        self.by_ends.retain(|_, known| *known != number);
        true
    }
}
