//! Reveals a loss behind which nothing else travels.
//!
//! TCP repairs a loss within a round trip if later segments arrive, because their acknowledgements reveal it. If the lost
//! segment was the last one for the time being, only a timer does: for a single segment it takes the round trip and 200
//! ms or more, since the acknowledgement might just be delayed (RFC 8985 §7.2). Most exchanges of a session are single
//! segments: a command, a status. On a short path each loss of one then costs fifty round trips, and holds up the later
//! commands of all connections.
//!
//! A ping is a later segment in both directions. So a connection on which commands wait for their answers is pinged when
//! it has been silent for two round trips, as TCP's own tail loss probe would be sent if more than one segment were in
//! flight. If the answers take longer because the target needs the time, a few pings are all the cost.

use super::Driver;
use super::path::Lane;
use framing::Counters;
use pdu::{Duration, Instant};
use session::initiator::{PING_BYTES_MAX, Session};

/// The round trip from which on a connection is probed. On shorter paths losses are rare, and answers wait for disks and
/// processors.
const ROUND_TRIP_MIN: Duration = Duration::from_millis(1);

/// The longest round trip: beyond it, TCP's own timers are about as fast.
const ROUND_TRIP_MAX: Duration = Duration::from_millis(100);

/// The shortest silence that is probed.
const SILENCE_MIN: Duration = Duration::from_millis(10);

/// The most probes in one silence. The silence before a probe is twice that before the previous one.
const PROBES_MAX: u32 = 4;

/// The silence at the end of a lane's traffic. Pings and their answers do not end it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tail {
    since: Instant,
    /// The work that was outstanding all the time.
    awaited: Awaited,
    sent_bytes: u64,
    received_bytes: u64,
    probes: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Awaited {
    commands: u32,
    out_bytes: u64,
    in_bytes: u64,
}

impl Tail {
    /// When the lane is to be probed, if it stays silent; `None` if it has been probed often enough.
    fn due(&self, round_trip: Duration) -> Option<Instant> {
        let silence = (round_trip * 2).max(SILENCE_MIN);
        (self.probes < PROBES_MAX).then(|| self.since + silence * (1 << self.probes))
    }
}

impl Driver {
    /// Pings the lanes that have been silent too long, and notes when to look again.
    pub(super) fn probe_tails(&mut self, now: Instant) {
        self.next_probe = None;
        for path in self.paths.iter_mut().filter(|path| path.core.is_some()) {
            let Some(core) = &mut path.core else { continue };
            for lane in path.lanes.iter_mut().filter(|lane| lane.closing.is_none()) {
                let mut due = lane.next_probe(core, now);
                if due.is_some_and(|due| due <= now) {
                    core.probe(now, lane.id);
                    lane.tail = Tail { since: now, probes: lane.tail.probes + 1, ..lane.tail };
                    due = lane.next_probe(core, now);
                }
                self.next_probe = [self.next_probe, due].into_iter().flatten().min();
            }
        }
    }
}

impl Lane {
    /// When to probe the lane; `None` while nothing is awaited.
    fn next_probe(&mut self, core: &Session, now: Instant) -> Option<Instant> {
        let round_trip = self.measurement.last()?.rtt;
        if !(ROUND_TRIP_MIN..=ROUND_TRIP_MAX).contains(&round_trip) {
            return None;
        }
        let state = core.lane_state(self.id);
        let awaited = Awaited {
            commands: state.outstanding_commands,
            out_bytes: state.outstanding_out_bytes,
            in_bytes: state.outstanding_in_bytes,
        };
        let Counters { sent_bytes, received_bytes, .. } = self.connection.counters();
        let is_sending = self.blocked || sent_bytes > self.tail.sent_bytes + PING_BYTES_MAX;
        let is_bringing = received_bytes > self.tail.received_bytes + PING_BYTES_MAX;
        let is_silent = !is_sending && !is_bringing && awaited == self.tail.awaited;
        let (since, probes) = if is_silent { (self.tail.since, self.tail.probes) } else { (now, 0) };
        self.tail = Tail { since, awaited, sent_bytes, received_bytes, probes };
        if awaited.commands > 0 { self.tail.due(round_trip) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn due(round_trip_ms: u64, probes: u32) -> Option<u64> {
        let tail = Tail { probes, ..Tail::default() };
        let due = tail.due(Duration::from_millis(round_trip_ms))?;
        u64::try_from(due.saturating_duration_since(Instant::ZERO).as_millis()).ok()
    }

    #[test]
    fn a_lane_is_probed_after_two_round_trips_but_not_at_once() {
        assert_eq!(due(40, 0), Some(80));
        assert_eq!(due(2, 0), Some(10));
    }

    #[test]
    fn the_pauses_between_probes_grow_and_the_probing_ends() {
        let pauses: Vec<_> = (0..PROBES_MAX).map(|probes| due(10, probes)).collect();
        assert_eq!(pauses, [20, 40, 80, 160].map(Some));
        assert_eq!(due(10, PROBES_MAX), None);
    }
}
