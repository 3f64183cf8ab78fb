//! What was measured.

use hdrhistogram::Histogram;
use lab::workload::RequestSample;
use std::time::Duration;
use tokio::time::Instant;

/// The longest latency told apart; longer ones count as this.
const LATENCY_US_MAX: u64 = 10 * 60 * 1_000_000;

/// Requests that ended, their bytes and latencies.
pub(super) struct Measurement {
    begun: Instant,
    ended: Option<Instant>,
    bytes: u64,
    latencies: Histogram<u64>,
    last: (Instant, u64),
}

/// What happened since the last question.
pub(super) struct Interval {
    /// Its end, since the beginning.
    pub(super) at: Duration,
    pub(super) length: Duration,
    pub(super) bytes: u64,
    pub(super) new_bytes: u64,
}

impl Measurement {
    pub(super) fn begin() -> anyhow::Result<Self> {
        let begun = Instant::now();
        // Three digits tell 99.9 % apart from all.
        let latencies = Histogram::new_with_bounds(1, LATENCY_US_MAX, 3)?;
        Ok(Self { begun, ended: None, bytes: 0, latencies, last: (begun, 0) })
    }

    pub(super) fn add(&mut self, ended: &RequestSample) {
        self.bytes += u64::from(ended.bytes);
        self.latencies.saturating_record((ended.ended_ns - ended.begun_ns) / 1000);
    }

    pub(super) fn end(&mut self) {
        self.ended = Some(Instant::now());
    }

    pub(super) fn interval(&mut self) -> Interval {
        let now = Instant::now();
        let (then, bytes_then) = std::mem::replace(&mut self.last, (now, self.bytes));
        Interval {
            at: now - self.begun,
            length: now - then,
            bytes: self.bytes,
            new_bytes: self.bytes - bytes_then,
        }
    }

    pub(super) fn time(&self) -> Duration {
        self.ended.unwrap_or_else(Instant::now) - self.begun
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn requests(&self) -> u64 {
        self.latencies.len()
    }

    /// By stable names, ascending, in microseconds.
    pub(super) fn latencies_us(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let at = |percent| self.latencies.value_at_percentile(percent);
        [
            ("min", self.latencies.min()),
            ("p50", at(50.0)),
            ("p90", at(90.0)),
            ("p99", at(99.0)),
            ("p99_9", at(99.9)),
            ("max", self.latencies.max()),
        ]
        .into_iter()
    }
}
