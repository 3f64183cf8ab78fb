//! Pauses before trials.

use pdu::{Duration, Instant};

/// The pause after the first trial in a row that has failed; and the longest one.
const REST_MIN: Duration = Duration::from_secs(10);
const REST_MAX: Duration = Duration::from_secs(300);

/// A pause between trials in one direction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rest {
    until: Instant,
    pause: Duration,
    /// The last trial in this direction has failed.
    pub has_failed: bool,
}

impl Rest {
    pub const NONE: Self = Self { until: Instant::ZERO, pause: REST_MIN, has_failed: false };

    /// The next pause, after a trial that has failed.
    pub fn lengthen(&mut self, now: Instant) {
        self.postpone(now);
        self.has_failed = true;
    }

    /// The next pause, after a trial that has shown nothing.
    pub fn postpone(&mut self, now: Instant) {
        (self.until, self.pause) = (now + self.pause, (self.pause * 2).min(REST_MAX));
    }

    /// The longest pause there is.
    pub fn longest(now: Instant) -> Self {
        Self { until: now + REST_MAX, pause: REST_MAX, has_failed: true }
    }

    pub fn is_over(self, now: Instant) -> bool {
        now >= self.until
    }
}
