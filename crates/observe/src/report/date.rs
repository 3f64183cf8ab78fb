//! Dates as people write them.

use std::time::Duration;

const DAYS_OF_FOUR_CENTURIES: u64 = 146_097;
const SECONDS_OF_DAY: u64 = 86_400;

/// A moment, given since the beginning of 1970 UTC, as in `2026-11-22T09:53:36Z`, with a fraction of the second if it has
/// one (RFC 3339).
#[must_use]
pub fn rfc3339(since_1970: Duration) -> String {
    let seconds = since_1970.as_secs();
    let (day_number, of_day) = (seconds / SECONDS_OF_DAY, seconds % SECONDS_OF_DAY);
    // After four centuries the calendar repeats.
    let mut year = 1970 + day_number / DAYS_OF_FOUR_CENTURIES * 400;
    let mut day = day_number % DAYS_OF_FOUR_CENTURIES;
    while day >= days_of_year(year) {
        day -= days_of_year(year);
        year += 1;
    }
    let mut month = 1;
    while day >= days_of_month(year, month) {
        day -= days_of_month(year, month);
        month += 1;
    }
    let [hour, minute, second] = [of_day / 3600, of_day / 60 % 60, of_day % 60];
    let fraction = match since_1970.subsec_nanos() {
        0 => String::new(),
        nanos => format!(".{nanos:09}").trim_end_matches('0').to_owned(),
    };
    format!("{year:04}-{month:02}-{:02}T{hour:02}:{minute:02}:{second:02}{fraction}Z", day + 1)
}

fn is_leap(year: u64) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

fn days_of_year(year: u64) -> u64 {
    if is_leap(year) { 366 } else { 365 }
}

fn days_of_month(year: u64, month: u64) -> u64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
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
