//! The links of one direction: one for each address of the server that has a path of its own.

use super::tap::Way;
use crate::frame::Frame;
use netem::{Counters, Link};
use std::time::Duration;

/// The number of the server's address that the second path leads to.
const SECOND: u8 = 2;

/// The way of every frame in one direction. It has the verbs of a [`Link`].
pub(crate) struct Links {
    way: Way,
    first: Link<Frame>,
    second: Option<Link<Frame>>,
}

impl Links {
    pub fn new(way: Way, first: Link<Frame>, second: Option<Link<Frame>>) -> Self {
        Self { way, first, second }
    }

    pub fn send(&mut self, now: Duration, frame: Frame) {
        let server = match self.way {
            Way::Forward => frame.destination_number(),
            Way::Backward => frame.source_number(),
        };
        match &mut self.second {
            Some(second) if server == Some(SECOND) => second.send(now, frame),
            _ => self.first.send(now, frame),
        }
    }

    /// A frame that has arrived by `now`, with the time of its arrival. The order is that of each link.
    pub fn receive_with_time(&mut self, now: Duration) -> Option<(Duration, Frame)> {
        self.first.receive_with_time(now).or_else(|| self.second.as_mut()?.receive_with_time(now))
    }

    /// When to look again if nothing is sent before.
    pub fn next_event(&self) -> Option<Duration> {
        let second = self.second.as_ref().and_then(Link::next_event);
        [self.first.next_event(), second].into_iter().flatten().min()
    }

    pub fn counters(&self) -> Counters {
        let first = self.first.counters();
        self.second.as_ref().map_or(first, |second| first + second.counters())
    }
}
