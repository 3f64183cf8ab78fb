//! Sizes, rates and durations in the forms that people read and write.

use lab::netem::Span;
use std::time::Duration;
pub(crate) use target::ByteSize;

/// Parses the length of a request and checks it against the longest that a command can carry.
pub(crate) fn request_size(text: &str) -> Result<u64, String> {
    let size: ByteSize = text.parse().map_err(|error: target::InvalidByteSize| error.to_string())?;
    let longest = block::BUFFER_BYTES_MAX as u64;
    match size.0 {
        512.. if size.0 <= longest && size.0.is_multiple_of(512) => Ok(size.0),
        _ => Err(format!("a request is a multiple of 512 bytes, from 512 to {}", ByteSize(longest))),
    }
}

/// The length of a source, which is not empty.
pub(crate) fn source_size(text: &str) -> Result<u64, String> {
    let size: ByteSize = text.parse().map_err(|error: target::InvalidByteSize| error.to_string())?;
    Some(size.0).filter(|bytes| *bytes > 0).ok_or_else(|| "a source has at least one byte".to_owned())
}

/// `30s`, `5m`, `1h`; a plain number means seconds.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let invalid = || format!("{text:?} is not a duration, as in 30s, 5m or 1h");
    let end = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    let seconds = match unit {
        "" | "s" => 1,
        "m" => 60,
        "h" => 60 * 60,
        _ => return Err(invalid()),
    };
    let number: u64 = digits.parse().map_err(|_| invalid())?;
    let duration = number.checked_mul(seconds).filter(|seconds| *seconds > 0);
    duration.map(Duration::from_secs).ok_or_else(invalid)
}

/// Parses `250ms`, `1.5s`, `2m`: a time since a start, which may be zero.
pub(crate) fn moment(text: &str) -> Result<Duration, String> {
    let moment = text.parse().map(|Span(moment)| moment);
    let invalid = |_| format!("{text:?} is not a time, as in 250ms, 1.5s or 2m");
    moment.or_else(|_| duration(text)).map_err(invalid)
}

/// Formats about three digits: `1.46 GiB`.
pub(crate) fn bytes(bytes: u64) -> String {
    indicatif::HumanBytes(bytes).to_string()
}

/// Formats `0.07 s`, `12.3 s`, `3 min 20 s`, `2 h 5 min`.
pub(crate) fn time(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..10 => format!("{:.2} s", time.as_secs_f64()),
        10..60 => format!("{:.1} s", time.as_secs_f64()),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
    }
}

/// Formats `1 session`, `2 sessions`.
pub(crate) fn count(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

/// Bytes per second; zero if no time has passed.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a rate fits, and is never negative"
)]
pub(crate) fn rate(bytes: u64, time: Duration) -> u64 {
    if time.is_zero() { 0 } else { (bytes as f64 / time.as_secs_f64()) as u64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_units() {
        assert_eq!(duration("30s"), Ok(Duration::from_secs(30)));
        assert_eq!(duration("2m"), Ok(Duration::from_secs(120)));
        assert_eq!(duration("7"), Ok(Duration::from_secs(7)));
        for wrong in ["", "s", "0s", "1d", "-1s", "1.5s", "99999999999999999999h"] {
            assert!(duration(wrong).is_err(), "{wrong:?} was taken");
        }
    }

    #[test]
    fn a_moment_may_be_any_part_of_a_second() {
        for (text, milliseconds) in [("0s", 0), ("250ms", 250), ("1.5s", 1500), ("2m", 120_000), ("3", 3000)]
        {
            assert_eq!(moment(text), Ok(Duration::from_millis(milliseconds)));
        }
        for wrong in ["", "ms", "-1s", "1.5m", "soon"] {
            assert!(moment(wrong).is_err(), "{wrong:?} was taken");
        }
    }

    #[test]
    fn times_have_three_digits_or_so() {
        let shown = [(0.0712, "0.07 s"), (12.34, "12.3 s"), (200.0, "3 min 20 s"), (7500.0, "2 h 5 min")];
        for (seconds, text) in shown {
            assert_eq!(time(Duration::from_secs_f64(seconds)), text);
        }
    }

    #[test]
    fn a_request_is_whole_sectors_that_fit_a_buffer() {
        assert_eq!(request_size("1M"), Ok(1 << 20));
        for wrong in ["0", "100", "513", "1G", "x"] {
            assert!(request_size(wrong).is_err(), "{wrong:?} was taken");
        }
    }
}
