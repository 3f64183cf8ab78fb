//! A tap on the relay: its frames, for a capture or an analysis.

use crate::topology::Host;
use serde::Serialize;
use std::cell::Cell;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// One of the two directions through the relay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// From the client to the server.
    Forward,
    /// From the server to the client.
    Backward,
}

/// The end of the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Point {
    /// The sender has handed it over.
    Sent,
    /// The receiver has got it.
    Received,
}

/// A frame that passed a tap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sighting {
    /// The direction in which it travels.
    pub way: Way,
    /// The end at which it was seen.
    pub point: Point,
    /// The time since the start of the relay.
    pub at: Duration,
    /// The length of the frame, a packet or a super-packet, including its Ethernet header.
    pub frame_bytes: u32,
    /// Its first bytes.
    pub beginning: Box<[u8]>,
}

/// The sender of sightings, for [`Lab::build`](crate::Lab::build). It never waits: sightings without room are lost and
/// counted.
#[derive(Debug)]
pub struct Tap {
    sightings: Sender<Sighting>,
    snap_bytes: usize,
    room_bytes: Cell<usize>,
    /// The window of the sightings; all, if missing.
    window: Option<Window>,
}

/// One end of the path, for a period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    pub host: Host,
    /// Since the start of the relay.
    pub from: Duration,
    /// The first moment after it.
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
    /// A tap that keeps the first `snap_bytes` of each frame, in `room_bytes` of memory in all. Once a frame does not
    /// fit, it and all later ones are lost.
    #[must_use]
    pub fn new(snap_bytes: usize, room_bytes: usize) -> (Self, Receiver<Sighting>) {
        let (sightings, receiver) = channel();
        (Self { sightings, snap_bytes, room_bytes: Cell::new(room_bytes), window: None }, receiver)
    }

    /// Restricts the tap to this window.
    pub(crate) fn within(self, window: Window) -> Self {
        Self { window: Some(window), ..self }
    }

    /// False if the sighting was lost.
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
