//! What a run moved, second by second.

use lab::Sample;
use lab::workload::Direction;
use std::collections::BTreeMap;

/// The bytes that the network acknowledged in each of these times after the first request began, until the last one did; of
/// reads, those that arrived. Requests end in waves, which say less.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Curve(Vec<f64>);

/// The length of each of these times.
pub const STEP_S: f64 = 0.5;

/// A connection is looked at for the first time within this time.
const FIRST_LOOK_S: f64 = 1.0;

/// The time over which a rate is judged.
const WINDOW_S: f64 = 5.0;

impl Curve {
    /// Of those connections that are a session's.
    pub fn of(samples: &[Sample], is_of_session: impl Fn(usize) -> bool) -> Self {
        let (Some(first_ns), Some(last_ns)) = (first_request_ns(samples), begun_ns(samples).max()) else {
            return Self::default();
        };
        let seconds = |at_ns: u64| at_ns.saturating_sub(first_ns) as f64 / 1e9;
        let mut curve = Self(vec![0.0; whole(seconds(last_ns) / STEP_S)]);
        let is_read = samples.iter().any(is_read);
        let mut known = BTreeMap::<usize, (f64, u64)>::new();
        for sample in samples {
            let Sample::Socket(sample) = sample else { continue };
            if !is_of_session(sample.connection) {
                continue;
            }
            let tcp = &sample.socket.tcp;
            let moved = if is_read { tcp.bytes_received } else { tcp.bytes_acked };
            let at = seconds(sample.socket.at_ns);
            let new = ((at - FIRST_LOOK_S).max(0.0), 0);
            let (before, moved_before) = known.insert(sample.connection, (at, moved)).unwrap_or(new);
            curve.add(before, at, moved.saturating_sub(moved_before) as f64);
        }
        curve
    }

    /// Spreads bytes evenly between these times.
    fn add(&mut self, from: f64, to: f64, bytes: f64) {
        for (number, step) in self.0.iter_mut().enumerate() {
            let (begin, end) = (number as f64 * STEP_S, (number + 1) as f64 * STEP_S);
            let within = (to.min(end) - from.max(begin)).max(0.0);
            *step += if to > from { bytes * within / (to - from) } else { 0.0 };
        }
    }

    /// A rate that does not change.
    pub fn steady(bytes_per_second: f64, seconds: f64) -> Self {
        Self(vec![bytes_per_second * STEP_S; whole(seconds / STEP_S)])
    }

    /// What was moved between these times, in seconds, as a curve of its own.
    pub fn part(&self, from: f64, to: f64) -> Self {
        let steps = self.0.iter().skip(whole(from / STEP_S)).take(whole((to - from) / STEP_S));
        Self(steps.copied().collect())
    }

    pub fn seconds(&self) -> f64 {
        self.0.len() as f64 * STEP_S
    }

    /// What was moved until then.
    pub fn bytes_until(&self, seconds: f64) -> f64 {
        self.0.iter().take(whole(seconds / STEP_S)).sum()
    }

    /// The bytes per second in the second half.
    pub fn late_rate(&self) -> f64 {
        let half = &self.0[self.0.len() / 2..];
        half.iter().sum::<f64>() / (half.len().max(1) as f64 * STEP_S)
    }

    /// The start of the first window that moves this many bytes per second.
    pub fn reaches(&self, bytes_per_second: f64) -> Option<f64> {
        let wanted = bytes_per_second * WINDOW_S;
        let mut windows = self.0.windows(whole(WINDOW_S / STEP_S));
        windows.position(|window| window.iter().sum::<f64>() >= wanted).map(|step| step as f64 * STEP_S)
    }
}

/// When the first request began.
pub fn first_request_ns(samples: &[Sample]) -> Option<u64> {
    begun_ns(samples).min()
}

fn begun_ns(samples: &[Sample]) -> impl Iterator<Item = u64> {
    samples.iter().filter(|sample| matches!(sample, Sample::Request(_))).map(Sample::at_ns)
}

fn is_read(sample: &Sample) -> bool {
    matches!(sample, Sample::Request(request) if request.direction == Direction::Read)
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small positive number")]
fn whole(steps: f64) -> usize {
    steps as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(steps: &[(usize, f64)]) -> Curve {
        Curve(steps.iter().flat_map(|(count, bytes)| vec![*bytes; *count]).collect())
    }

    #[test]
    fn a_rate_is_reached_at_the_start_of_the_first_window_that_has_it() {
        let rises = curve(&[(6, 10.0), (30, 50.0)]);
        assert_eq!(rises.reaches(90.0), Some(2.5));
        assert_eq!(rises.reaches(101.0), None);
    }

    #[test]
    fn what_is_acknowledged_between_two_looks_is_spread_over_the_time_between() {
        let mut spread = curve(&[(4, 0.0)]);
        spread.add(0.25, 1.25, 100.0);
        assert_eq!(spread, curve(&[(1, 25.0), (1, 50.0), (1, 25.0), (1, 0.0)]));
    }

    #[test]
    fn a_part_begins_and_ends_at_its_times() {
        assert_eq!(curve(&[(4, 1.0), (2, 2.0), (9, 3.0)]).part(2.0, 4.0), curve(&[(2, 2.0), (2, 3.0)]));
    }

    #[test]
    fn the_late_rate_is_that_of_the_second_half() {
        assert!((curve(&[(10, 1.0), (10, 50.0)]).late_rate() - 100.0).abs() < 1e-9);
    }
}
