//! The rate at which data comes over each lane. The sender of that data measures its path; the receiver has only this.

use crate::lane_sample::LaneSample;
use pdu::{Duration, Instant, LaneId};

/// The shortest time over which a rate is measured: shorter ones measure bursts.
const WINDOW_MIN: Duration = Duration::from_millis(5);

/// A falling rate moves this part of the way to each new measurement, a rising one all of it: a lane that repairs a loss
/// will be as fast again.
const FALL: f64 = 0.25;

/// The rates of all lanes, learned while they have data to bring.
#[derive(Clone, Debug, Default)]
pub(crate) struct Arrivals {
    lanes: Vec<Arrival>,
}

#[derive(Clone, Debug)]
struct Arrival {
    lane: LaneId,
    since: Instant,
    received_bytes: u64,
    /// Nothing was to come at that time.
    was_idle: bool,
    bytes_per_second: Option<f64>,
    /// It has been measured while more was to come all the time. Otherwise it is at least as fast as measured.
    is_proven: bool,
}

impl Arrivals {
    /// Takes in the present samples of some lanes.
    pub fn observe(&mut self, now: Instant, samples: &[LaneSample]) {
        for sample in samples {
            match self.lanes.iter_mut().find(|known| known.lane == sample.lane) {
                Some(known) => known.observe(now, sample),
                None => self.lanes.push(Arrival {
                    lane: sample.lane,
                    since: now,
                    received_bytes: sample.received_bytes,
                    was_idle: sample.load.data_in_bytes == 0,
                    bytes_per_second: None,
                    is_proven: false,
                }),
            }
        }
    }

    /// Forgets a lane that is gone.
    pub fn forget(&mut self, lane: LaneId) {
        self.lanes.retain(|known| known.lane != lane);
    }

    /// Bytes per second over a lane, as far as that has been measured; `None` before.
    pub fn bytes_per_second(&self, lane: LaneId) -> Option<f64> {
        self.of(lane)?.bytes_per_second
    }

    /// Whether a lane has been measured while more was to come all the time.
    pub fn is_proven(&self, lane: LaneId) -> bool {
        self.of(lane).is_some_and(|known| known.is_proven)
    }

    /// Bytes per second that may be expected of a lane. One that has never had enough to bring is expected to be as fast
    /// as the fastest, or it would never be tried.
    pub fn expected(&self, lane: LaneId) -> Option<f64> {
        let known = self.of(lane)?;
        if known.is_proven {
            return known.bytes_per_second;
        }
        let rates = self.lanes.iter().filter_map(|other| other.bytes_per_second);
        rates.fold(None, |fastest: Option<f64>, rate| Some(fastest.map_or(rate, |fastest| fastest.max(rate))))
    }

    fn of(&self, lane: LaneId) -> Option<&Arrival> {
        self.lanes.iter().find(|known| known.lane == lane)
    }
}

impl Arrival {
    fn observe(&mut self, now: Instant, sample: &LaneSample) {
        let is_idle = sample.load.data_in_bytes == 0;
        let bytes = sample.received_bytes.saturating_sub(self.received_bytes);
        let elapsed = now.saturating_duration_since(self.since);
        let window = sample.path.map_or(WINDOW_MIN, |path| path.rtt.max(WINDOW_MIN));
        // A lane without anything to bring says nothing of its rate.
        if !self.was_idle {
            // A pause counts with the bytes that end it: once, however long it is.
            if !is_idle && (elapsed < window || bytes == 0) {
                return;
            }
            self.take_in(bytes as f64 / elapsed.max(window).as_secs_f64(), !is_idle);
        }
        (self.since, self.received_bytes, self.was_idle) = (now, sample.received_bytes, is_idle);
    }

    /// A lane that ran out of data meanwhile was at least as fast as measured.
    fn take_in(&mut self, measured: f64, was_busy: bool) {
        self.is_proven |= was_busy;
        let known = self.bytes_per_second.unwrap_or(0.0);
        let step = match (measured > known, was_busy) {
            (true, _) => 1.0,
            (false, true) => FALL,
            (false, false) => return,
        };
        self.bytes_per_second = Some(known + (measured - known) * step);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lane_sample::LaneLoad;

    const LANE: LaneId = LaneId(1);

    fn sample(received_bytes: u64, data_in_bytes: u64) -> LaneSample {
        let load = LaneLoad { data_in_bytes, commands: 1, ..LaneLoad::default() };
        LaneSample { received_bytes, load, ..LaneSample::idle(LANE) }
    }

    /// The rate after these observations, each with its time in ms.
    fn rate(observations: &[(u64, LaneSample)]) -> Option<f64> {
        let mut arrivals = Arrivals::default();
        for (ms, sample) in observations {
            arrivals.observe(Instant::ZERO + Duration::from_millis(*ms), &[*sample]);
        }
        arrivals.bytes_per_second(LANE).map(f64::round)
    }

    #[test]
    fn a_lane_that_has_brought_nothing_has_no_rate_yet() {
        assert_eq!(rate(&[(0, sample(0, 9))]), None);
    }

    #[test]
    fn a_rate_is_what_came_while_more_was_to_come() {
        assert_eq!(rate(&[(0, sample(0, 9)), (10, sample(50_000, 9))]), Some(5e6));
    }

    #[test]
    fn a_faster_measurement_counts_at_once_and_a_slower_one_by_a_part() {
        let seen = [(0, sample(0, 9)), (10, sample(10_000, 9)), (20, sample(60_000, 9))];
        assert_eq!(rate(&seen), Some(5e6));
        let slower = [seen.as_slice(), &[(30, sample(70_000, 9))]].concat();
        assert_eq!(rate(&slower), Some(4e6));
    }

    #[test]
    fn time_in_which_nothing_was_to_come_does_not_count() {
        let seen =
            [(0, sample(0, 9)), (4, sample(20_000, 0)), (6, sample(20_000, 9)), (16, sample(70_000, 9))];
        assert_eq!(rate(&seen), Some(5e6));
    }

    #[test]
    fn a_lane_that_ends_its_work_sooner_than_a_rate_is_measured_is_at_least_as_fast_as_that() {
        assert_eq!(rate(&[(0, sample(0, 9)), (1, sample(20_000, 0))]), Some(4e6));
    }

    #[test]
    fn a_pause_slows_a_lane_once_however_long_it_is() {
        let before = [(0, sample(0, 9)), (10, sample(80_000, 9))];
        let pause = (2..50).map(|step| (step * 10, sample(80_000, 9)));
        let seen: Vec<_> = before.into_iter().chain(pause).chain([(500, sample(80_001, 9))]).collect();
        assert_eq!(rate(&seen).map(|rate| (rate / 1e6).round()), Some(6.0));
    }

    #[test]
    fn a_lane_that_never_had_enough_to_bring_is_expected_to_be_as_fast_as_the_fastest() {
        let of = |lane, sample: LaneSample| LaneSample { lane: LaneId(lane), ..sample };
        let mut arrivals = Arrivals::default();
        let begin = [of(1, sample(0, 9)), of(2, sample(0, 9)), of(3, sample(0, 0))];
        let end = [of(1, sample(50_000, 9)), of(2, sample(10_000, 0)), of(3, sample(0, 0))];
        arrivals.observe(Instant::ZERO, &begin);
        arrivals.observe(Instant::ZERO + Duration::from_millis(10), &end);
        let expected = [1, 2, 3].map(|lane| arrivals.expected(LaneId(lane)));
        assert_eq!(expected, [Some(5e6); 3]);
        assert_eq!(arrivals.bytes_per_second(LaneId(2)), Some(1e6));
    }

    #[test]
    fn a_lane_is_remembered_until_it_is_gone() {
        let mut arrivals = Arrivals::default();
        arrivals.observe(Instant::ZERO, &[sample(0, 9)]);
        arrivals.observe(Instant::ZERO, &[]);
        assert_eq!(arrivals.lanes.len(), 1);
        arrivals.forget(LANE);
        assert!(arrivals.lanes.is_empty());
    }
}
