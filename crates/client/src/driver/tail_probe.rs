//! Reveals a loss behind which nothing else travels.
//!
//! TCP repairs a loss within a round trip if later segments arrive, because their acknowledgements reveal it. If the lost
//! segment was the last one for the time being, only a timer does: for a single segment it takes the round trip and 200
//! ms or more, since the acknowledgement might just be delayed (RFC 8985 §7.2). Most exchanges of a session are single
//! segments: a command, a status. On a short path each loss of one then costs fifty round trips, and holds up the later
//! commands of all connections.
//!
//! A ping is a later segment in both directions. So a connection on which commands wait for their answers is pinged
//!
//! * when it has been silent for two round trips. TCP's own tail loss probe would be sent then if more than one segment
//!   were in flight. If the answers take longer because the target needs the time, a few pings are all the cost.
//! * when it has sent nothing for one and a half, or 10 ms, and the target's TCP has not acknowledged everything. Data
//!   that comes for earlier reads does not count here: it says nothing of the last command, for which the target may hold
//!   back the later commands of all connections.
//!
//! A second ping follows the first one closely, as a segment of its own. In recovery, TCP sends as much as has been
//! reported to have arrived (RFC 6937): after one ping that is only the lost segment again. If that is lost, too, only
//! a segment behind it tells, and after two pings a third one may leave.
//!
//! Some targets close a connection that pings while commands are under way on others: istgt 0.4 takes the CmdSN of an
//! immediate NOP-Out for wrong unless it is its ExpCmdSN. istgt is not probed, nor a target that closes a connection right
//! after a probe.

use super::Driver;
use super::path::Lane;
use framing::Counters;
use pdu::{Duration, Instant};
use scsi::client::StandardInquiry;
use session::initiator::{PING_BYTES_MAX, Session};

/// The round trip from which on a connection is probed. On shorter paths losses are rare, and answers wait for disks and
/// processors.
const ROUND_TRIP_MIN: Duration = Duration::from_millis(1);

/// The longest round trip: beyond it, TCP's own timers are about as fast.
const ROUND_TRIP_MAX: Duration = Duration::from_millis(100);

/// The shortest silence that is probed.
const SILENCE_MIN: Duration = Duration::from_millis(10);

/// The pauses before the probes of one silence, in quarters of the first one. Then probing ends.
const PAUSES: [u32; 5] = [4, 1, 4, 8, 16];

/// A time in which nothing happened but probes.
#[derive(Clone, Copy, Debug, Default)]
struct Silence {
    /// Its beginning, or the last probe.
    since: Instant,
    probes: usize,
}

impl Silence {
    fn from(now: Instant) -> Self {
        Self { since: now, probes: 0 }
    }

    /// When to probe if it goes on; `None` after enough probes. The first one is due after `pause`.
    fn due(self, pause: Duration) -> Option<Instant> {
        let quarters = *PAUSES.get(self.probes)?;
        Some(self.since + pause.max(SILENCE_MIN) * quarters / 4)
    }

    fn probed(&mut self, now: Instant) {
        *self = Self { since: now, probes: self.probes + 1 };
    }
}

/// The end of a lane's traffic. Probes do not count, nor do a ping's answers.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tail {
    /// Since the last byte in either direction, or the last change of what is awaited.
    silence: Silence,
    /// Since the last PDU to the target, until the target's TCP is known to have it.
    unacknowledged: Option<Silence>,
    /// The work that was outstanding all the time.
    awaited: Awaited,
    /// PDUs sent, and probes still to be sent.
    sent_pdus: u64,
    received_bytes: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Awaited {
    commands: u32,
    out_bytes: u64,
    in_bytes: u64,
}

impl Tail {
    /// When the lane is to be probed, unless something happens.
    fn due(&self, round_trip: Duration) -> Option<Instant> {
        let silent = self.silence.due(round_trip * 2);
        let unacknowledged = self.unacknowledged.and_then(|silence| silence.due(round_trip * 3 / 2));
        [silent, unacknowledged].into_iter().flatten().min()
    }

    /// Whether probes were the last that happened.
    pub(super) fn is_probed(&self) -> bool {
        self.silence.probes > 0 || self.unacknowledged.is_some_and(|silence| silence.probes > 0)
    }

    fn probed(&mut self, now: Instant, is_sent: bool) {
        self.sent_pdus += u64::from(is_sent);
        self.silence.probed(now);
        self.unacknowledged.iter_mut().for_each(|silence| silence.probed(now));
    }
}

/// The vendor and product that istgt's units name unless its administrator sets others.
const ISTGT: (&str, &str) = ("FreeBSD", "iSCSI DISK");

impl Driver {
    /// Learns from a unit what its target is, before anything is written.
    pub(crate) fn learn_target(&mut self, unit: &StandardInquiry) {
        self.probes_tails &= (unit.vendor.as_str(), unit.product.as_str()) != ISTGT;
    }

    /// Pings the lanes that have been silent too long, and notes when to look again.
    pub(super) fn probe_tails(&mut self, now: Instant) {
        self.next_probe = None;
        if !self.probes_tails {
            return;
        }
        for path in self.paths.iter_mut() {
            let Some(core) = &mut path.core else { continue };
            for lane in path.lanes.iter_mut().filter(|lane| lane.closing.is_none()) {
                let mut due = lane.next_probe(core, now);
                if due.is_some_and(|due| due <= now) {
                    let is_sent = core.probe(now, lane.id);
                    lane.tail.probed(now, is_sent);
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
        let Counters { sent_pdus, received_bytes, .. } = self.connection.counters();
        let is_sending = self.blocked || sent_pdus > self.tail.sent_pdus;
        let is_bringing = received_bytes > self.tail.received_bytes + PING_BYTES_MAX;
        if is_sending || is_bringing || awaited != self.tail.awaited {
            self.tail.silence = Silence::from(now);
        }
        if is_sending {
            self.tail.unacknowledged = Some(Silence::from(now));
        }
        self.tail =
            Tail { awaited, sent_pdus: sent_pdus.max(self.tail.sent_pdus), received_bytes, ..self.tail };
        if awaited.commands == 0 {
            return None;
        }
        if self.tail.due(round_trip)? <= now && self.connection.unacknowledged_bytes() == 0 {
            self.tail.unacknowledged = None;
        }
        self.tail.due(round_trip)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(milliseconds: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(milliseconds)
    }

    fn round_trip(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    #[test]
    fn a_lane_is_probed_after_two_round_trips_but_not_at_once() {
        assert_eq!(Tail::default().due(round_trip(40)), Some(at(80)));
        assert_eq!(Tail::default().due(round_trip(2)), Some(at(10)));
    }

    #[test]
    fn probes_are_the_last_that_happened_until_something_does() {
        let mut tail = Tail::default();
        assert!(!tail.is_probed());
        tail.probed(at(10), true);
        assert!(tail.is_probed());
        tail.silence = Silence::from(at(20));
        assert!(!tail.is_probed());
    }

    #[test]
    fn what_is_not_acknowledged_is_probed_although_data_comes() {
        let tail = Tail {
            silence: Silence::from(at(100)),
            unacknowledged: Some(Silence::from(at(0))),
            ..Tail::default()
        };
        assert_eq!(tail.due(round_trip(40)), Some(at(60)));
        assert_eq!(Tail { unacknowledged: None, ..tail }.due(round_trip(40)), Some(at(180)));
    }

    #[test]
    fn the_second_probe_follows_closely_then_the_pauses_grow_and_the_probing_ends() {
        let mut tail = Tail::default();
        let mut probes = vec![];
        while let Some(due) = tail.due(round_trip(10)) {
            probes.push(due);
            tail.probed(due, true);
        }
        assert_eq!(probes, [20, 25, 45, 85, 165].map(at));
    }
}
