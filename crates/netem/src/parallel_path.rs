//! One of the parallel paths of a link: a queue, the line that serves it, and the way to the far end.

use crate::codel::Controller;
use crate::counters::{Counters, Traffic};
use crate::cross_traffic::Source;
use crate::delay_line::DelayLine;
use crate::faults::Faults;
use crate::model::LinkModel;
use crate::packet::Packet;
use crate::queue::Queue;
use crate::random::Random;
use crate::schedule::Change;
use crate::time::{NEVER, nanoseconds};
use crate::virtual_clock::VirtualClock;
use std::time::Duration;

/// Moves packets from its queue to the far end. Every call first does all that was due before.
#[derive(Debug)]
pub(crate) struct ParallelPath<P> {
    framing: u32,
    queue: Queue<P>,
    codel: Option<Controller>,
    line: VirtualClock,
    /// When the head of the queue has been sent; [`NEVER`] if the queue is empty.
    sent_ns: u64,
    cross_traffic: Source,
    cross_packet: Traffic,
    faults: Faults,
    delay_line: DelayLine<P>,
    counters: Counters,
}

impl<P: Packet> ParallelPath<P> {
    pub fn new(model: &LinkModel, round_trip: Duration, seed: u64, path: usize) -> Self {
        let cross_packet = Traffic { segments: 1, bytes: model.segment_bytes_max() };
        let random = Random::new(seed, "cross traffic", path);
        Self {
            framing: model.framing,
            queue: Queue::new(model.queue_bytes(round_trip), model.framing),
            codel: model.codel.as_ref().map(Controller::new),
            line: VirtualClock::new(model.rate),
            sent_ns: NEVER,
            cross_traffic: Source::new(model.cross_traffic, cross_packet.bytes, random),
            cross_packet,
            faults: Faults::new(model, seed, path),
            delay_line: DelayLine::new(model, seed, path),
            counters: Counters::default(),
        }
    }

    /// Puts `packet` into the queue, as far as there is room.
    pub fn send(&mut self, now_ns: u64, packet: P) {
        self.advance(now_ns);
        self.counters.sent += packet.size().traffic(self.framing);
        self.counters.dropped.queue += self.queue.push(now_ns, packet);
        self.serve_if_idle(now_ns);
    }

    /// The next packet at the far end, if it has arrived.
    pub fn receive(&mut self, now_ns: u64) -> Option<P> {
        let arrival = self.delay_line.receive(now_ns)?;
        let traffic = arrival.packet.size().traffic(self.framing);
        self.counters.received += traffic;
        if arrival.is_reordered {
            self.counters.reordered += traffic;
        }
        Some(arrival.packet)
    }

    /// Does everything that is due by `now_ns`.
    pub fn advance(&mut self, now_ns: u64) {
        loop {
            let cross_ns = self.cross_traffic.next_ns();
            if self.sent_ns.min(cross_ns) > now_ns {
                return;
            }
            match self.sent_ns <= cross_ns {
                true => self.finish(self.sent_ns),
                false => self.cross(cross_ns),
            }
        }
    }

    /// The head of the queue has been sent: it is on its way, and the next one's turn has come.
    fn finish(&mut self, now_ns: u64) {
        self.sent_ns = NEVER;
        let head = self.queue.pop();
        match head.map(|head| (head.packet, head.traffic)) {
            Some((Some(packet), _)) => {
                let onward = |packet| self.delay_line.send(now_ns, packet);
                self.faults.pass(now_ns, packet, &mut self.counters, onward);
            }
            Some((None, traffic)) => self.counters.cross_traffic.carried += traffic,
            None => {}
        }
        self.serve_if_idle(now_ns);
    }

    /// Takes a packet of cross traffic into the queue.
    fn cross(&mut self, now_ns: u64) {
        self.cross_traffic.advance();
        let counters = &mut self.counters.cross_traffic;
        counters.offered += self.cross_packet;
        if !self.queue.push_cross_traffic(now_ns, self.cross_packet) {
            counters.dropped += self.cross_packet;
        }
        self.serve_if_idle(now_ns);
    }

    fn serve_if_idle(&mut self, now_ns: u64) {
        if self.sent_ns != NEVER {
            return;
        }
        self.control_delay(now_ns);
        if let Some(head) = self.queue.head() {
            self.sent_ns = self.line.serve(now_ns, head.traffic.bytes);
        }
    }

    /// Drops from the head of the queue, or marks it, as `CoDel` says.
    fn control_delay(&mut self, now_ns: u64) {
        let Some(codel) = &mut self.codel else { return };
        while let Some(head) = self.queue.head() {
            if !codel.judge(now_ns, now_ns.saturating_sub(head.since_ns), self.queue.is_head_last()) {
                return;
            }
            if codel.marks
                && let Some(traffic) = self.queue.mark_head()
            {
                self.counters.marked += traffic;
                return;
            }
            if let Some(dropped) = self.queue.pop_segment() {
                let is_own = dropped.packet.is_some();
                let counter = match is_own {
                    true => &mut self.counters.dropped.codel,
                    false => &mut self.counters.cross_traffic.dropped,
                };
                *counter += dropped.traffic;
            }
        }
    }

    /// Applies a change of the schedule.
    pub fn apply(&mut self, now_ns: u64, change: &Change) {
        self.advance(now_ns);
        if let Some(rate) = change.rate {
            self.line.set_rate(rate);
        }
        if let Some(delay) = change.delay {
            self.delay_line.set_delay(nanoseconds(delay.0));
        }
        if let Some(jitter) = change.jitter {
            self.delay_line.set_jitter(jitter);
        }
        if let Some(loss) = change.loss {
            self.faults.loss.set(loss);
        }
        if let Some(is_up) = change.up {
            self.faults.set_up(is_up);
        }
        if let Some(cross_traffic) = change.cross_traffic {
            self.cross_traffic.set(now_ns, cross_traffic);
        }
    }

    /// When the packet that waits at the far end arrived, or when the next one will; [`NEVER`] if none is under way
    /// there.
    pub fn next_arrival_ns(&self) -> u64 {
        self.delay_line.next_arrival_ns()
    }

    /// The earliest time at which a packet may arrive; [`NEVER`] if there is none.
    pub fn earliest_arrival_ns(&self) -> u64 {
        let queued = match self.queue.own().segments {
            0 => NEVER,
            _ => self.sent_ns.saturating_add(self.delay_line.delay_ns()),
        };
        queued.min(self.delay_line.next_arrival_ns())
    }

    /// The least time that a packet takes from the queue to the far end.
    pub fn delay_ns(&self) -> u64 {
        self.delay_line.delay_ns()
    }

    pub fn queue_bytes(&self) -> u64 {
        self.queue.bytes()
    }

    pub fn counters(&self) -> Counters {
        Counters {
            in_flight: self.queue.own() + self.delay_line.in_flight(self.framing),
            queue_bytes_max: self.queue.bytes_max(),
            ..self.counters
        }
    }
}
