//! One way through the relay: from a socket into the model of the path, and out of it into the other socket.

use super::buffers::Buffers;
use super::clock::{Clock, since};
use super::links::Links;
use super::packet_socket::{Batch, FRAMES_PER_CALL, PacketSocket, Received};
use super::report::{Durations, WayReport};
use super::tap::{Point, Tap, Way};
use crate::frame::Frame;
use std::collections::VecDeque;
use std::io;
use std::time::Duration;

/// The most calls in one turn, so that a busy socket does not keep the relay from the other one, or from due frames.
const CALLS_PER_TURN: usize = 2;

pub(crate) struct Direction {
    way: Way,
    links: Links,
    /// The model knows all events until then.
    model_time: Duration,
    /// All earlier arrivals at the socket have been read.
    read_until: Duration,
    /// Frames at the far end of the path, with their arrival times, waiting to be written.
    arrived: VecDeque<(Duration, Frame)>,
    frames_in: u64,
    frames_out: u64,
    unreadable: u64,
    beyond_memory: u64,
    writes_failed: u64,
    lateness: Durations,
    sightings_lost: u64,
}

/// The state that both directions share.
pub(crate) struct Tools {
    pub clock: Clock,
    pub buffers: Buffers,
    pub tap: Option<Tap>,
}

impl Tools {
    pub fn new(tap: Option<Tap>) -> Self {
        Self { clock: Clock::new(), buffers: Buffers::default(), tap }
    }
}

/// The result of a turn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turn {
    /// Whether there was anything to do.
    pub has_moved: bool,
    /// The time for which the first frame had waited to be read.
    pub waited: Duration,
    pub next: Next,
}

/// The time of the next look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// When a frame arrives, or at that time.
    At(Option<Duration>),
    /// Now: there is more to do.
    Now,
    /// When the far end has room.
    Room,
}

impl Next {
    /// The time, if it depends neither on arrivals nor on the far end.
    pub fn time(self, now: Duration) -> Option<Duration> {
        match self {
            Self::At(time) => time,
            Self::Now => Some(now),
            Self::Room => None,
        }
    }
}

impl Direction {
    pub fn new(way: Way, links: Links) -> Self {
        Self {
            way,
            links,
            model_time: Duration::ZERO,
            read_until: Duration::ZERO,
            arrived: VecDeque::with_capacity(FRAMES_PER_CALL),
            frames_in: 0,
            frames_out: 0,
            unreadable: 0,
            beyond_memory: 0,
            writes_failed: 0,
            lateness: Durations::new(),
            sightings_lost: 0,
        }
    }

    /// Reads arrived frames, and writes due ones.
    pub fn turn(&mut self, tools: &Tools, batch: &mut Batch, from: &PacketSocket, to: &PacketSocket) -> Turn {
        let moved_before = self.frames_in + self.frames_out;
        let (is_drained, waited) = self.read(tools, batch, from);
        let next = match self.write(tools, to) {
            Next::At(_) if !is_drained => Next::Now,
            next => next,
        };
        Turn { has_moved: self.frames_in + self.frames_out != moved_before, waited, next }
    }

    /// Reads arrived frames. Returns whether that was all, and the time for which the first frame had waited.
    ///
    /// The model gets the time at which each frame reached its interface, not the time of the read. Its time therefore
    /// never runs ahead of the frames that have been read.
    fn read(&mut self, tools: &Tools, batch: &mut Batch, from: &PacketSocket) -> (bool, Duration) {
        let begun = tools.clock.now();
        let difference = tools.clock.difference();
        let mut waited = Duration::ZERO;
        for _ in 0..CALLS_PER_TURN {
            if from.receive(batch).is_err() {
                // The kernel cannot describe this kind of frame; it is lost.
                self.unreadable += 1;
                continue;
            }
            for received in batch.frames() {
                let at = received.at.map_or(begun, |at| since(difference, at));
                waited = waited.max(begun.saturating_sub(at));
                self.take(tools, received, at);
            }
            if !batch.is_full() {
                self.read_until = begun.max(self.model_time);
                return (true, waited);
            }
        }
        self.read_until = self.model_time;
        (false, waited)
    }

    fn take(&mut self, tools: &Tools, received: Received<'_>, at: Duration) {
        self.frames_in += 1;
        if received.is_cut_off {
            self.unreadable += 1;
            return;
        }
        if !tools.buffers.has_room() {
            self.beyond_memory += 1;
            return;
        }
        let mut frame = Frame::new(received.offload, tools.buffers.copy_of(received.bytes));
        self.see(tools, Point::Sent, at, &frame);
        frame.noticed_late = self.model_time.saturating_sub(at);
        self.model_time = self.model_time.max(at);
        self.links.send(self.model_time, frame);
    }

    fn write(&mut self, tools: &Tools, to: &PacketSocket) -> Next {
        for _ in 0..CALLS_PER_TURN {
            self.fetch_arrived();
            if self.arrived.is_empty() {
                return Next::At(self.links.next_event());
            }
            match to.send(self.arrived.iter().map(|(_, frame)| frame)) {
                Ok(count) => self.written(tools, count),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Next::Room,
                Err(_) => {
                    self.writes_failed += 1;
                    self.arrived.pop_front();
                }
            }
        }
        Next::Now
    }

    fn fetch_arrived(&mut self) {
        self.model_time = self.model_time.max(self.read_until);
        while self.arrived.len() < FRAMES_PER_CALL
            && let Some(arrived) = self.links.receive_with_time(self.model_time)
        {
            self.arrived.push_back(arrived);
        }
    }

    fn written(&mut self, tools: &Tools, count: usize) {
        let now = tools.clock.now();
        for _ in 0..count {
            let Some((due, frame)) = self.arrived.pop_front() else { return };
            self.lateness.record(now.saturating_sub(due) + frame.noticed_late);
            self.frames_out += 1;
            self.see(tools, Point::Received, now, &frame);
        }
    }

    fn see(&mut self, tools: &Tools, point: Point, at: Duration, frame: &Frame) {
        if let Some(tap) = &tools.tap
            && !tap.see(self.way, point, at, frame.bytes())
        {
            self.sightings_lost += 1;
        }
    }

    pub fn sightings_lost(&self) -> u64 {
        self.sightings_lost
    }

    pub fn report(&self, dropped_by_kernel: u64) -> WayReport {
        WayReport {
            frames_in: self.frames_in,
            frames_out: self.frames_out,
            dropped_by_kernel,
            unreadable: self.unreadable,
            beyond_memory: self.beyond_memory,
            writes_failed: self.writes_failed,
            lateness: self.lateness.distribution(),
            path: self.links.counters(),
        }
    }
}
