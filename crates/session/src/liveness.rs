//! Liveness of the peer at the other end of a lane: when to ping it, and when to give it up. Both roles.
//!
//! Only silence ends a lane. Two things are a sign of life:
//!
//! * any byte that arrives, also in the middle of a PDU: an answer may be behind a data segment that takes minutes;
//! * any byte that the peer's network acknowledges. RFC 7143 demands an answer to a ping (§11.18) but sets no time
//!   limit, and a peer that is still receiving earlier bytes cannot have seen the ping. A peer whose program hangs
//!   while its host lives is found too: its buffers fill, and neither side can send forever without hearing from the
//!   other, because the command window bounds requests, R2Ts bound the data of writes, and commands bound the data of
//!   reads. Then acknowledgements stop. Nothing bounds how often a ping is sent again, so the repetitions do not count:
//!   behind a damaged header whose length lies, the peer's program would swallow them forever, while its network
//!   acknowledges each.
//!
//! A ping's timeout starts when the ping has left. A peer that falls silent is given up at the latest `ping_after` +
//! `ping_timeout` after its last sign of life, or a quarter of `ping_timeout` later if that was an acknowledgement,
//! because acknowledgements are polled. If nothing is outstanding and the round trip is known, it is given up sooner
//! ([`Liveness::answer_within`]).

use pdu::{DIGEST_BYTES, Duration, Header, Instant};

/// How often the driver is asked for the peer's acknowledgements within a ping's timeout.
const LOOKS: u32 = 4;

/// A ping's timeout in multiples of the expected answer time. TCP sends a lost segment again after one, two and four of
/// these.
const EXPECTED_TIMES: u32 = 8;

/// The shortest timeout of a ping: on a short path, a kernel repeats a segment at intervals of 0.2, 0.4, 0.8, 1.6 and
/// 3.2 s.
const ANSWER_WITHIN_MIN: Duration = Duration::from_secs(7);

/// The most bytes of a ping, or of its answer: a basic header segment and its digest (RFC 7143 §11.1).
pub const PING_BYTES_MAX: u64 = (Header::BHS_BYTES + DIGEST_BYTES) as u64;

/// How long a lane tolerates silence at present.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    /// Silence after which the peer is pinged.
    pub(crate) ping_after: Duration,
    /// The longest silence after a ping.
    pub(crate) ping_timeout: Duration,
    /// Work is outstanding, which may delay the peer's answer: the peer then has all of `ping_timeout`.
    pub(crate) is_loaded: bool,
}

/// The measure to take against a silence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Measure {
    /// No measure is due yet.
    None,
    /// The ping is late, and may have been lost at error recovery level 1 and above.
    Late,
    /// Ping the peer.
    Ping,
    /// Give the lane up.
    GiveUp,
}

/// A lane's record of its peer's signs of life.
#[derive(Debug)]
pub(crate) struct Liveness {
    heard_at: Instant,
    /// When PDUs last left.
    left_at: Instant,
    /// When the driver last reported new acknowledgements.
    delivered_at: Instant,
    delivered_bytes: u64,
    /// At most as many bytes were pings sent again, or followed pings.
    repeated_bytes: u64,
    round_trip: RoundTrip,
    ping: Option<Ping>,
}

/// A ping without an answer.
#[derive(Clone, Copy, Debug)]
struct Ping {
    asked_at: Instant,
    /// Its timeout starts then at the earliest.
    counts_from: Instant,
    progress: Progress,
    /// The ping was sent more than once, so an answer may be to either copy and is no sample of the round trip (RFC
    /// 6298 §3, Karn's algorithm).
    is_repeated: bool,
    /// When the driver was last asked for acknowledgements. `is_looking` says that it has not answered yet.
    looked_at: Instant,
    is_looking: bool,
}

#[derive(Clone, Copy, Debug)]
enum Progress {
    Queued,
    /// The ping was pulled as PDU `number` of its lane.
    Pulled {
        number: u64,
    },
    Left {
        at: Instant,
    },
}

impl Liveness {
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            heard_at: now,
            left_at: now,
            delivered_at: now,
            delivered_bytes: 0,
            repeated_bytes: 0,
            round_trip: RoundTrip::default(),
            ping: None,
        }
    }

    /// Notes that bytes have arrived.
    pub(crate) fn heard(&mut self, now: Instant) {
        self.heard_at = now;
    }

    pub(crate) fn heard_at(&self) -> Instant {
        self.heard_at
    }

    /// Notes that the peer's network has acknowledged the first `bytes` of all bytes sent.
    pub(crate) fn delivered(&mut self, now: Instant, bytes: u64) {
        let bytes = bytes.saturating_sub(self.repeated_bytes);
        if bytes > self.delivered_bytes {
            self.delivered_bytes = bytes;
            self.delivered_at = now;
        }
        if let Some(ping) = &mut self.ping {
            ping.is_looking = false;
        }
    }

    /// Whether the driver must call [`Self::delivered`].
    pub(crate) fn is_looking(&self) -> bool {
        self.ping.is_some_and(|ping| ping.is_looking)
    }

    /// Notes that the PDUs before `number` have left.
    pub(crate) fn left(&mut self, now: Instant, number: u64) {
        self.left_at = now;
        if let Some(ping) = &mut self.ping
            && let Progress::Pulled { number: of_ping } = ping.progress
            && of_ping <= number
        {
            ping.progress = Progress::Left { at: now };
        }
    }

    /// Notes that a ping was queued. Its timeout starts when it has left, and not before `counts_from`.
    pub(crate) fn ask(&mut self, now: Instant, counts_from: Instant) {
        self.ping = Some(Ping {
            asked_at: now,
            counts_from,
            progress: Progress::Queued,
            is_repeated: false,
            looked_at: now,
            is_looking: true,
        });
    }

    /// Notes that the same ping was queued once more.
    pub(crate) fn ask_again(&mut self, now: Instant) {
        if let Some(ping) = &mut self.ping {
            ping.asked_at = now;
            ping.is_repeated = true;
            self.ping_followed();
        }
    }

    /// Notes that one more NOP-Out was queued behind the ping.
    pub(crate) fn ping_followed(&mut self) {
        self.repeated_bytes += PING_BYTES_MAX;
    }

    /// Notes that the ping was pulled as PDU `number` of the lane. Only the first copy counts.
    pub(crate) fn ping_pulled(&mut self, number: u64) {
        if let Some(ping) = self.ping.as_mut().filter(|ping| matches!(ping.progress, Progress::Queued)) {
            ping.progress = Progress::Pulled { number };
        }
    }

    /// Notes that the ping has been answered, and samples the round trip.
    pub(crate) fn answered(&mut self, now: Instant) {
        if let Some(Ping { progress: Progress::Left { at }, is_repeated: false, .. }) = self.ping.take() {
            self.round_trip.sample(now.saturating_duration_since(at));
        }
    }

    /// When the unanswered ping was queued.
    pub(crate) fn asked_at(&self) -> Option<Instant> {
        self.ping.map(|ping| ping.asked_at)
    }

    pub(crate) fn is_pinging(&self) -> bool {
        self.ping.is_some()
    }

    pub(crate) fn ping_has_left(&self) -> bool {
        self.ping.is_some_and(|ping| matches!(ping.progress, Progress::Left { .. }))
    }

    /// When [`Self::measure`] must be called next, if nothing happens before.
    pub(crate) fn due(&self, patience: &Patience) -> Instant {
        let Some(ping) = &self.ping else { return self.heard_at + patience.ping_after };
        let deadline = self.deadline(ping, patience);
        let next_look = ping.looked_at + self.look_interval(patience);
        if ping.looked_at >= deadline { next_look } else { deadline.min(next_look) }
    }

    /// The measure to take now.
    pub(crate) fn measure(&mut self, now: Instant, patience: &Patience) -> Measure {
        if self.due(patience) > now {
            return Measure::None;
        }
        let Some(ping) = self.ping else { return Measure::Ping };
        // A long gap since the last look means that this side was asleep, and has not seen bytes that arrived
        // meanwhile.
        let slept = ping.looked_at + self.look_interval(patience) * 2 < now;
        if self.deadline(&ping, patience) <= now && !slept {
            return Measure::GiveUp;
        }
        self.ping = Some(Ping { looked_at: now, is_looking: true, ..ping });
        Measure::Late
    }

    /// The deadline for the answer to a request other than a ping, made at `asked_at`.
    pub(crate) fn deadline_from(&self, asked_at: Instant, patience: &Patience) -> Instant {
        asked_at.max(self.heard_at).max(self.left_at) + patience.ping_timeout
    }

    /// The ping's deadline. For a ping that has not left, the timeout counts from the last PDU that did.
    fn deadline(&self, ping: &Ping, patience: &Patience) -> Instant {
        let since = match ping.progress {
            Progress::Left { at } => at,
            Progress::Queued | Progress::Pulled { .. } => ping.asked_at.max(self.left_at),
        };
        since.max(ping.counts_from).max(self.heard_at).max(self.delivered_at) + self.answer_within(patience)
    }

    /// The timeout of a ping: a few round trips if nothing is outstanding and the round trip is known, else
    /// `ping_timeout`, which is also the upper bound.
    fn answer_within(&self, patience: &Patience) -> Duration {
        let most = patience.ping_timeout;
        match self.round_trip.expected() {
            Some(expected) if !patience.is_loaded => {
                (expected * EXPECTED_TIMES).clamp(ANSWER_WITHIN_MIN.min(most), most)
            }
            _ => most,
        }
    }

    fn look_interval(&self, patience: &Patience) -> Duration {
        self.answer_within(patience) / LOOKS
    }
}

/// The round trip that pings measure, load included, smoothed like TCP's (RFC 6298 §2).
#[derive(Clone, Copy, Debug, Default)]
struct RoundTrip {
    /// The smoothed round trip and its variation.
    measured: Option<(Duration, Duration)>,
}

/// The largest sample. Without this bound, a host that slept for days would spoil the average.
const ROUND_TRIP_MAX: Duration = Duration::from_secs(600);

impl RoundTrip {
    fn sample(&mut self, round_trip: Duration) {
        let round_trip = round_trip.min(ROUND_TRIP_MAX);
        self.measured = Some(match self.measured {
            None => (round_trip, round_trip / 2),
            Some((smoothed, variation)) => {
                let difference = smoothed.abs_diff(round_trip);
                ((smoothed * 7 + round_trip) / 8, (variation * 3 + difference) / 4)
            }
        });
    }

    /// The time within which nearly every answer comes; `None` before the first sample.
    fn expected(&self) -> Option<Duration> {
        self.measured.map(|(smoothed, variation)| smoothed + variation * 4)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDLE: Patience = Patience {
        ping_after: Duration::from_secs(30),
        ping_timeout: Duration::from_secs(30),
        is_loaded: false,
    };

    fn seconds(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    /// A lane that was pinged, after it measured round trips of these many milliseconds.
    fn pinged(round_trips_ms: &[u64]) -> Liveness {
        let mut lane = Liveness::new(Instant::ZERO);
        for round_trip_ms in round_trips_ms {
            lane.round_trip.sample(Duration::from_millis(*round_trip_ms));
        }
        lane.ask(Instant::ZERO, Instant::ZERO);
        lane.ping_pulled(1);
        lane.left(Instant::ZERO, 1);
        lane
    }

    /// When the lane is given up if nothing more happens than the acknowledgements that `look` reports.
    fn given_up_at(lane: &mut Liveness, patience: &Patience, look: impl Fn(Instant) -> u64) -> Duration {
        loop {
            let now = lane.due(patience);
            if lane.measure(now, patience) == Measure::GiveUp {
                return now.saturating_duration_since(Instant::ZERO);
            }
            if lane.is_looking() {
                lane.delivered(now, look(now));
            }
        }
    }

    #[test]
    fn the_first_ping_may_take_all_of_the_time() {
        assert_eq!(given_up_at(&mut pinged(&[]), &IDLE, |_| 0), IDLE.ping_timeout);
    }

    #[test]
    fn a_ping_that_was_sent_early_does_not_end_the_patience_early() {
        let mut lane = Liveness::new(Instant::ZERO);
        lane.ask(Instant::ZERO, Instant::ZERO + IDLE.ping_after);
        assert_eq!(given_up_at(&mut lane, &IDLE, |_| 0), IDLE.ping_after + IDLE.ping_timeout);
    }

    #[test]
    fn an_idle_lane_of_a_short_path_is_given_up_sooner() {
        assert_eq!(given_up_at(&mut pinged(&[1, 2, 1]), &IDLE, |_| 0), ANSWER_WITHIN_MIN);
    }

    #[test]
    fn work_under_way_excuses_a_late_answer() {
        let loaded = Patience { is_loaded: true, ..IDLE };
        assert_eq!(given_up_at(&mut pinged(&[1, 2, 1]), &loaded, |_| 0), IDLE.ping_timeout);
    }

    #[test]
    fn a_longer_path_gets_more_time_up_to_what_was_configured() {
        let time = |round_trip_ms| given_up_at(&mut pinged(&[round_trip_ms; 20]), &IDLE, |_| 0);
        assert!(time(1000) > ANSWER_WITHIN_MIN && time(1000) < IDLE.ping_timeout);
        assert_eq!(time(60_000), IDLE.ping_timeout);
    }

    #[test]
    fn a_peer_that_takes_what_was_sent_lives_until_it_takes_no_more() {
        let taken_for = Duration::from_secs(600);
        let look = |now: Instant| now.0.min(pdu::nanoseconds(taken_for));
        let time = given_up_at(&mut pinged(&[]), &IDLE, look);
        let bound = taken_for + IDLE.ping_timeout + IDLE.ping_timeout / LOOKS;
        assert!(time >= taken_for + IDLE.ping_timeout && time <= bound, "{time:?}");
    }

    #[test]
    fn a_ping_sent_again_is_no_sign_of_life_when_it_is_acknowledged() {
        let mut lane = pinged(&[]);
        let mut acknowledged = PING_BYTES_MAX;
        let gives_up = (0..100).any(|_| {
            let now = lane.due(&IDLE);
            let measure = lane.measure(now, &IDLE);
            lane.ask_again(now);
            acknowledged += PING_BYTES_MAX;
            lane.delivered(now, acknowledged);
            measure == Measure::GiveUp
        });
        assert!(gives_up);
    }

    #[test]
    fn who_was_asleep_looks_again_before_the_peer_is_given_up() {
        let mut lane = pinged(&[]);
        assert_eq!(lane.measure(seconds(3600), &IDLE), Measure::Late);
        assert!(lane.is_looking());
        lane.heard(seconds(3600));
        assert_eq!(lane.due(&IDLE), seconds(3600) + IDLE.ping_timeout / LOOKS);
        assert_eq!(lane.measure(seconds(3629), &IDLE), Measure::Late);
        let mut lane = pinged(&[]);
        assert_eq!(lane.measure(seconds(3600), &IDLE), Measure::Late);
        let then = lane.due(&IDLE);
        assert_eq!((lane.measure(then, &IDLE), then.0 > seconds(3600).0), (Measure::GiveUp, true));
    }

    #[test]
    fn an_answer_to_a_repeated_ping_measures_nothing() {
        let mut lane = pinged(&[]);
        lane.ask_again(seconds(2));
        lane.answered(seconds(3));
        assert_eq!(lane.round_trip.expected(), None);
        lane.ask(seconds(4), seconds(4));
        lane.ping_pulled(2);
        lane.left(seconds(5), 2);
        lane.answered(seconds(6));
        assert_eq!(lane.round_trip.expected(), Some(Duration::from_secs(3)));
    }
}
