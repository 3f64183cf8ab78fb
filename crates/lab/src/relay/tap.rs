//! A tap on the relay: what it sees, for whoever wants to keep or analyse it.

use serde::Serialize;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
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

/// What [`Relay::start`](crate::Relay::start) is given to report what it sees. It never waits: what the other end does
/// not take in time is lost, and counted.
#[derive(Clone, Debug)]
pub struct Tap {
    sightings: SyncSender<Sighting>,
    snap_bytes: usize,
}

impl Tap {
    /// A tap that keeps the first `snap_bytes` of each frame, and up to `backlog` sightings until they are taken.
    #[must_use]
    pub fn new(snap_bytes: usize, backlog: usize) -> (Self, Receiver<Sighting>) {
        let (sightings, receiver) = sync_channel(backlog);
        (Self { sightings, snap_bytes }, receiver)
    }

    /// False if it was lost.
    pub(crate) fn see(&self, way: Way, point: Point, at: Duration, frame: &[u8]) -> bool {
        let frame_bytes = u32::try_from(frame.len()).unwrap_or(u32::MAX);
        let beginning = frame[..frame.len().min(self.snap_bytes)].into();
        self.sightings.try_send(Sighting { way, point, at, frame_bytes, beginning }).is_ok()
    }
}
