//! A network of connections that are byte streams, each with its own speed, delay and misfortunes.
//!
//! A connection is two [`Pipe`]s. Bytes come out in the order in which they went in, cut anywhere, after a delay that
//! differs from connection to connection, so what travels on several of them is reordered. What goes wrong is told
//! by [`crate::fault`]; this module knows how.

mod meddling;
mod pipe;
mod stream;

pub use meddling::{Instead, Meddler, Meddling, Rejected, Stranger};
pub use pipe::{Arrival, Profile};
pub use stream::Stream;

use crate::agenda::Agenda;
use crate::portal::{Outage, PortalId, Trouble};
use crate::random::Random;
use pdu::{Duration, Instant};
use pipe::Pipe;
use policy::PathMeasurement;
use std::io::{IoSlice, IoSliceMut};
use std::task::Waker;

/// One connection, for as long as the world lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(pub u32);

/// One end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The end that connected.
    Initiator,
    /// The end that was connected to.
    Target,
}

impl Side {
    /// The other end.
    #[must_use]
    pub const fn peer(self) -> Self {
        match self {
            Self::Initiator => Self::Target,
            Self::Target => Self::Initiator,
        }
    }
}

/// A part of a PDU that a digest covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Header and header digest.
    Header,
    /// Data segment and data digest.
    Data,
}

/// Something for one end to look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notice {
    /// A new connection, at the target.
    Accept,
    /// [`Network::receive`] may have something.
    Arrival,
    /// There is room to send again.
    Room,
}

/// A notice and whom it is for.
#[derive(Clone, Copy, Debug)]
pub struct Event {
    /// The connection that it concerns.
    pub connection: ConnectionId,
    /// Which end of it.
    pub side: Side,
    /// What happened there.
    pub notice: Notice,
}

#[derive(Debug)]
struct Connection {
    /// Where the target was called.
    portal: PortalId,
    /// What the initiator sends, what the target sends.
    pipes: [Pipe; 2],
    /// Whether either end still has it open.
    open: [bool; 2],
    /// When either end will next be told of an arrival: once is enough.
    told_at: [Option<Instant>; 2],
    /// What of the next PDUs from either end is to be damaged, and of how many.
    damage: [Option<(Part, u32)>; 2],
    /// The tasks that wait for news of either end.
    waiting: [Option<Waker>; 2],
    /// Which parts of its PDUs have a digest.
    covered: [bool; 2],
}

/// Every connection of a world, and the events that are due on them.
#[derive(Debug)]
pub struct Network {
    connections: Vec<Connection>,
    agenda: Agenda<Event>,
    random: Random,
    /// Bounds of what new connections are like.
    profile: Profile,
    refusing_until: Instant,
    /// Portals that are in trouble, or were.
    outages: Vec<Outage>,
    /// What paths do to PDUs besides carrying them.
    pub meddler: Meddler,
    /// Connections that their initiators have left just now, while the target had them open.
    left: Vec<ConnectionId>,
    /// Fragments that reached their receivers.
    pub fragments: u64,
}

impl Network {
    /// A network without connections.
    #[must_use]
    pub fn new(profile: Profile, random: Random) -> Self {
        Self {
            connections: Vec::new(),
            agenda: Agenda::default(),
            random,
            profile,
            refusing_until: Instant::ZERO,
            outages: Vec::new(),
            meddler: Meddler::default(),
            left: Vec::new(),
            fragments: 0,
        }
    }

    /// Connects to a portal of the target. A refusal is heard of as a reset.
    pub fn connect(&mut self, now: Instant, portal: PortalId) -> ConnectionId {
        #[expect(clippy::cast_possible_truncation, reason = "a run makes some thousands")]
        let id = ConnectionId(self.connections.len() as u32);
        let mut pipe = || Pipe::new(now, &self.profile, &mut self.random);
        let mut connection = Connection {
            portal,
            pipes: [pipe(), pipe()],
            open: [true; 2],
            told_at: [None; 2],
            damage: [None; 2],
            waiting: [None, None],
            covered: [false; 2],
        };
        let established_at = now + connection.pipes[0].latency();
        let trouble = self.trouble_of(now, portal);
        let is_refused = now < self.refusing_until || trouble == Some(Trouble::Refuses);
        let is_unreachable = trouble == Some(Trouble::Unreachable);
        if is_unreachable {
            connection.pipes.iter_mut().for_each(Pipe::vanish);
        } else if is_refused {
            connection.open[Side::Target as usize] = false;
            connection.pipes[Side::Target as usize].end(established_at, Arrival::Reset);
        } else {
            connection.pipes[0].not_before(established_at);
        }
        self.connections.push(connection);
        if is_refused {
            self.schedule(id, Side::Initiator, established_at);
        } else if !is_unreachable {
            let event = Event { connection: id, side: Side::Target, notice: Notice::Accept };
            self.agenda.push(established_at, event);
        }
        id
    }

    /// What is wrong with a portal now.
    fn trouble_of(&self, now: Instant, portal: PortalId) -> Option<Trouble> {
        let outage = self.outages.iter().find(|outage| outage.portal == portal && now < outage.until);
        outage.map(|outage| outage.trouble)
    }

    /// A portal gets into trouble; the others carry on.
    pub fn strike(&mut self, now: Instant, outage: Outage) {
        let struck: Vec<ConnectionId> =
            self.open_connections().filter(|id| self.portal_of(*id) == Some(outage.portal)).collect();
        for id in struck {
            match outage.trouble {
                Trouble::Refuses => self.reset(now, id),
                Trouble::Unreachable => self.silence(id),
                Trouble::Stalls => {
                    self.stall(id, Side::Initiator, outage.until);
                    self.stall(id, Side::Target, outage.until);
                }
            }
        }
        self.outages.retain(|other| other.portal != outage.portal && now < other.until);
        self.outages.push(outage);
    }

    /// The portal to which a connection leads.
    #[must_use]
    pub fn portal_of(&self, id: ConnectionId) -> Option<PortalId> {
        self.connections.get(id.0 as usize).map(|connection| connection.portal)
    }

    /// Whether this end has it open.
    #[must_use]
    pub fn is_open(&self, id: ConnectionId, side: Side) -> bool {
        self.connections.get(id.0 as usize).is_some_and(|connection| connection.open[side as usize])
    }

    /// Sends what there is room for and returns how much that was; if not all, [`Notice::Room`] follows.
    pub fn send(&mut self, now: Instant, id: ConnectionId, from: Side, bytes: &[IoSlice<'_>]) -> usize {
        let Some(connection) = self.connections.get_mut(id.0 as usize) else { return 0 };
        let pipe = &mut connection.pipes[from as usize];
        let was_empty = pipe.is_empty();
        let sent = pipe.send(now, bytes, &mut self.random);
        if was_empty && let Some(at) = pipe.next_at() {
            self.schedule(id, from.peer(), at);
        }
        sent
    }

    /// How many bytes this end has sent, and how many of them have not come out at the other.
    #[must_use]
    pub fn sent_bytes(&self, id: ConnectionId, from: Side) -> (u64, u64) {
        self.connections.get(id.0 as usize).map_or((0, 0), |connection| {
            let pipe = &connection.pipes[from as usize];
            (pipe.taken_bytes(), pipe.taken_bytes() - pipe.delivered_bytes())
        })
    }

    /// What this end measures of its path to the other.
    #[must_use]
    pub fn measure(&self, now: Instant, id: ConnectionId, from: Side) -> Option<PathMeasurement> {
        let [there, back] = [from, from.peer()].map(|side| side as usize);
        let pipes = &self.connections.get(id.0 as usize)?.pipes;
        let rtt = pipes[there].latency() + pipes[back].latency();
        let in_silence = pipes[back].silence(now);
        Some(PathMeasurement { rtt, rtt_min: rtt, in_silence, ..pipes[there].measure(now) })
    }

    /// Wakes `waker` at the next notice for this end.
    pub fn wait(&mut self, id: ConnectionId, side: Side, waker: &Waker) {
        if let Some(connection) = self.connections.get_mut(id.0 as usize) {
            connection.waiting[side as usize] = Some(waker.clone());
        }
    }

    /// The task that waits for news of this end.
    pub fn take_waiting(&mut self, id: ConnectionId, side: Side) -> Option<Waker> {
        self.connections.get_mut(id.0 as usize)?.waiting[side as usize].take()
    }

    /// What has arrived at this end.
    pub fn receive(&mut self, now: Instant, id: ConnectionId, side: Side) -> Option<Arrival> {
        let connection = self.connections.get_mut(id.0 as usize)?;
        let pipe = &mut connection.pipes[side.peer() as usize];
        let arrival = pipe.receive(now);
        let next = pipe.next_at();
        let gives_room = pipe.take_room_wanted();
        if let Some(at) = next {
            self.schedule(id, side, at.max(now));
        }
        if gives_room {
            let event = Event { connection: id, side: side.peer(), notice: Notice::Room };
            self.agenda.push(now, event);
        }
        let connection = &mut self.connections[id.0 as usize];
        self.fragments += u64::from(arrival.is_some());
        if matches!(arrival, Some(Arrival::Reset)) {
            connection.open[side as usize] = false;
        }
        let is_heard = connection.open[side as usize] || matches!(arrival, Some(Arrival::Reset));
        if !is_heard {
            connection.pipes[side.peer() as usize].discard_arrived();
        }
        arrival.filter(|_| is_heard)
    }

    /// Moves bytes that have arrived at this end to their reader.
    pub fn read(&mut self, id: ConnectionId, side: Side, to: &mut [IoSliceMut<'_>]) -> usize {
        let connection = self.connections.get_mut(id.0 as usize);
        connection.map_or(0, |connection| connection.pipes[side.peer() as usize].read(to))
    }

    /// This end is done with it: the peer gets what was sent, then the end.
    pub fn close(&mut self, now: Instant, id: ConnectionId, side: Side) {
        let Some(connection) = self.connections.get_mut(id.0 as usize) else { return };
        if !std::mem::replace(&mut connection.open[side as usize], false) {
            return;
        }
        if side == Side::Initiator && connection.open[Side::Target as usize] {
            self.left.push(id);
        }
        let pipe = &mut connection.pipes[side as usize];
        let was_empty = pipe.is_empty();
        let at = now + pipe.latency();
        pipe.end(at, Arrival::Closed);
        if was_empty && let Some(at) = pipe.next_at() {
            self.schedule(id, side.peer(), at);
        }
    }

    /// Breaks it: of what is under way, some arrives, cut at any byte; then both ends hear of it.
    pub fn reset(&mut self, now: Instant, id: ConnectionId) {
        for side in [Side::Initiator, Side::Target] {
            self.break_pipe(now, id, side);
        }
    }

    /// One end hears of a reset, the other of nothing any more.
    pub fn half_open(&mut self, now: Instant, id: ConnectionId, told: Side) {
        self.break_pipe(now, id, told.peer());
        if let Some(connection) = self.connections.get_mut(id.0 as usize) {
            connection.pipes[told as usize].vanish();
        }
    }

    /// Nobody hears anything any more.
    pub fn silence(&mut self, id: ConnectionId) {
        if let Some(connection) = self.connections.get_mut(id.0 as usize) {
            connection.pipes.iter_mut().for_each(Pipe::vanish);
        }
    }

    fn break_pipe(&mut self, now: Instant, id: ConnectionId, from: Side) {
        let Some(connection) = self.connections.get_mut(id.0 as usize) else { return };
        let pipe = &mut connection.pipes[from as usize];
        pipe.cut(now, &mut self.random);
        if let Some(at) = pipe.next_at() {
            self.schedule(id, from.peer(), at);
        }
    }

    /// Nothing moves on it for a while, in one direction.
    pub fn stall(&mut self, id: ConnectionId, from: Side, until: Instant) {
        if let Some(connection) = self.connections.get_mut(id.0 as usize) {
            connection.pipes[from as usize].stall(until);
        }
    }

    /// This part of the next PDUs that have it arrives damaged.
    pub fn damage_next(&mut self, id: ConnectionId, from: Side, part: Part, pdus: u32) {
        if let Some(connection) = self.connections.get_mut(id.0 as usize) {
            connection.damage[from as usize] = Some((part, pdus)).filter(|_| pdus > 0);
        }
    }

    /// These parts of its PDUs have a digest, so that damage is noticed.
    pub fn cover(&mut self, id: ConnectionId, parts: impl Iterator<Item = Part>) {
        if let Some(connection) = self.connections.get_mut(id.0 as usize) {
            parts.for_each(|part| connection.covered[part as usize] = true);
        }
    }

    /// Whether such parts of its PDUs have a digest.
    #[must_use]
    pub fn covers(&self, id: ConnectionId, part: Part) -> bool {
        self.connections.get(id.0 as usize).is_some_and(|connection| connection.covered[part as usize])
    }

    /// What is to be damaged next.
    pub(crate) fn damage(&self, id: ConnectionId, from: Side) -> Option<(Part, u32)> {
        self.connections.get(id.0 as usize)?.damage[from as usize]
    }

    /// One of the `bytes` that this end sends from its `first` on arrives with a bit changed.
    pub(crate) fn corrupt(&mut self, id: ConnectionId, from: Side, first: u64, bytes: u64) {
        if let Some(connection) = self.connections.get_mut(id.0 as usize) {
            connection.pipes[from as usize].corrupt(first + self.random.below(bytes));
        }
    }

    /// In place of so many bytes, from the `at`th sent by this end on, others arrive.
    pub(crate) fn splice(&mut self, id: ConnectionId, from: Side, at: u64, bytes: u64, with: Vec<u8>) {
        if let Some(connection) = self.connections.get_mut(id.0 as usize) {
            connection.pipes[from as usize].splice(at, bytes, with);
        }
    }

    /// Connections that their initiators have left since the last call, while the target had them open.
    pub fn take_left(&mut self) -> Vec<ConnectionId> {
        std::mem::take(&mut self.left)
    }

    /// New connections are refused for a while.
    pub fn refuse_until(&mut self, until: Instant) {
        self.refusing_until = self.refusing_until.max(until);
    }

    /// Connections are taken again, and carry everything.
    pub fn heal(&mut self) {
        self.refusing_until = Instant::ZERO;
        self.outages.clear();
        self.meddler.stop();
    }

    /// Connections that neither end has given up.
    pub fn open_connections(&self) -> impl Iterator<Item = ConnectionId> {
        let open = self.connections.iter().enumerate().filter(|(_, connection)| connection.open == [true; 2]);
        #[expect(clippy::cast_possible_truncation, reason = "as in `connect`")]
        open.map(|(index, _)| ConnectionId(index as u32))
    }

    /// When something is due.
    #[must_use]
    pub fn next_at(&self) -> Option<Instant> {
        self.agenda.next_at()
    }

    /// What is due.
    pub fn pop_due(&mut self, now: Instant) -> Option<Event> {
        let event = self.agenda.pop_due(now)?;
        if event.notice == Notice::Arrival
            && let Some(connection) = self.connections.get_mut(event.connection.0 as usize)
        {
            connection.told_at[event.side as usize].take_if(|told| *told <= now);
        }
        Some(event)
    }

    fn schedule(&mut self, connection: ConnectionId, to: Side, at: Instant) {
        let Some(known) = self.connections.get_mut(connection.0 as usize) else { return };
        let told_at = &mut known.told_at[to as usize];
        if told_at.is_none_or(|told| at < told) {
            *told_at = Some(at);
            self.agenda.push(at, Event { connection, side: to, notice: Notice::Arrival });
        }
    }

    /// One way from end to end at its slowest, for those who wait.
    #[must_use]
    pub fn latency_max(&self) -> Duration {
        self.profile.latency_max + self.profile.jitter_max
    }
}
