//! Real time in the core's units.

use pdu::Instant;

/// Converts the machine's monotonic clock to the core's [`Instant`], counted from the clock's creation.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    origin: std::time::Instant,
}

impl Clock {
    /// A clock whose [`Instant::ZERO`] is now.
    #[must_use]
    pub fn start() -> Self {
        Self { origin: std::time::Instant::now() }
    }

    /// The current time.
    #[must_use]
    pub fn now(&self) -> Instant {
        Instant::ZERO + self.origin.elapsed()
    }

    /// The time of `instant` on the machine's clock.
    #[must_use]
    pub fn to_std(&self, instant: Instant) -> std::time::Instant {
        self.origin + instant.saturating_duration_since(Instant::ZERO)
    }
}
