//! A link with packets that remember who they are, and everything that arrives with its time.

use ropewalk_netem::{Counters, Link, LinkModel, Packet, Rate, Size, Span, Traffic};
use std::time::Duration;

/// A packet of consecutive segments of one flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cargo {
    pub flow: u64,
    /// Of the first segment; the others follow.
    pub number: u64,
    pub size: Size,
    pub understands_marks: bool,
    pub is_marked: bool,
    pub is_copy: bool,
    pub flipped_bit: Option<u64>,
}

impl Cargo {
    /// One segment of 1482 bytes: 1500 with framing.
    pub fn number(number: u64) -> Self {
        Self {
            flow: 0,
            number,
            size: Size::single(1482),
            understands_marks: false,
            is_marked: false,
            is_copy: false,
            flipped_bit: None,
        }
    }

    pub fn of_flow(self, flow: u64) -> Self {
        Self { flow, ..self }
    }

    pub fn of_size(self, size: Size) -> Self {
        Self { size, ..self }
    }

    pub fn segments(self, segments: u32) -> Self {
        self.of_size(Size::super_packet(segments, 1482, 1482))
    }

    /// The numbers of its segments.
    pub fn numbers(&self) -> std::ops::Range<u64> {
        self.number..self.number + u64::from(self.size.segments())
    }
}

impl Packet for Cargo {
    fn size(&self) -> Size {
        self.size
    }

    fn flow(&self) -> u64 {
        self.flow
    }

    fn split_first(&mut self, segments: u32) -> Self {
        assert!((1..self.size.segments()).contains(&segments), "not a part");
        let each = self.size.segment_bytes();
        let left = self.size.segments() - segments;
        let last = self.size.bytes() - u64::from(each) * u64::from(self.size.segments() - 1);
        let first = Self { size: Size::super_packet(segments, each, each), ..self.clone() };
        self.number += u64::from(segments);
        self.size = Size::super_packet(left, each, last.try_into().unwrap());
        first
    }

    fn duplicate(&self) -> Self {
        assert_eq!(self.size.segments(), 1);
        Self { is_copy: true, ..self.clone() }
    }

    fn corrupt(&mut self, bit: u64) {
        assert!(self.size.segments() == 1 && bit < self.size.bytes() * 8);
        self.flipped_bit = Some(bit);
    }

    fn mark_congestion(&mut self) -> bool {
        self.is_marked |= self.understands_marks;
        self.understands_marks
    }
}

/// 12 Mbit/s: one of [`Cargo::number`]'s packets each millisecond. No delay, and a queue of a hundred packets.
pub fn packet_each_millisecond() -> LinkModel {
    let queue = "150kB".parse().unwrap();
    LinkModel { queue, ..LinkModel::new(Rate::megabits_per_second(12), Duration::ZERO) }
}

pub fn span(text: &str) -> Span {
    text.parse().unwrap()
}

pub fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

pub struct World {
    pub link: Link<Cargo>,
    now: Duration,
    /// What has arrived, and when.
    pub arrived: Vec<(Duration, Cargo)>,
}

impl World {
    pub fn new(model: &LinkModel) -> Self {
        Self::seeded(model, 1)
    }

    pub fn seeded(model: &LinkModel, seed: u64) -> Self {
        let link = Link::new(model, model.delay.0 * 2, seed).unwrap();
        Self { link, now: Duration::ZERO, arrived: Vec::new() }
    }

    /// Receives all until `now`, and then sends.
    pub fn send_at(&mut self, now: Duration, packet: Cargo) {
        self.run_until(now);
        self.link.send(now, packet);
    }

    /// One packet per spacing, numbered from 0.
    pub fn send_steadily(&mut self, count: u64, spacing: Duration) {
        for number in 0..count {
            self.send_at(spacing * u32::try_from(number).unwrap(), Cargo::number(number));
        }
    }

    pub fn run_until(&mut self, now: Duration) {
        while let Some(next) = self.link.next_event().filter(|next| *next <= now) {
            self.look_at(next.max(self.now));
        }
        self.now = now;
    }

    /// Receives all that there is to receive, and looks at each event just in time.
    pub fn run(&mut self) {
        while let Some(next) = self.link.next_event() {
            self.look_at(next.max(self.now));
        }
    }

    fn look_at(&mut self, now: Duration) {
        self.now = now;
        while let Some(packet) = self.link.receive(now) {
            self.arrived.push((now, packet));
        }
    }

    pub fn counters(&self) -> Counters {
        self.link.counters()
    }

    /// The numbers of all segments in the order of arrival.
    pub fn numbers(&self) -> Vec<u64> {
        self.arrived.iter().flat_map(|(_, packet)| packet.numbers()).collect()
    }

    pub fn arrival_times(&self) -> Vec<Duration> {
        self.arrived.iter().map(|(at, _)| *at).collect()
    }

    /// Segments that have arrived of each flow below `flows`.
    pub fn segments_by_flow(&self, flows: u64) -> Vec<u64> {
        let of = |flow| self.arrived.iter().filter(move |(_, packet)| packet.flow == flow);
        (0..flows).map(|flow| of(flow).map(|(_, packet)| u64::from(packet.size.segments())).sum()).collect()
    }
}

/// So many packets of 1500 bytes with framing.
pub fn packets(count: u64) -> Traffic {
    Traffic { segments: count, bytes: count * 1500 }
}

/// Fails unless `count` is what `n` throws of this probability give, within six standard deviations.
pub fn assert_binomial(count: u64, n: u64, probability: f64) {
    let (mean, variance) = (n as f64 * probability, n as f64 * probability * (1.0 - probability));
    assert!((count as f64 - mean).abs() <= 6.0 * variance.sqrt(), "{count} of {n} at {probability}");
}
