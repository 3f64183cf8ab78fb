//! One direction of one connection.

use crate::random::Random;
use pdu::{Duration, Instant};
use policy::{PathCounters, PathMeasurement};
use std::collections::VecDeque;
use std::io::{IoSlice, IoSliceMut, Read};

/// Bounds of what the connections of a network are like. Each draws its own constants.
#[derive(Clone, Debug)]
pub struct Profile {
    /// Shortest one-way delay.
    pub latency_min: Duration,
    /// Longest one-way delay.
    pub latency_max: Duration,
    /// Most by which a fragment may be later than the one before it was.
    pub jitter_max: Duration,
    /// Least bytes per millisecond.
    pub bytes_per_ms_min: u64,
    /// Most bytes per millisecond.
    pub bytes_per_ms_max: u64,
    /// Least bytes that fit a connection's way before its sender must wait.
    pub capacity_bytes_min: u64,
    /// Most bytes that do.
    pub capacity_bytes_max: u64,
    /// How many of a hundred fragments are cut at a random byte.
    pub cut_percent: u64,
}

/// What comes out of a pipe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// So many bytes, which can be read now.
    Bytes(usize),
    /// The peer has closed.
    Closed,
    /// The connection broke.
    Reset,
}

/// A segment, as senders count their windows.
const SEGMENT_BYTES: u64 = 1448;

/// The longest fragment: a large segment as network cards join them.
const FRAGMENT_BYTES_MAX: usize = 64 << 10;

#[derive(Debug)]
struct Fragment {
    at: Instant,
    bytes: usize,
    /// How many bytes of the sender it stands for.
    own_bytes: usize,
}

/// Bytes of the sender that others take the place of.
#[derive(Debug)]
struct Splice {
    /// The first of them.
    at: u64,
    bytes: u64,
    with: Vec<u8>,
}

/// Bytes on their way.
#[derive(Debug)]
pub(super) struct Pipe {
    latency: Duration,
    jitter_max: Duration,
    bytes_per_ms: u64,
    capacity_bytes: usize,
    cut_percent: u64,
    /// What has arrived and was not read, then what the fragments consist of.
    bytes: VecDeque<u8>,
    arrived_bytes: usize,
    fragments: VecDeque<Fragment>,
    in_flight_bytes: usize,
    /// Bytes taken in so far, those that took the place of others included.
    sent_bytes: u64,
    /// Bytes accepted from the sender so far, those that vanish included.
    taken_bytes: u64,
    /// Bytes that came out so far.
    delivered_bytes: u64,
    /// When the last byte taken in has left.
    departed_at: Instant,
    /// When bytes were last taken in.
    taken_at: Instant,
    /// When bytes last came out.
    delivered_at: Instant,
    last_arrival_at: Instant,
    stalled_until: Instant,
    corrupt_at: VecDeque<u64>,
    splices: VecDeque<Splice>,
    /// By how much later in what is taken in than in what is sent the next byte is.
    shift_bytes: i64,
    end: Option<(Instant, Arrival)>,
    /// What goes in vanishes.
    is_void: bool,
    room_wanted: bool,
}

impl Pipe {
    pub(super) fn new(now: Instant, profile: &Profile, random: &mut Random) -> Self {
        let latency =
            random.between(pdu::nanoseconds(profile.latency_min), pdu::nanoseconds(profile.latency_max));
        let capacity = random.between(profile.capacity_bytes_min, profile.capacity_bytes_max);
        Self {
            latency: Duration::from_nanos(latency),
            jitter_max: profile.jitter_max,
            bytes_per_ms: random.between(profile.bytes_per_ms_min, profile.bytes_per_ms_max),
            capacity_bytes: usize::try_from(capacity).unwrap_or(usize::MAX),
            cut_percent: profile.cut_percent,
            bytes: VecDeque::new(),
            arrived_bytes: 0,
            fragments: VecDeque::new(),
            in_flight_bytes: 0,
            sent_bytes: 0,
            taken_bytes: 0,
            delivered_bytes: 0,
            departed_at: Instant::ZERO,
            taken_at: now,
            delivered_at: now,
            last_arrival_at: Instant::ZERO,
            stalled_until: Instant::ZERO,
            corrupt_at: VecDeque::new(),
            splices: VecDeque::new(),
            shift_bytes: 0,
            end: None,
            is_void: false,
            room_wanted: false,
        }
    }

    pub(super) fn latency(&self) -> Duration {
        self.latency
    }

    /// What its sender measures, but for the way back: a window of all that fits the pipe, and a retransmission timeout
    /// while it is stalled.
    pub(super) fn measure(&self, now: Instant) -> PathMeasurement {
        let whole_segments = |bytes: u64| bytes.div_ceil(SEGMENT_BYTES) * SEGMENT_BYTES;
        let is_stalled = now < self.stalled_until;
        PathMeasurement {
            rtt: self.latency,
            rtt_min: self.latency,
            delivery_bytes_per_second: self.bytes_per_ms * 1000,
            congestion_window_bytes: whole_segments(self.capacity_bytes as u64),
            in_flight_bytes: whole_segments(self.taken_bytes - self.delivered_bytes),
            unsent_bytes: 0,
            waiting_bytes: 0,
            is_recovering: is_stalled,
            is_timed_out: is_stalled,
            is_in_slow_start: false,
            out_silence: now.saturating_duration_since(self.taken_at.max(self.delivered_at)),
            in_silence: Duration::ZERO,
            receive_rtt: self.latency,
            counters: PathCounters { sent_bytes: self.taken_bytes, ..PathCounters::default() },
        }
    }

    pub(super) fn not_before(&mut self, at: Instant) {
        self.last_arrival_at = at;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.fragments.is_empty() && self.end.is_none()
    }

    /// When something comes out.
    pub(super) fn next_at(&self) -> Option<Instant> {
        let next = self.fragments.front().map(|fragment| fragment.at);
        let next = next.or_else(|| self.end.as_ref().map(|(at, _)| *at))?;
        Some(next.max(self.stalled_until))
    }

    pub(super) fn send(&mut self, now: Instant, from: &[IoSlice<'_>], random: &mut Random) -> usize {
        let bytes = from.iter().map(|slice| slice.len()).sum();
        if self.end.is_some() {
            return bytes;
        }
        let room = self.capacity_bytes.saturating_sub(self.in_flight_bytes);
        // A little room is no room, or ever smaller pieces would be sent (RFC 1122 §4.2.3.4).
        let is_silly = room < bytes && room < self.worthwhile_bytes();
        let taken = if is_silly { 0 } else { bytes.min(room) };
        self.room_wanted |= taken < bytes;
        self.in_flight_bytes += taken;
        if !self.is_void {
            let (mut first, fragments) = (self.bytes.len(), self.fragments.len());
            self.take_in(from, taken);
            while first < self.bytes.len() {
                let bytes = (self.bytes.len() - first).min(FRAGMENT_BYTES_MAX);
                self.push(now, first, bytes, random);
                first += bytes;
            }
            if taken > 0 && self.fragments.len() == fragments {
                self.push_whole(now, first, 0, random);
            }
            self.own(fragments, taken);
        }
        if taken > 0 {
            self.taken_at = now;
        }
        self.taken_bytes += taken as u64;
        taken
    }

    fn take_in(&mut self, from: &[IoSlice<'_>], bytes: usize) {
        let (mut offset, mut left) = (self.taken_bytes, bytes);
        for slice in from {
            if left == 0 {
                break;
            }
            let mut part = &slice[..slice.len().min(left)];
            left -= part.len();
            while !part.is_empty() {
                let taken = self.take_some(offset, part);
                offset += taken as u64;
                part = &part[taken..];
            }
        }
    }

    /// Takes in some bytes, which the sender has at this offset, or what takes their place; tells how many.
    fn take_some(&mut self, offset: u64, part: &[u8]) -> usize {
        let length = |bytes: u64| usize::try_from(bytes).map_or(part.len(), |bytes| bytes.min(part.len()));
        let Some(splice) = self.splices.front_mut() else {
            self.bytes.extend(part);
            return part.len();
        };
        if offset < splice.at {
            let taken = length(splice.at - offset);
            self.bytes.extend(&part[..taken]);
            return taken;
        }
        self.bytes.extend(splice.with.drain(..));
        let end = splice.at + splice.bytes;
        let taken = length(end - offset);
        if offset + taken as u64 == end {
            self.splices.pop_front();
        }
        taken
    }

    /// The fragments from this one on stand for so many bytes of the sender.
    fn own(&mut self, from: usize, mut own_bytes: usize) {
        for fragment in self.fragments.range_mut(from..) {
            fragment.own_bytes = fragment.bytes.min(own_bytes);
            own_bytes -= fragment.own_bytes;
        }
        if let Some(last) = self.fragments.back_mut() {
            last.own_bytes += own_bytes;
        }
    }

    /// So many bytes, from place `first` of [`Self::bytes`] on, are a fragment, or two.
    fn push(&mut self, now: Instant, first: usize, bytes: usize, random: &mut Random) {
        let mut head = 0;
        if bytes > 1 && random.percent(self.cut_percent) {
            head = 1 + random.index(bytes - 1);
            self.push_whole(now, first, head, random);
        }
        self.push_whole(now, first + head, bytes - head, random);
    }

    fn push_whole(&mut self, now: Instant, first: usize, bytes: usize, random: &mut Random) {
        let offset = self.sent_bytes;
        self.sent_bytes += bytes as u64;
        while let Some(at) = self.corrupt_at.front().and_then(|at| at.checked_sub(offset))
            && let Some(at) = usize::try_from(at).ok().filter(|at| *at < bytes)
        {
            self.bytes[first + at] ^= 1 << random.below(8);
            self.corrupt_at.pop_front();
        }
        let bytes_ns = (bytes as u64).saturating_mul(1_000_000) / self.bytes_per_ms.max(1);
        self.departed_at = self.departed_at.max(now) + Duration::from_nanos(bytes_ns);
        let jitter_ns = pdu::nanoseconds(self.jitter_max);
        let jitter = Duration::from_nanos(random.below(jitter_ns + 1));
        let at = (self.departed_at + self.latency + jitter).max(self.last_arrival_at);
        self.last_arrival_at = at;
        self.fragments.push_back(Fragment { at, bytes, own_bytes: bytes });
    }

    pub(super) fn receive(&mut self, now: Instant) -> Option<Arrival> {
        if now < self.stalled_until {
            return None;
        }
        match self.fragments.front() {
            Some(fragment) if fragment.at <= now => {
                let Fragment { bytes, own_bytes, .. } = self.fragments.pop_front()?;
                self.in_flight_bytes = self.in_flight_bytes.saturating_sub(own_bytes);
                self.delivered_bytes += own_bytes as u64;
                self.delivered_at = now;
                self.arrived_bytes += bytes;
                Some(Arrival::Bytes(bytes))
            }
            Some(_) => None,
            None => {
                let arrival = self.end.take_if(|(at, _)| *at <= now).map(|(_, arrival)| arrival)?;
                self.vanish();
                Some(arrival)
            }
        }
    }

    /// Moves bytes that have arrived to their reader, as many as there is room for.
    pub(super) fn read(&mut self, to: &mut [IoSliceMut<'_>]) -> usize {
        let before = self.arrived_bytes;
        for slice in to {
            let mut rest = &mut slice[..];
            while !rest.is_empty() && self.arrived_bytes > 0 {
                let wanted = rest.len().min(self.arrived_bytes);
                // It reads from one of the two halves of the ring.
                let Ok(read @ 1..) = self.bytes.read(&mut rest[..wanted]) else { break };
                self.arrived_bytes -= read;
                rest = &mut rest[read..];
            }
        }
        before - self.arrived_bytes
    }

    /// Nobody will read what has arrived.
    pub(super) fn discard_arrived(&mut self) {
        self.bytes.drain(..self.arrived_bytes);
        self.arrived_bytes = 0;
    }

    /// The time since bytes last came out.
    pub(super) fn silence(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.delivered_at)
    }

    /// Bytes accepted from the sender so far.
    pub(super) fn taken_bytes(&self) -> u64 {
        self.taken_bytes
    }

    /// Bytes that came out so far: what its sender sees acknowledged.
    pub(super) fn delivered_bytes(&self) -> u64 {
        self.delivered_bytes
    }

    /// Room that is worth being told of.
    fn worthwhile_bytes(&self) -> usize {
        self.capacity_bytes / 4
    }

    /// Whether its sender waits for room and there is some.
    pub(super) fn take_room_wanted(&mut self) -> bool {
        let has_room = self.in_flight_bytes + self.worthwhile_bytes() <= self.capacity_bytes;
        has_room && std::mem::take(&mut self.room_wanted)
    }

    pub(super) fn end(&mut self, at: Instant, arrival: Arrival) {
        if !self.is_void && self.end.is_none() {
            self.end = Some((at.max(self.last_arrival_at), arrival));
        }
    }

    /// What is under way is cut at a random byte; a reset follows.
    pub(super) fn cut(&mut self, now: Instant, random: &mut Random) {
        if self.is_void {
            return;
        }
        let under_way: usize = self.fragments.iter().map(|fragment| fragment.bytes).sum();
        let mut keep = random.index(under_way + 1);
        self.bytes.truncate(self.arrived_bytes + keep);
        self.fragments.retain_mut(|fragment| {
            fragment.bytes = fragment.bytes.min(keep);
            keep -= fragment.bytes;
            fragment.bytes > 0
        });
        let at = self.fragments.back().map_or(now + self.latency, |fragment| fragment.at);
        self.end = Some((at, Arrival::Reset));
    }

    pub(super) fn vanish(&mut self) {
        self.is_void = true;
        self.fragments.clear();
        self.bytes.truncate(self.arrived_bytes);
        self.bytes.shrink_to_fit();
        self.end = None;
    }

    pub(super) fn stall(&mut self, until: Instant) {
        self.stalled_until = self.stalled_until.max(until);
    }

    /// The byte that the sender has at `offset`, which is not taken in yet, arrives damaged.
    pub(super) fn corrupt(&mut self, offset: u64) {
        self.corrupt_at.push_back(offset.saturating_add_signed(self.shift_bytes));
    }

    /// In place of so many bytes, which the sender has at `at` and are not taken in yet, others arrive.
    pub(super) fn splice(&mut self, at: u64, bytes: u64, with: Vec<u8>) {
        let length = |bytes: u64| i64::try_from(bytes).unwrap_or(i64::MAX);
        self.shift_bytes += length(with.len() as u64) - length(bytes);
        self.splices.push_back(Splice { at, bytes, with });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pipe() -> (Pipe, Random) {
        let mut random = Random::new(1, "pipe");
        let profile = Profile {
            latency_min: Duration::ZERO,
            latency_max: Duration::ZERO,
            jitter_max: Duration::ZERO,
            bytes_per_ms_min: 1000,
            bytes_per_ms_max: 1000,
            capacity_bytes_min: 1 << 10,
            capacity_bytes_max: 1 << 10,
            cut_percent: 50,
        };
        (Pipe::new(Instant::ZERO, &profile, &mut random), random)
    }

    fn arrived(pipe: &mut Pipe) -> Vec<u8> {
        while pipe.receive(Instant(u64::MAX)).is_some() {}
        let mut bytes = vec![0; 64];
        let read = pipe.read(&mut [IoSliceMut::new(&mut bytes)]);
        bytes.truncate(read);
        bytes
    }

    #[test]
    fn others_arrive_in_place_of_some_bytes_however_they_are_sent() {
        for piece in 1..10 {
            let (mut pipe, mut random) = pipe();
            pipe.splice(2, 3, b"--".to_vec());
            pipe.splice(5, 0, b"+".to_vec());
            pipe.splice(7, 2, Vec::new());
            for part in b"0123456789".chunks(piece) {
                assert_eq!(pipe.send(Instant::ZERO, &[IoSlice::new(part)], &mut random), part.len());
            }
            assert_eq!(arrived(&mut pipe), b"01--+569", "in pieces of {piece}");
            assert_eq!((pipe.taken_bytes(), pipe.delivered_bytes()), (10, 10));
        }
    }

    #[test]
    fn a_byte_behind_others_places_is_damaged_where_it_was_sent() {
        let (mut pipe, mut random) = pipe();
        pipe.splice(0, 4, b"0".to_vec());
        pipe.corrupt(5);
        pipe.send(Instant::ZERO, &[IoSlice::new(b"abcdefg")], &mut random);
        let arrived = arrived(&mut pipe);
        assert_ne!(arrived[2], b'f');
        assert_eq!((arrived[0], arrived[1], arrived[3]), (b'0', b'e', b'g'));
    }
}
