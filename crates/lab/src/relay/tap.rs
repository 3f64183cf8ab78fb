//! A tap on the relay: what it sees, for whoever wants to keep or analyse it.

use crate::topology::Host;
use serde::Serialize;
use std::cell::Cell;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// One of the two ways through the relay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// From the client to the server.
    Forward,
    /// From the server to the client.
    Backward,
}

/// At which end of the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Point {
    /// The sender has handed it over.
    Sent,
    /// It has been handed to the receiver.
    Received,
}

/// A frame that passed a tap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sighting {
    /// Its way.
    pub way: Way,
    /// Where it was seen.
    pub point: Point,
    /// When, since the relay began.
    pub at: Duration,
    /// The length of the frame: of a packet, or a super-packet, with its Ethernet header.
    pub frame_bytes: u32,
    /// Its beginning.
    pub beginning: Box<[u8]>,
}

/// What [`Lab::build`](crate::Lab::build) is given to hear what the relay sees. It never waits: what there is no room for
/// is lost, and counted.
#[derive(Debug)]
pub struct Tap {
    sightings: Sender<Sighting>,
    snap_bytes: usize,
    room_bytes: Cell<usize>,
    /// Of everything, if it is missing.
    window: Option<Window>,
}

/// What passes one host for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    pub host: Host,
    /// Since the relay began.
    pub from: Duration,
    /// The first moment that is no part of it.
    pub to: Duration,
}

impl Window {
    fn contains(&self, way: Way, point: Point, at: Duration) -> bool {
        let host = match (way, point) {
            (Way::Forward, Point::Sent) | (Way::Backward, Point::Received) => Host::Client,
            (Way::Forward, Point::Received) | (Way::Backward, Point::Sent) => Host::Server,
        };
        host == self.host && (self.from..self.to).contains(&at)
    }
}

impl Tap {
    /// A tap that keeps the first `snap_bytes` of each frame, in `room_bytes` of memory all together. The first frame for
    /// which that is too little is the first of those that are lost.
    #[must_use]
    pub fn new(snap_bytes: usize, room_bytes: usize) -> (Self, Receiver<Sighting>) {
        let (sightings, receiver) = channel();
        (Self { sightings, snap_bytes, room_bytes: Cell::new(room_bytes), window: None }, receiver)
    }

    /// The same of what passes there.
    pub(crate) fn within(self, window: Window) -> Self {
        Self { window: Some(window), ..self }
    }

    /// False if it was lost.
    pub(crate) fn see(&self, way: Way, point: Point, at: Duration, frame: &[u8]) -> bool {
        if self.window.is_some_and(|window| !window.contains(way, point, at)) {
            return true;
        }
        let beginning = &frame[..frame.len().min(self.snap_bytes)];
        let room_bytes = self.room_bytes.get().checked_sub(size_of::<Sighting>() + beginning.len());
        self.room_bytes.set(room_bytes.unwrap_or(0));
        let frame_bytes = u32::try_from(frame.len()).unwrap_or(u32::MAX);
        let sighting = || Sighting { way, point, at, frame_bytes, beginning: beginning.into() };
        room_bytes.is_some() && self.sightings.send(sighting()).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_tap_that_is_full_stays_full() {
        let (tap, sightings) = Tap::new(usize::MAX, 2 * (size_of::<Sighting>() + 100));
        let see = |bytes: usize| tap.see(Way::Forward, Point::Sent, SECOND, &vec![0; bytes]);
        assert_eq!([see(100), see(101), see(1)], [true, false, false]);
        assert_eq!(sightings.try_iter().count(), 1);
    }

    #[test]
    fn a_window_is_a_time_at_one_host() {
        let (tap, sightings) = Tap::new(0, usize::MAX);
        let tap = tap.within(Window { host: Host::Client, from: SECOND, to: 2 * SECOND });
        for at in [Duration::ZERO, SECOND, 2 * SECOND] {
            for (way, point) in [(Way::Forward, Point::Sent), (Way::Forward, Point::Received)] {
                assert!(tap.see(way, point, at, &[]), "what is not wanted is not lost");
            }
            assert!(tap.see(Way::Backward, Point::Received, at, &[]));
        }
        let seen: Vec<_> = sightings.try_iter().map(|seen| (seen.way, seen.point, seen.at)).collect();
        assert_eq!(seen, [(Way::Forward, Point::Sent, SECOND), (Way::Backward, Point::Received, SECOND)]);
    }
}
