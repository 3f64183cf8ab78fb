//! Paths and sessions as models: what a number of connections moves, and what is said to limit it.

use pdu::{Duration, Instant};
use ropewalk_policy::tuner::{Decision, Guided, Law, Slice, TUNED_CONNECTIONS_MAX, Terms};
use ropewalk_policy::{Diagnosis, Limit, PathEvidence, Tuner};

pub const SLICE: Duration = Duration::from_millis(500);
pub const ROUND_TRIP: Duration = Duration::from_millis(40);

/// A path that carries this much, of which each connection alone gets a part.
#[derive(Clone, Copy)]
pub struct Path {
    pub bytes_per_second: f64,
    pub of_each: f64,
    /// What BBR moves, over however many connections.
    pub of_bbr: f64,
    /// What is said of connections that do not fill it.
    pub limit: Limit,
    /// What is said once it is full.
    pub full: Limit,
    /// Flows of others, which fill it and get equal shares.
    pub others: u32,
}

pub const CLEAN: Path = Path {
    bytes_per_second: 16e6,
    of_each: 15e6,
    of_bbr: 15e6,
    limit: Limit::Losses,
    full: Limit::Saturation,
    others: 0,
};
pub const LOSSY: Path = Path { of_each: 4e5, ..CLEAN };

impl Path {
    pub fn moves(&self, connections: u32, law: Law) -> f64 {
        match law {
            Law::Configured if self.others > 0 => {
                self.bytes_per_second * f64::from(connections) / f64::from(connections + self.others)
            }
            Law::Configured => self.bytes_per_second.min(self.of_each * f64::from(connections)),
            Law::Bbr => self.of_bbr,
        }
    }

    fn limit(&self, connections: u32, law: Law) -> Limit {
        let is_full = self.others > 0 || self.moves(connections, law) >= self.bytes_per_second;
        if is_full { self.full } else { self.limit }
    }
}

/// A session with a tuner.
pub struct Session<T> {
    pub tuner: T,
    pub now: Instant,
    pub connections: u32,
    pub law: Law,
    pub connections_max: u32,
    pub may_use_bbr: bool,
    pub moved_bytes: f64,
    pub decisions: Vec<Decision>,
    /// What a full path's queue adds to the round trip.
    pub queue: Duration,
    /// What is said to be sent again.
    pub loss: f64,
    pub is_incoming: bool,
    /// The part of the segments that the receiver sees out of order.
    pub out_of_order: f64,
}

impl<T: Tuner> Session<T> {
    pub fn begin(tuner: T) -> Self {
        Self {
            connections: tuner.connections_at_first(),
            tuner,
            law: Law::Configured,
            now: Instant::ZERO,
            connections_max: TUNED_CONNECTIONS_MAX,
            may_use_bbr: false,
            moved_bytes: 0.0,
            decisions: Vec::new(),
            queue: ROUND_TRIP,
            loss: 0.0,
            is_incoming: false,
            out_of_order: 0.0,
        }
    }

    /// Works over this path for some seconds.
    pub fn work(&mut self, path: &Path, seconds: u64) -> &mut Self {
        let end = self.now + Duration::from_secs(seconds);
        while self.now < end {
            self.slice(path.moves(self.connections, self.law), path.limit(self.connections, self.law));
        }
        self
    }

    pub fn slice(&mut self, bytes_per_second: f64, limit: Limit) {
        self.now += SLICE;
        let moved = bytes_per_second * SLICE.as_secs_f64();
        self.moved_bytes += moved;
        let slice = Slice {
            end: self.now,
            length: SLICE,
            connections: self.connections,
            law: self.law,
            connections_max: self.connections_max,
            may_use_bbr: self.may_use_bbr,
            moved_bytes: whole(moved),
            diagnosis: Some(self.diagnosis(limit)),
        };
        if let Some(decision) = self.tuner.decide(&slice) {
            assert_eq!(decision.connections_before, self.connections);
            assert!((1..=TUNED_CONNECTIONS_MAX).contains(&decision.connections));
            (self.connections, self.law) = (decision.connections, decision.law);
            self.decisions.push(decision);
        }
    }

    fn diagnosis(&self, limit: Limit) -> Diagnosis {
        let said = diagnosis(limit, self.queue, self.loss);
        let path = PathEvidence { out_of_order: self.out_of_order, ..said.path };
        Diagnosis { is_incoming: self.is_incoming, path, ..said }
    }

    /// The share of what could have been moved.
    pub fn efficiency(&self, path: &Path) -> f64 {
        self.moved_bytes
            / (path.bytes_per_second * (self.now.saturating_duration_since(Instant::ZERO)).as_secs_f64())
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a positive number of bytes")]
fn whole(bytes: f64) -> u64 {
    bytes as u64
}

fn diagnosis(limit: Limit, queue: Duration, loss: f64) -> Diagnosis {
    let rtt_min = ROUND_TRIP;
    let rtt = if limit == Limit::Saturation { rtt_min + queue } else { rtt_min };
    let path = PathEvidence { rtt, receive_rtt: rtt, rtt_min, loss, ..PathEvidence::default() };
    Diagnosis { limit, share: 1.0, remedy: None, network_share: 1.0, is_incoming: false, path }
}

pub fn guided() -> Session<Guided> {
    Session::begin(Guided::new(Terms::default()))
}
