//! One TCP connection and the iSCSI in it, from the segments of both directions.

use crate::analyser::{Options, Room};
use crate::analysis::{CommandSummary, ConnectionReport, DirectionReport};
use crate::command::{Gap, Kind};
use crate::commands::{Before, Commands};
use crate::digests::Digests;
use crate::flight::Flight;
use crate::login::{Login, SessionName};
use crate::pdu_cutter::{Cut, Listener, PduCutter, Sender};
use crate::pdu_record::PduRecord;
use crate::segment::Segment;
use crate::stream::{Piece, Stream};
use crate::timeline::{Flow, Point, PointRoom, Timeline};
use crate::timing::{CommandReport, RttParts};
use pdu::{Header, Instant, Opcode};
use std::net::SocketAddr;

/// The port registered for iSCSI targets.
const PORT: u16 = 3260;

/// The data of one end.
#[derive(Debug, Default)]
struct Half {
    stream: Stream,
    flight: Flight,
    cutter: PduCutter,
    /// The shift count for its windows in its SYN, if that was captured.
    shift: Option<Option<u8>>,
    /// The time of its latest payload, and the data in flight then.
    latest: Option<(Instant, u64)>,
    pdus: u64,
    invalid_pdus: u64,
    unknown_bytes: u64,
}

/// The state that both directions share.
#[derive(Debug)]
struct Conversation {
    digests: Digests,
    login: Login,
    timeline: Timeline,
    /// The connection of a split session's requests, if this one carries something else of it.
    companion_of: Option<usize>,
}

#[derive(Debug)]
pub(crate) struct Connection {
    ends: [SocketAddr; 2],
    halves: [Half; 2],
    conversation: Conversation,
    options: Options,
}

impl Connection {
    /// A connection with its first captured segment.
    pub(crate) fn new(first: &Segment<'_>, options: Options) -> Self {
        let conversation = Conversation {
            digests: options.digests,
            login: Login::default(),
            timeline: Timeline::default(),
            companion_of: None,
        };
        let mut this = Self {
            ends: [first.from, first.to],
            halves: [Half::default(), Half::default()],
            conversation,
            options,
        };
        if !first.syn {
            // The port may identify the target; otherwise the first header will.
            match (first.from.port(), first.to.port()) {
                (_, PORT) => this.assign(0, Sender::Initiator),
                (PORT, _) => this.assign(0, Sender::Target),
                _ => {}
            }
        }
        this
    }

    /// Whether a SYN with this sequence number begins another connection between the same ends.
    pub(crate) fn is_over_at(&self, segment: &Segment<'_>) -> bool {
        let way = self.way(segment);
        let begun = self.halves[way].stream.position(segment.sequence.wrapping_add(1));
        segment.syn && segment.acknowledgment.is_none() && begun.is_some_and(|position| position != 0)
    }

    pub(crate) fn has_pdus(&self) -> bool {
        self.halves.iter().any(|half| half.pdus > 0)
    }

    fn way(&self, segment: &Segment<'_>) -> usize {
        usize::from(segment.from != self.ends[0])
    }

    /// Assigns the roles, with this half as the sender's, unless they are known.
    fn assign(&mut self, way: usize, sender: Sender) {
        let known = *self.halves[way].cutter.sender.get_or_insert(sender);
        self.halves[1 - way].cutter.sender.get_or_insert(known.peer());
    }

    /// The connection of its split session's requests, whose commands it carries on.
    pub(crate) fn companion_of(&self) -> Option<usize> {
        self.conversation.companion_of
    }

    /// Its commands are those of another connection.
    pub(crate) fn accompany(&mut self, requests: usize) {
        self.conversation.companion_of = Some(requests);
    }

    /// The split session of which it carries something else than requests, once its login is over.
    pub(crate) fn accompanied(&self) -> Option<SessionName> {
        let login = &self.conversation.login;
        // Of most connections, there is nothing to be made at each segment.
        login.carries.as_ref()?;
        login.session()
    }

    /// Whether it leads this session.
    pub(crate) fn leads(&self, session: &SessionName) -> bool {
        let login = &self.conversation.login;
        login.carries.is_none() && login.session().as_ref() == Some(session)
    }

    /// Processes one of its segments. Reports its PDUs with `number`.
    pub(crate) fn segment(
        &mut self,
        segment: &Segment<'_>,
        frame: u64,
        number: usize,
        commands: &mut Commands,
        room: &mut Room,
        tell: &mut dyn FnMut(&PduRecord),
    ) {
        let way = self.way(segment);
        if segment.syn {
            self.syn(segment, way);
        }
        let mut back = Flow::default();
        if let Some(sequence) = segment.acknowledgment {
            self.listen(1 - way, number, commands, room, tell, |stream, room, tell| {
                stream.acknowledge(sequence, room, tell);
            });
            back = self.acknowledged(segment, sequence, way);
        }
        let before = self.halves[way].stream.counters;
        self.listen(way, number, commands, room, tell, |stream, room, tell| {
            stream.push(segment, frame, room, tell);
        });
        self.sent(segment, way);
        let after = &self.halves[way].stream.counters;
        let forth = Flow {
            bytes: after.bytes - before.bytes,
            sent_again_bytes: after.retransmitted_bytes - before.retransmitted_bytes,
            in_flight_bytes_max: self.halves[way].flight.bytes(),
            ..Flow::default()
        };
        self.note(segment.at, way, (forth, back), commands, &mut room.points);
    }

    /// Processes an acknowledgement, for the direction that it acknowledges.
    fn acknowledged(&mut self, segment: &Segment<'_>, sequence: u32, way: usize) -> Flow {
        let half = &mut self.halves[1 - way];
        let rtt = half.flight.acknowledged(&half.stream, sequence, segment.at);
        let rtt_ns = rtt.map(pdu::nanoseconds);
        Flow {
            in_flight_bytes_max: half.flight.bytes(),
            window_bytes_min: if segment.syn { None } else { half.flight.offered(segment.window) },
            rtt_ns_min: rtt_ns,
            rtt_ns_max: rtt_ns,
            ..Flow::default()
        }
    }

    /// Records one segment in the timeline, for its direction and the other.
    fn note(
        &mut self,
        at: Instant,
        way: usize,
        (forth, back): (Flow, Flow),
        commands: &Commands,
        room: &mut PointRoom,
    ) {
        let is_target = self.halves[way].cutter.sender == Some(Sender::Target);
        let (to_target, to_initiator) = if is_target { (back, forth) } else { (forth, back) };
        let point = Point {
            segments: 1,
            to_target,
            to_initiator,
            outstanding_commands_max: commands.outstanding() as u64,
            outstanding_bytes_max: commands.outstanding_bytes,
        };
        self.conversation.timeline.add(at, &point, room);
    }

    fn syn(&mut self, segment: &Segment<'_>, way: usize) {
        let half = &mut self.halves[way];
        if half.shift.is_none() && half.stream.has_begun() {
            // Not the SYN of this stream.
            return;
        }
        half.stream.begin(segment.sequence.wrapping_add(1));
        half.flight.syn_sent(segment.at);
        if half.shift.is_none() {
            half.cutter.begin();
            half.shift = Some(segment.window_shift);
        }
        let is_first = segment.acknowledgment.is_none();
        self.assign(way, if is_first { Sender::Initiator } else { Sender::Target });
        if let (Some(ours), Some(theirs)) = (self.halves[0].shift, self.halves[1].shift) {
            // Windows are scaled only if both sides agree (RFC 7323 §2.2).
            let is_scaled = ours.is_some() && theirs.is_some();
            self.halves[0].flight.window_shift = theirs.filter(|_| is_scaled).or(Some(0));
            self.halves[1].flight.window_shift = ours.filter(|_| is_scaled).or(Some(0));
        }
    }

    /// Records the data in flight after a segment with payload.
    fn sent(&mut self, segment: &Segment<'_>, way: usize) {
        let half = &mut self.halves[way];
        let sequence = segment.sequence.wrapping_add(u32::from(segment.syn));
        let Some(from) = half.stream.position(sequence) else { return };
        if segment.payload_bytes > 0 {
            half.flight.sent(from, from + u64::from(segment.payload_bytes), segment.at);
            half.latest = Some((segment.at, half.flight.bytes()));
        }
    }

    /// Changes one direction's stream and processes the consequences.
    fn listen(
        &mut self,
        way: usize,
        number: usize,
        followed: &mut Commands,
        room: &mut Room,
        tell: &mut dyn FnMut(&PduRecord),
        change: impl FnOnce(&mut Stream, &mut usize, &mut dyn FnMut(Piece<'_>)),
    ) {
        let gap_ns_min = self.gap_ns_min();
        let assumed = self.options.digests;
        let Half { stream, flight, cutter, latest, pdus, invalid_pdus, unknown_bytes, .. } =
            &mut self.halves[way];
        let mut before = Before {
            at: latest.map(|(at, _)| at),
            in_flight_bytes: latest.map_or(0, |(_, in_flight_bytes)| in_flight_bytes),
            window_bytes: flight.window.map(|(_, most)| most),
            gap_ns_min,
        };
        let conversation = &mut self.conversation;
        let Room { held_bytes, commands, .. } = room;
        change(stream, held_bytes, &mut |piece| {
            let mut hearing = Hearing {
                conversation,
                commands: followed,
                before,
                assumed,
                number,
                sender: cutter.sender,
                commands_room: commands,
                counts: [0; 3],
                tell,
            };
            cutter.feed(piece, &mut hearing);
            let [whole, invalid, unknown] = hearing.counts;
            *pdus += whole;
            *invalid_pdus += invalid;
            *unknown_bytes += unknown;
            before.at = Some(piece.stamp.at);
        });
        // A first header identifies the ends.
        if let Some(sender) = self.halves[way].cutter.sender {
            self.assign(way, sender);
        }
    }

    fn gap_ns_min(&self) -> u64 {
        let rtt = || self.rtt().whole().unwrap_or_default();
        pdu::nanoseconds(self.options.gap.unwrap_or_else(|| Gap::duration_min(rtt())))
    }

    /// The initiator's direction; the first captured one if nothing identifies it.
    fn initiator_way(&self) -> usize {
        usize::from(self.halves[0].cutter.sender == Some(Sender::Target))
    }

    fn rtt(&self) -> RttParts {
        let way = self.initiator_way();
        RttParts {
            to_target: self.halves[way].flight.round_trips.min,
            to_initiator: self.halves[1 - way].flight.round_trips.min,
        }
    }

    /// The memory of its early segments.
    pub(crate) fn held_bytes(&self) -> usize {
        self.halves.iter().map(|half| half.stream.held_bytes()).sum()
    }

    /// Its points over time, out of the common room.
    pub(crate) fn points(&self) -> usize {
        self.conversation.timeline.room_taken()
    }

    /// Its report, with the commands that began on it.
    pub(crate) fn report(&self, number: usize, commands: &Commands) -> ConnectionReport {
        let way = self.initiator_way();
        let Conversation { digests, login, timeline, companion_of } = &self.conversation;
        let rtt = self.rtt();
        let reports: Vec<_> =
            commands.ended.iter().filter_map(|command| CommandReport::new(command, rtt)).collect();
        let kinds = [Kind::Write, Kind::Read, Kind::NoData];
        ConnectionReport {
            number,
            companion_of: *companion_of,
            carries: login.carries.clone().filter(|_| companion_of.is_some()),
            initiator: self.ends[way],
            target: self.ends[1 - way],
            initiator_name: login.initiator_name.clone(),
            target_name: login.target_name.clone(),
            header_digest: digests.header,
            data_digest: digests.data,
            rtt_ns_min: rtt.whole().and_then(|rtt| u64::try_from(rtt.as_nanos()).ok()),
            to_target: self.halves[way].report(),
            to_initiator: self.halves[1 - way].report(),
            summaries: kinds.iter().filter_map(|kind| CommandSummary::of(*kind, reports.iter())).collect(),
            commands_without_status: commands.unended(),
            commands_not_kept: commands.not_kept,
            commands: reports,
            timeline: timeline.clone(),
        }
    }
}

impl Half {
    fn report(&self) -> DirectionReport {
        DirectionReport {
            pdus: self.pdus,
            invalid_pdus: self.invalid_pdus,
            unknown_bytes: self.unknown_bytes,
            ..DirectionReport::new(self.stream.counters, &self.flight)
        }
    }
}

/// Processes one piece of a conversation.
struct Hearing<'a> {
    conversation: &'a mut Conversation,
    commands: &'a mut Commands,
    before: Before,
    assumed: Digests,
    number: usize,
    sender: Option<Sender>,
    commands_room: &'a mut usize,
    /// PDUs, invalid PDUs, unknown bytes.
    counts: [u64; 3],
    tell: &'a mut dyn FnMut(&PduRecord),
}

impl Listener for Hearing<'_> {
    fn digests(&mut self) -> &mut Digests {
        &mut self.conversation.digests
    }

    fn cut(&mut self, cut: Cut<'_>) {
        match cut {
            Cut::End { header, first, stamp, text } => {
                let record = PduRecord::new(self.number, header, first, stamp);
                self.counts[0] += 1;
                self.counts[1] += u64::from(record.invalid);
                (self.tell)(&record);
                self.login(header, text);
            }
            Cut::Lost { bytes } => self.counts[2] += bytes,
            Cut::Header { .. } | Cut::Data { .. } => {}
        }
        let sender = cut.header().and_then(Sender::of).or(self.sender);
        if let Some(sender) = sender {
            self.commands.cut(sender, &cut, &self.before, self.commands_room);
        }
    }
}

impl Hearing<'_> {
    fn login(&mut self, header: &Header, text: Option<&[u8]>) {
        let Conversation { digests, login, .. } = self.conversation;
        match header.opcode() {
            Ok(Opcode::LoginRequest) => {
                login.request(header);
                login.text(text);
            }
            Ok(Opcode::LoginResponse) => {
                login.response(header);
                login.text(text);
                if let Some(after) = login.digests_after(header, self.assumed) {
                    *digests = after;
                }
            }
            _ => {}
        }
    }
}
