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
}

impl Rest {
    pub const NONE: Self = Self { until: Instant::ZERO, pause: REST_MIN };

    pub fn lengthen(&mut self, now: Instant) {
        *self = Self { until: now + self.pause, pause: (self.pause * 2).min(REST_MAX) };
    }

    /// The longest pause there is.
    pub fn longest(now: Instant) -> Self {
        Self { until: now + REST_MAX, pause: REST_MAX }
    }

    /// The last trial in this direction has failed.
    pub fn has_failed(self) -> bool {
        self.pause > REST_MIN
    }

    pub fn is_over(self, now: Instant) -> bool {
        now >= self.until
    }
}
