//! Watches what all sessions of a target wait for, so that a diagnosis can be made at any time.

use super::Driver;
use super::lane_sample::Candidate;
use super::request::Request;
use crate::Host;
use pdu::{Duration, Instant};
use policy::{Diagnosis, Look, Seen, Tally};
use std::sync::Arc;

/// The bounds of the pause between two looks. A quarter of a round trip shows the pauses between bursts.
const PAUSE_MIN: Duration = Duration::from_millis(5);
const PAUSE_MAX: Duration = Duration::from_millis(100);
const LOOKS_PER_ROUND_TRIP: u32 = 4;

/// The looks at the sessions while they have work.
pub(super) struct Looks {
    host: Arc<dyn Host>,
    tally: Tally,
    /// When to look again; `None` while there is no work.
    next: Option<Instant>,
    /// The pause before that. It doubles as long as nothing happens and nothing is read.
    pause: Duration,
    /// Commands placed and bytes received until the last look.
    progress: (u64, u64),
}

impl Looks {
    pub fn new(host: Arc<dyn Host>) -> Self {
        Self { host, tally: Tally::default(), next: None, pause: Duration::ZERO, progress: (0, 0) }
    }

    pub fn next(&self) -> Option<Instant> {
        self.next
    }

    /// What has been seen so far.
    pub fn seen(&self) -> Seen {
        self.tally.seen()
    }

    pub fn diagnose(&self) -> Option<Diagnosis> {
        self.tally.seen().diagnose()
    }
}

impl Driver {
    /// Looks if it is time. Called before anything changes: a look just after an event would show what events leave
    /// behind, rather than what there is most of the time.
    pub(super) fn look_if_due(&mut self, now: Instant) {
        if self.looks.next.is_some_and(|at| at <= now) {
            self.look(now);
        }
    }

    /// Begins to look when there is work.
    pub(super) fn begin_to_look(&mut self, now: Instant) {
        if self.looks.next.is_none() && !self.operations.is_empty() {
            self.look(now);
        }
    }

    fn look(&mut self, now: Instant) {
        // Measuring a lane also bounds what is taken ahead of it: a policy that wants no measurements wants that neither.
        let age_max = self.placement.wants_measurements().then_some(PAUSE_MIN);
        self.lanes_shown.clear();
        for at in self.paths.ids() {
            self.paths[at].show_lanes(now, Candidate::Fresh, age_max, &mut self.lanes_shown);
        }
        let oldest_read = self.oldest_read(now);
        let look = Look {
            lanes: &self.lanes_shown,
            queued_commands: self.queued_commands(),
            unanswered_out_bytes: self
                .outstanding_requests()
                .map(|request| u64::from(request.data.out_bytes()))
                .sum(),
            oldest_read,
            thread: self.looks.host.thread_time(),
        };
        self.looks.tally.look(now, &look);
        let received_bytes = self.lanes_shown.iter().map(|lane| lane.received_bytes).sum();
        let progress = (self.placed, received_bytes);
        let round_trip = self.lanes_shown.iter().filter_map(|lane| lane.path).map(|path| path.rtt).max();
        let shortest = (round_trip.unwrap_or_default() / LOOKS_PER_ROUND_TRIP).clamp(PAUSE_MIN, PAUSE_MAX);
        // Data of reads is only noticed by looks, and counts from one to the next.
        let is_still = progress == self.looks.progress && oldest_read.is_none();
        self.looks.pause =
            if is_still { (self.looks.pause * 2).clamp(shortest, PAUSE_MAX) } else { shortest };
        self.looks.progress = progress;
        self.looks.next = (!self.operations.is_empty()).then(|| now + self.looks.pause);
    }

    fn queued_commands(&self) -> u32 {
        let queued = self.units.values().map(|unit| unit.queue.len()).sum::<usize>()
            + self.paths.iter().map(|path| path.own.len()).sum::<usize>();
        u32::try_from(queued).unwrap_or(u32::MAX)
    }

    /// The requests that a session has taken and the target has not answered.
    fn outstanding_requests(&self) -> impl Iterator<Item = &Request> {
        let requests = self.paths.iter().flat_map(|path| path.tasks.values());
        requests.filter_map(|key| self.requests.get(*key))
    }

    fn oldest_read(&self, now: Instant) -> Option<Duration> {
        let reads = self.outstanding_requests().filter(|request| request.data.in_bytes() > 0);
        reads.map(|request| now.saturating_duration_since(request.placed_at)).max()
    }
}
