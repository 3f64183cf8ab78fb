//! Time inside the model: whole nanoseconds since the beginning.

use std::time::Duration;

/// Later than everything.
pub(crate) const NEVER: u64 = u64::MAX;

/// Saturates after 584 years, just before [`NEVER`].
pub(crate) fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(NEVER).min(NEVER - 1)
}

/// The whole part of a number that a distribution gave; 0 if it is negative.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the conversion saturates, and is the same on every machine"
)]
pub(crate) fn whole(number: f64) -> u64 {
    number as u64
}
