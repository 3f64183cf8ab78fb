//! The lanes of a path, as the placement policy sees them.

use super::path::{Lane, Path};
use framing::UnsentLimit;
use pdu::{Duration, Instant};
use policy::{LaneLoad, LaneSample, Obstacle, PathCounters, PathMeasurement};
use session::initiator::LaneState;
use session::parameters::SessionParameters;

/// A measurement serves this long. TCP_INFO costs about a microsecond, and a path changes within round trips.
pub(super) const MEASUREMENT_AGE_MAX: Duration = Duration::from_millis(10);

/// The bounds of [`ahead_bytes`].
const AHEAD_BYTES_MIN: u64 = 32 << 10;
const AHEAD_BYTES_MAX: u64 = 1 << 20;

/// The shortest time for which a sender's data lies ready.
const AHEAD_TIME_MIN: Duration = Duration::from_millis(1);

/// A command that is to be placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Candidate {
    /// Not yet given to a session. In one whose window is closed it would be parked behind others.
    Fresh,
    /// At the head of the session's parked commands, and the window is open.
    Parked,
    /// It has lost its connection, and goes on over another of the same session.
    Orphan,
}

/// The last measurement of one lane's wire.
#[derive(Debug, Default)]
pub(super) struct Measurement {
    taken: Option<Instant>,
    path: Option<PathMeasurement>,
}

impl Measurement {
    /// The last one, however old.
    pub(super) fn last(&self) -> Option<&PathMeasurement> {
        self.path.as_ref()
    }

    /// The measurement, renewed with `measure` if it is this old.
    fn at(
        &mut self,
        now: Instant,
        age_max: Duration,
        measure: impl FnOnce() -> Option<PathMeasurement>,
    ) -> Option<PathMeasurement> {
        let is_fresh = |taken: Instant| now.saturating_duration_since(taken) < age_max;
        if !self.taken.is_some_and(is_fresh) {
            (self.taken, self.path) = (Some(now), measure());
        }
        self.path
    }
}

impl Path {
    /// Appends the lanes that take commands to `shown`: of a split session, the one of its requests. Measurements are younger
    /// than `age_max`; without it there are none.
    pub(super) fn show_lanes(
        &mut self,
        now: Instant,
        candidate: Candidate,
        age_max: Option<Duration>,
        shown: &mut Vec<LaneSample>,
    ) {
        let incoming = self.incoming_of_split(now, age_max);
        let Some(core) = &self.core else { return };
        let (parked_commands, is_full) = match candidate {
            Candidate::Fresh => (core.counters().queued_commands, !core.has_room()),
            Candidate::Parked | Candidate::Orphan => (0, false),
        };
        let session = self.parameters;
        let takes_requests = |lane: &&mut Lane| lane.role.takes_requests();
        shown.extend(self.lanes.iter_mut().filter(takes_requests).map(|lane| {
            let state = core.lane_state(lane.id);
            let is_leaving = match candidate {
                Candidate::Fresh | Candidate::Parked => !state.accepts_commands,
                Candidate::Orphan => !state.accepts_orphans,
            };
            LaneSample {
                lane: lane.id,
                obstacle: obstacle(is_leaving, is_full, lane.is_spare()),
                load: load(state),
                parked_commands,
                unsolicited_bytes: session.map_or(0, |session| lane.unsolicited_bytes(&session)),
                received_bytes: incoming.as_ref().map_or(lane.received_bytes(), |data| data.received_bytes),
                is_receiving: state.is_receiving,
                path: age_max.and_then(|age_max| lane.measure(now, age_max)).map(|path| {
                    incoming.as_ref().and_then(|data| data.path).map_or(path, |data| receiving(path, &data))
                }),
            }
        }));
    }

    /// Where the data of reads arrives, if that is another connection than the one that their commands are placed on.
    fn incoming_of_split(&mut self, now: Instant, age_max: Option<Duration>) -> Option<Incoming> {
        let bearer = self.parameters.filter(|_| self.is_split())?.split.brings_reads();
        let brings = self.lanes.iter().filter(|lane| !lane.role.takes_requests());
        let received_bytes = brings.map(Lane::received_bytes).sum();
        let lane = self.lanes.iter_mut().find(|lane| lane.role == bearer)?;
        let path = age_max.and_then(|age_max| lane.measure(now, age_max));
        Some(Incoming { received_bytes, path })
    }
}

/// What arrives over one connection of a split session.
struct Incoming {
    received_bytes: u64,
    path: Option<PathMeasurement>,
}

/// The measurement of the connection that sends, with what is known of the one that receives.
fn receiving(sends: PathMeasurement, receives: &PathMeasurement) -> PathMeasurement {
    PathMeasurement {
        in_silence: receives.in_silence,
        receive_rtt: receives.receive_rtt,
        counters: PathCounters {
            received_segments: receives.counters.received_segments,
            out_of_order_segments: receives.counters.out_of_order_segments,
            ..sends.counters
        },
        ..sends
    }
}

impl Lane {
    fn received_bytes(&self) -> u64 {
        self.connection.counters().received_bytes
    }

    /// The most data that a write sends here without waiting for an R2T.
    fn unsolicited_bytes(&self, session: &SessionParameters) -> u32 {
        let first_burst_bytes = session.first_burst_bytes;
        match (session.initial_r2t, session.immediate_data) {
            (false, _) => first_burst_bytes,
            (true, true) => first_burst_bytes.min(self.parameters.send_segment_bytes_max),
            (true, false) => 0,
        }
    }

    /// A measurement younger than `age_max`. What the connection takes ahead follows it.
    pub(super) fn measure(&mut self, now: Instant, age_max: Duration) -> Option<PathMeasurement> {
        let connection = &self.connection;
        let measured = self.measurement.at(now, age_max, || connection.measure());
        if let Some(path) = measured.filter(|_| self.socket.unsent == UnsentLimit::RoundTrip) {
            self.connection.limit_ahead(ahead_bytes(&path));
        }
        measured
    }
}

/// What a lane's connection may take from the session before the network takes it: the bytes of one round trip, which
/// can no longer be placed on another lane. On a short path a millisecond counts as the round trip, or the sender would
/// be woken too often. A power of two, so that small changes cause no system call, and not more than the round trip's.
fn ahead_bytes(path: &PathMeasurement) -> u32 {
    let us = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX).max(1);
    let bytes = path.congestion_window_bytes.saturating_mul(us(path.rtt.max(AHEAD_TIME_MIN))) / us(path.rtt);
    let bytes = bytes.clamp(AHEAD_BYTES_MIN, AHEAD_BYTES_MAX);
    1 << bytes.ilog2()
}

fn obstacle(is_leaving: bool, is_full: bool, is_spare: bool) -> Option<Obstacle> {
    match (is_leaving, is_full, is_spare) {
        (true, _, _) => Some(Obstacle::Leaving),
        (false, true, _) => Some(Obstacle::SessionFull),
        (false, false, true) => Some(Obstacle::Spare),
        (false, false, false) => None,
    }
}

fn load(state: LaneState) -> LaneLoad {
    LaneLoad {
        commands: state.outstanding_commands,
        data_out_bytes: state.outstanding_out_bytes,
        data_in_bytes: state.outstanding_in_bytes,
        unsent_bytes: state.unsent_bytes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    const PATH: PathMeasurement = PathMeasurement {
        rtt: Duration::from_millis(20),
        rtt_min: Duration::from_millis(20),
        delivery_bytes_per_second: 1_000_000,
        congestion_window_bytes: 14_480,
        in_flight_bytes: 10_136,
        unsent_bytes: 0,
        waiting_bytes: 0,
        is_recovering: true,
        is_timed_out: false,
        is_in_slow_start: false,
        out_silence: Duration::ZERO,
        in_silence: Duration::ZERO,
        receive_rtt: Duration::ZERO,
        counters: PathCounters {
            sent_bytes: 0,
            repeated_bytes: 0,
            repeated_segments: 3,
            timeouts: 0,
            busy: Duration::ZERO,
            receive_window_limited: Duration::ZERO,
            received_segments: 0,
            out_of_order_segments: 0,
        },
    };

    /// How often the wire is asked if a policy looks at the lane at each of these milliseconds.
    fn samples_taken(looks_ms: &[u64]) -> u32 {
        let taken = Cell::new(0);
        let mut measurement = Measurement::default();
        for ms in looks_ms {
            let now = Instant::ZERO + Duration::from_millis(*ms);
            let path = measurement.at(now, MEASUREMENT_AGE_MAX, || {
                taken.set(taken.get() + 1);
                Some(PATH)
            });
            assert!(path.is_some());
        }
        taken.get()
    }

    #[test]
    fn a_lane_that_is_logged_out_is_shown_as_leaving() {
        assert_eq!(obstacle(false, false, false), None);
        assert_eq!(obstacle(true, false, true), Some(Obstacle::Leaving));
    }

    #[test]
    fn the_lanes_of_a_full_session_are_shown_as_such() {
        assert_eq!(obstacle(false, true, false), Some(Obstacle::SessionFull));
    }

    /// What may be taken ahead with this window, in segments, and this round trip.
    fn ahead(window_segments: u64, rtt: Duration) -> u32 {
        ahead_bytes(&PathMeasurement { congestion_window_bytes: window_segments * 1448, rtt, ..PATH })
    }

    #[test]
    fn a_round_trips_data_is_taken_ahead_within_bounds() {
        let rtt = Duration::from_millis(40);
        assert_eq!(ahead(64, rtt), 64 << 10, "93 kB, as a power of two");
        assert_eq!(ahead(2, rtt), 32 << 10);
        assert_eq!(ahead(10_000, rtt), 1 << 20);
    }

    #[test]
    fn on_a_short_path_a_milliseconds_data_is_taken_ahead() {
        assert_eq!(ahead(10, Duration::from_micros(100)), 128 << 10);
    }

    #[test]
    fn a_wire_is_asked_once_in_ten_milliseconds() {
        assert_eq!(samples_taken(&[0, 1, 9]), 1);
    }

    #[test]
    fn a_measurement_that_is_ten_milliseconds_old_is_renewed() {
        assert_eq!(samples_taken(&[0, 10, 19, 20]), 3);
    }
}
