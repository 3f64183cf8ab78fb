//! The way to the far end, which delays every packet.

use crate::counters::Traffic;
use crate::jitter::Jitter;
use crate::model::{LinkModel, Reordering};
use crate::packet::Packet;
use crate::random::Random;
use crate::time::{NEVER, nanoseconds};
use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, VecDeque};

/// Packets under way, in the order of their arrival. Jitter keeps the order: a packet that would overtake another
/// arrives together with it. Only packets that [`Reordering`] delays are overtaken.
#[derive(Debug)]
pub(crate) struct DelayLine<P> {
    delay_ns: u64,
    jitter: Jitter,
    jitter_random: Random,
    reordering: Option<Reordering>,
    reordering_random: Random,
    row: VecDeque<Travelling<P>>,
    /// When the last packet in order arrives, or arrived.
    row_ends_ns: u64,
    /// Packets that [`Reordering`] delays.
    late: BinaryHeap<Reverse<Travelling<P>>>,
    next_number: u64,
    /// The number after the highest that has arrived.
    next_expected: u64,
}

#[derive(Debug)]
struct Travelling<P> {
    arrives_ns: u64,
    number: u64,
    packet: P,
}

/// A packet that has arrived.
pub(crate) struct Arrival<P> {
    pub packet: P,
    /// Whether a packet that was sent later arrived before this one.
    pub is_reordered: bool,
}

impl<P: Packet> DelayLine<P> {
    pub fn new(model: &LinkModel, seed: u64, path: usize) -> Self {
        Self {
            delay_ns: nanoseconds(model.delay.0),
            jitter: model.jitter,
            jitter_random: Random::new(seed, "jitter", path),
            reordering: model.reordering,
            reordering_random: Random::new(seed, "reordering", path),
            row: VecDeque::new(),
            row_ends_ns: 0,
            late: BinaryHeap::new(),
            next_number: 0,
            next_expected: 0,
        }
    }

    pub fn set_delay(&mut self, delay_ns: u64) {
        self.delay_ns = delay_ns;
    }

    pub fn set_jitter(&mut self, jitter: Jitter) {
        self.jitter = jitter;
    }

    /// The least delay of a packet.
    pub fn delay_ns(&self) -> u64 {
        self.delay_ns
    }

    /// Sets `packet` on its way.
    pub fn send(&mut self, now_ns: u64, packet: P) {
        let jitter_ns = self.jitter.draw(&mut self.jitter_random);
        let arrives_ns = now_ns.saturating_add(self.delay_ns).saturating_add(jitter_ns).min(NEVER - 1);
        let number = self.next_number;
        self.next_number += 1;
        match self.lateness_ns() {
            Some(late_ns) => {
                let arrives_ns = arrives_ns.saturating_add(late_ns).min(NEVER - 1);
                self.late.push(Reverse(Travelling { arrives_ns, number, packet }));
            }
            None => {
                self.row_ends_ns = self.row_ends_ns.max(arrives_ns);
                self.row.push_back(Travelling { arrives_ns: self.row_ends_ns, number, packet });
            }
        }
    }

    fn lateness_ns(&mut self) -> Option<u64> {
        let reordering = self.reordering?;
        let is_late = self.reordering_random.happens(reordering.probability);
        is_late.then(|| nanoseconds(reordering.late.0))
    }

    /// When the next packet arrives; [`NEVER`] if none is under way.
    pub fn next_arrival_ns(&self) -> u64 {
        let row = self.row.front().map_or(NEVER, |first| first.arrives_ns);
        self.late.peek().map_or(row, |Reverse(late)| row.min(late.arrives_ns))
    }

    /// The next packet, if it has arrived.
    pub fn receive(&mut self, now_ns: u64) -> Option<Arrival<P>> {
        let arrives_ns = self.next_arrival_ns();
        if arrives_ns > now_ns {
            return None;
        }
        let next = match self.row.front() {
            Some(first) if first.arrives_ns == arrives_ns => self.row.pop_front(),
            _ => self.late.pop().map(|Reverse(late)| late),
        };
        next.map(|Travelling { number, packet, .. }| {
            let is_reordered = number < self.next_expected;
            self.next_expected = self.next_expected.max(number + 1);
            Arrival { packet, is_reordered }
        })
    }

    /// All packets under way.
    pub fn in_flight(&self, framing: u32) -> Traffic {
        let row = self.row.iter().map(|travelling| &travelling.packet);
        let late = self.late.iter().map(|Reverse(travelling)| &travelling.packet);
        row.chain(late).fold(Traffic::default(), |sum, packet| sum + packet.size().traffic(framing))
    }
}

impl<P> Ord for Travelling<P> {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.arrives_ns, self.number).cmp(&(other.arrives_ns, other.number))
    }
}

impl<P> PartialOrd for Travelling<P> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<P> PartialEq for Travelling<P> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<P> Eq for Travelling<P> {}
