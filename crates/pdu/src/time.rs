//! Time that a simulator can control.

use core::ops::{Add, AddAssign};
pub use core::time::Duration;

/// A point in time, in nanoseconds since an origin that only the driver knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Instant(pub u64);

impl Instant {
    /// The origin, which is the earliest instant.
    pub const ZERO: Self = Self(0);

    /// The time from `earlier` to this instant; zero if `earlier` is not before it.
    #[must_use]
    pub const fn saturating_duration_since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

/// A duration in whole nanoseconds; one of more than the 584 years that fit is as long as those.
#[must_use]
pub fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

impl Add<Duration> for Instant {
    type Output = Self;

    /// Saturates: a deadline beyond the 584 years that fit becomes the last instant.
    fn add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(nanoseconds(duration)))
    }
}

impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, duration: Duration) {
        *self = *self + duration;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_leads_from_one_instant_to_the_other() {
        let later = Instant(5) + Duration::from_nanos(7);
        assert_eq!(later, Instant(12));
        assert_eq!(later.saturating_duration_since(Instant(5)), Duration::from_nanos(7));
    }

    #[test]
    fn time_saturates_at_both_ends() {
        assert_eq!(Instant(1) + Duration::MAX, Instant(u64::MAX));
        assert_eq!(Instant::ZERO.saturating_duration_since(Instant(3)), Duration::ZERO);
    }
}
