//! The clock of a copy.

use crate::rate::{Rate, Schedule};
use block::Timer;
use std::time::Duration;

/// A timer that also knows the time of day.
pub trait Clock: Timer {
    /// Local time since midnight.
    fn time_of_day(&self) -> Duration;
}

/// The bandwidth limit at this moment.
pub(crate) fn rate_now(limit: Option<&Schedule>, clock: &dyn Clock) -> Rate {
    limit.and_then(|limit| limit.rate_at(clock.time_of_day()))
}
