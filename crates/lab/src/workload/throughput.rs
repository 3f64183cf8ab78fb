//! Throughput over time, in a bounded number of points for any length of a run.

use super::request::{Direction, RequestSample};
use serde::{Deserialize, Serialize};

/// More points would be indistinguishable. An even number: pairs merge when the time between points doubles.
const POINTS_MAX: usize = 2048;

const INTERVAL_NS_MIN: u64 = 10_000_000;

/// Points of equal length, from the start of the run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Throughput {
    /// The start of the first point.
    pub begun_ns: u64,
    /// The length of each.
    pub interval_ns: u64,
    /// The points, in order of time.
    pub points: Vec<ThroughputPoint>,
}

/// The requests that ended in an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThroughputPoint {
    /// Requests that ended in the interval.
    pub requests: u64,
    /// Bytes that were read.
    pub read_bytes: u64,
    /// Bytes that were written.
    pub written_bytes: u64,
}

impl Throughput {
    /// The throughput of a run that starts now, on the clock of [`monotonic_ns`](crate::monotonic_ns).
    #[must_use]
    pub fn from(begun_ns: u64) -> Self {
        Self { begun_ns, interval_ns: INTERVAL_NS_MIN, points: Vec::new() }
    }

    /// Counts a request at its end.
    pub fn add(&mut self, sample: &RequestSample) {
        let since_ns = sample.ended_ns.saturating_sub(self.begun_ns);
        while since_ns / self.interval_ns >= POINTS_MAX as u64 {
            self.widen();
        }
        let index = usize::try_from(since_ns / self.interval_ns).unwrap_or(POINTS_MAX - 1);
        if self.points.len() <= index {
            self.points.resize(index + 1, ThroughputPoint::default());
        }
        let (read_bytes, written_bytes) = match sample.direction {
            Direction::Read => (sample.bytes.into(), 0),
            Direction::Write => (0, sample.bytes.into()),
        };
        self.points[index].join(&ThroughputPoint { requests: 1, read_bytes, written_bytes });
    }

    /// All points together.
    #[must_use]
    pub fn total(&self) -> ThroughputPoint {
        let mut total = ThroughputPoint::default();
        self.points.iter().for_each(|point| total.join(point));
        total
    }

    fn widen(&mut self) {
        self.interval_ns = self.interval_ns.saturating_mul(2);
        let pairs = self.points.chunks(2).map(|pair| {
            let mut joined = pair[0];
            pair[1..].iter().for_each(|later| joined.join(later));
            joined
        });
        self.points = pairs.collect();
    }
}

impl ThroughputPoint {
    fn join(&mut self, other: &Self) {
        self.requests += other.requests;
        self.read_bytes += other.read_bytes;
        self.written_bytes += other.written_bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_run_has_longer_intervals_and_loses_nothing() {
        let mut throughput = Throughput::from(1_000);
        for second in 0..1000 {
            let direction = if second % 2 == 0 { Direction::Read } else { Direction::Write };
            let ended_ns = 1_000 + second * 1_000_000_000;
            let sample =
                RequestSample { begun_ns: 0, ended_ns, direction, lba: 0, bytes: 512, connection: None };
            throughput.add(&sample);
        }
        assert!(throughput.points.len() <= POINTS_MAX);
        let total = throughput.total();
        assert_eq!((total.requests, total.read_bytes, total.written_bytes), (1000, 256_000, 256_000));
    }
}
