//! Dates for people.

use jiff::Timestamp;
use std::time::Duration;

/// A moment since the beginning of 1970 UTC, as in `2026-11-22T09:53:36Z`, with any fraction of the second (RFC 3339).
/// Saturates at the end of the year 9999.
#[must_use]
pub fn rfc3339(since_1970: Duration) -> String {
    let seconds = i64::try_from(since_1970.as_secs()).unwrap_or(i64::MAX);
    let nanoseconds = i32::try_from(since_1970.subsec_nanos()).unwrap_or(0);
    Timestamp::new(seconds, nanoseconds).unwrap_or(Timestamp::MAX).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_told_by_the_calendar() {
        for (seconds, expected) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_795_341_010, "2026-11-22T09:50:10Z"),
            (4_107_542_399, "2100-02-28T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(rfc3339(Duration::from_secs(seconds)), expected);
        }
    }

    #[test]
    fn a_fraction_of_a_second_is_told_as_far_as_it_goes() {
        assert_eq!(rfc3339(Duration::from_millis(1_250)), "1970-01-01T00:00:01.25Z");
    }

    #[test]
    fn any_moment_has_a_date() {
        assert!(rfc3339(Duration::MAX).ends_with(".999999999Z"));
    }
}
