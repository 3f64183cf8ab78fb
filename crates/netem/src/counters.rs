//! Counts of packets sent, received and lost.

use serde::{Deserialize, Serialize};
use std::ops::{Add, AddAssign, SubAssign};

/// An amount of packets as they are on the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traffic {
    /// Packets of at most one MTU.
    pub segments: u64,
    /// The length of these packets with framing.
    pub bytes: u64,
}

/// Lost packets, by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drops {
    /// Packets longer than the MTU.
    pub oversize: Traffic,
    /// Packets that a policer dropped, because the flow was above its rate.
    pub policer: Traffic,
    /// Packets that a shaper dropped, because the flow's own queue was full.
    pub shaper: Traffic,
    /// Packets that found the queue before the bottleneck full.
    pub queue: Traffic,
    /// Packets that `CoDel` dropped.
    pub codel: Traffic,
    /// Packets lost on the line.
    pub loss: Traffic,
    /// Packets lost in an outage.
    pub outage: Traffic,
    /// Packets lost while the schedule had the line down.
    pub down: Traffic,
}

/// The counters of cross traffic, which only takes up room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CrossTrafficCounters {
    /// All cross traffic.
    pub offered: Traffic,
    /// The part for which the queue had no room, or that `CoDel` dropped.
    pub dropped: Traffic,
    /// The part that passed the bottleneck.
    pub carried: Traffic,
}

/// The counters of a link, or of one of its parallel paths. At any time
/// `sent + duplicated = received + dropped.total() + in_flight`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Packets handed in. For a parallel path: those that reached its queue, or were dropped there.
    pub sent: Traffic,
    /// Packets taken at the far end.
    pub received: Traffic,
    /// Packets that the network lost, by cause.
    pub dropped: Drops,
    /// Packets on the way, or waiting at the far end.
    pub in_flight: Traffic,
    /// Copies that the network made.
    pub duplicated: Traffic,
    /// Packets with a flipped bit.
    pub corrupted: Traffic,
    /// Packets that arrived behind one sent after them (RFC 4737 §3).
    pub reordered: Traffic,
    /// Packets that `CoDel` marked in place of a drop.
    pub marked: Traffic,
    /// The longest that a queue has been, cross traffic included. Of a link: the longest of its parallel paths.
    pub queue_bytes_max: u64,
    /// Traffic that shared the queue.
    pub cross_traffic: CrossTrafficCounters,
}

impl Drops {
    /// The total of all causes.
    #[must_use]
    pub fn total(&self) -> Traffic {
        let Self { oversize, policer, shaper, queue, codel, loss, outage, down } = *self;
        oversize + policer + shaper + queue + codel + loss + outage + down
    }
}

impl Add for Traffic {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { segments: self.segments + other.segments, bytes: self.bytes + other.bytes }
    }
}

impl AddAssign for Traffic {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl SubAssign for Traffic {
    fn sub_assign(&mut self, other: Self) {
        self.segments -= other.segments;
        self.bytes -= other.bytes;
    }
}

impl AddAssign for Drops {
    fn add_assign(&mut self, other: Self) {
        self.oversize += other.oversize;
        self.policer += other.policer;
        self.shaper += other.shaper;
        self.queue += other.queue;
        self.codel += other.codel;
        self.loss += other.loss;
        self.outage += other.outage;
        self.down += other.down;
    }
}

impl Add for Counters {
    type Output = Self;

    /// The counters of two links together.
    fn add(mut self, other: Self) -> Self {
        self.sent += other.sent;
        self.add_path(&other);
        self
    }
}

impl Counters {
    /// Adds the counters of a parallel path, except for `sent`, which the shared stages have counted.
    pub(crate) fn add_path(&mut self, path: &Self) {
        self.received += path.received;
        self.dropped += path.dropped;
        self.in_flight += path.in_flight;
        self.duplicated += path.duplicated;
        self.corrupted += path.corrupted;
        self.reordered += path.reordered;
        self.marked += path.marked;
        self.queue_bytes_max = self.queue_bytes_max.max(path.queue_bytes_max);
        self.cross_traffic.offered += path.cross_traffic.offered;
        self.cross_traffic.dropped += path.cross_traffic.dropped;
        self.cross_traffic.carried += path.cross_traffic.carried;
    }
}
