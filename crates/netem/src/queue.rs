//! The queue in front of a bottleneck: bounded in bytes, in the order of arrival.

use crate::counters::Traffic;
use crate::packet::{Packet, take_first};
use std::collections::VecDeque;

/// Packets that wait for the line, including the one that is being sent, which leaves the buffer with its last bit.
#[derive(Debug)]
pub(crate) struct Queue<P> {
    waiting: VecDeque<Waiting<P>>,
    traffic: Traffic,
    /// [`Self::traffic`] without cross traffic.
    own: Traffic,
    bytes_max: u64,
    longest_packet_bytes: u64,
    limit_bytes: u64,
    framing: u32,
}

/// One packet in the queue.
#[derive(Debug)]
pub(crate) struct Waiting<P> {
    pub since_ns: u64,
    pub traffic: Traffic,
    /// `None` for cross traffic.
    pub packet: Option<P>,
}

impl<P: Packet> Queue<P> {
    pub fn new(limit_bytes: u64, framing: u32) -> Self {
        Self {
            waiting: VecDeque::new(),
            traffic: Traffic::default(),
            own: Traffic::default(),
            bytes_max: 0,
            longest_packet_bytes: 0,
            limit_bytes,
            framing,
        }
    }

    /// Takes as many of the first segments of `packet` as there is room for. Returns the refused traffic.
    pub fn push(&mut self, now_ns: u64, packet: P) -> Traffic {
        let fitting = packet.size().fitting(self.framing, self.limit_bytes - self.traffic.bytes);
        let mut rest = Some(packet);
        if let Some(packet) = take_first(&mut rest, fitting) {
            let traffic = packet.size().traffic(self.framing);
            self.own += traffic;
            self.append(Waiting { since_ns: now_ns, traffic, packet: Some(packet) });
        }
        rest.map_or(Traffic::default(), |refused| refused.size().traffic(self.framing))
    }

    /// Takes a packet of cross traffic; false if there is no room.
    pub fn push_cross_traffic(&mut self, now_ns: u64, traffic: Traffic) -> bool {
        let has_room = self.traffic.bytes + traffic.bytes <= self.limit_bytes;
        if has_room {
            self.append(Waiting { since_ns: now_ns, traffic, packet: None });
        }
        has_room
    }

    fn append(&mut self, waiting: Waiting<P>) {
        self.traffic += waiting.traffic;
        self.bytes_max = self.bytes_max.max(self.traffic.bytes);
        self.longest_packet_bytes = self.longest_packet_bytes.max(waiting.traffic.bytes);
        self.waiting.push_back(waiting);
    }

    pub fn head(&self) -> Option<&Waiting<P>> {
        self.waiting.front()
    }

    /// Marks the head instead of dropping it. Returns the marked traffic; `None` if its sender does not support that.
    pub fn mark_head(&mut self) -> Option<Traffic> {
        let head = self.waiting.front_mut()?;
        head.packet.as_mut()?.mark_congestion().then_some(head.traffic)
    }

    pub fn pop(&mut self) -> Option<Waiting<P>> {
        let head = self.waiting.pop_front()?;
        self.traffic -= head.traffic;
        if head.packet.is_some() {
            self.own -= head.traffic;
        }
        Some(head)
    }

    /// Takes the first segment off the head.
    pub fn pop_segment(&mut self) -> Option<Waiting<P>> {
        let head = self.waiting.front_mut()?;
        let Some(packet) = head.packet.as_mut().filter(|packet| packet.size().segments() > 1) else {
            return self.pop();
        };
        let segment = packet.split_first(1);
        let traffic = segment.size().traffic(self.framing);
        head.traffic -= traffic;
        self.traffic -= traffic;
        self.own -= traffic;
        Some(Waiting { since_ns: head.since_ns, traffic, packet: Some(segment) })
    }

    /// Whether less is behind the head than the longest packet that has been here.
    pub fn is_head_last(&self) -> bool {
        let head = self.head().map_or(0, |head| head.traffic.bytes);
        self.traffic.bytes - head <= self.longest_packet_bytes
    }

    /// The bytes of all waiting packets.
    pub fn bytes(&self) -> u64 {
        self.traffic.bytes
    }

    /// The most bytes that have waited at a time.
    pub fn bytes_max(&self) -> u64 {
        self.bytes_max
    }

    /// The waiting packets, without cross traffic.
    pub fn own(&self) -> Traffic {
        self.own
    }
}
