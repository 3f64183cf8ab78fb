//! `--bwlimit`: how many bytes per second, by the time of day. Pure: time comes in as numbers.

use std::num::NonZeroU64;
use std::str::FromStr;
use std::time::Duration;

/// Bytes per second, or no limit.
pub type Rate = Option<NonZeroU64>;

/// A limit that may change with the time of day.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// Ascending by the time since midnight; never empty. The last one also holds from midnight to the first.
    entries: Vec<(Duration, Rate)>,
}

/// A text that is not a limit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} in the limit is not {expected}: write 200M, or a schedule like \"08:00,100M 19:00,off\"")]
pub struct InvalidSchedule {
    text: String,
    expected: &'static str,
}

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

impl Schedule {
    /// The limit at this time since midnight.
    #[must_use]
    pub fn rate_at(&self, time_of_day: Duration) -> Rate {
        let begun = self.entries.iter().rev().find(|(from, _)| *from <= time_of_day);
        begun.or(self.entries.last()).and_then(|(_, rate)| *rate)
    }
}

impl FromStr for Schedule {
    type Err = InvalidSchedule;

    fn from_str(text: &str) -> Result<Self, InvalidSchedule> {
        let mut words = text.split_whitespace().peekable();
        if let Some(only) = words.next_if(|word| !word.contains(',')) {
            let surplus = words.next();
            return match surplus {
                None => Ok(Self { entries: vec![(Duration::ZERO, rate(only)?)] }),
                Some(word) => Err(invalid(word, "expected after a rate that always holds")),
            };
        }
        let mut entries = words.map(entry).collect::<Result<Vec<_>, _>>()?;
        entries.sort_by_key(|(from, _)| *from);
        match entries.windows(2).any(|pair| pair[0].0 == pair[1].0) {
            true => Err(invalid(text, "a list of different times")),
            false if entries.is_empty() => Err(invalid(text, "a rate")),
            false => Ok(Self { entries }),
        }
    }
}

fn invalid(text: &str, expected: &'static str) -> InvalidSchedule {
    InvalidSchedule { text: text.to_owned(), expected }
}

/// An entry of a schedule, such as `08:00,100M`: the time since midnight from which a limit holds.
fn entry(word: &str) -> Result<(Duration, Rate), InvalidSchedule> {
    let (time, limit) =
        word.split_once(',').ok_or_else(|| invalid(word, "a time and a rate, as in 08:00,100M"))?;
    Ok((time_of_day(time)?, rate(limit)?))
}

fn time_of_day(text: &str) -> Result<Duration, InvalidSchedule> {
    let number = |digits: &str| digits.parse::<u64>().ok().filter(|_| digits.len() == 2);
    let parsed = text.split_once(':').and_then(|(hours, minutes)| {
        Some(Duration::from_secs(
            (number(hours)? * 60 + number(minutes).filter(|minutes| *minutes < 60)?) * 60,
        ))
    });
    parsed.filter(|time| *time < DAY).ok_or_else(|| invalid(text, "a time of day, as in 08:00"))
}

/// `off`, or bytes per second with a unit in powers of 1024.
fn rate(text: &str) -> Result<Rate, InvalidSchedule> {
    if text == "off" {
        return Ok(None);
    }
    let end = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    let unit = unit.to_ascii_lowercase();
    let shift = match unit.strip_suffix("ib").unwrap_or(&unit) {
        "" if unit.is_empty() => 0,
        "k" => 10,
        "m" => 20,
        "g" => 30,
        _ => return Err(invalid(text, "a rate in bytes per second, as in 100M, or off")),
    };
    let bytes = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(1 << shift));
    let bytes = bytes.and_then(NonZeroU64::new);
    bytes.map(Some).ok_or_else(|| invalid(text, "a rate above zero, or off"))
}

/// How long unused bandwidth accumulates: long enough that a late timer costs no throughput, too short to be noticed on
/// a link.
const BURST: Duration = Duration::from_millis(50);

/// The longest wait before the limit is looked up again, because it may have changed.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// A token bucket that lends: a request is admitted as soon as there is any token, and the next one waits until the
/// debt is paid. Requests of every length pass, and the average rate holds.
#[derive(Clone, Copy, Debug, Default)]
pub struct TokenBucket {
    /// The tokens in bytes; a negative number is debt.
    tokens: i128,
    /// The time for which `tokens` holds.
    at: Duration,
}

impl TokenBucket {
    /// Admits a request of `bytes` at time `now`, under the limit `rate`.
    ///
    /// # Errors
    /// The time at which to ask again.
    pub fn admit(&mut self, now: Duration, rate: Rate, bytes: u64) -> Result<(), Duration> {
        let elapsed = now.saturating_sub(self.at);
        self.at = self.at.max(now);
        let Some(rate) = rate else {
            self.tokens = 0;
            return Ok(());
        };
        let burst = bytes_in(BURST, rate).max(1);
        self.tokens = self.tokens.saturating_add(bytes_in(elapsed, rate)).min(burst);
        if self.tokens < 0 {
            return Err(now + time_for(self.tokens.unsigned_abs(), rate).min(LOOK_AGAIN));
        }
        self.tokens -= i128::from(bytes);
        Ok(())
    }
}

const NANOSECONDS: u128 = 1_000_000_000;

fn bytes_in(time: Duration, rate: NonZeroU64) -> i128 {
    let bytes = time.as_nanos().saturating_mul(u128::from(rate.get())) / NANOSECONDS;
    i128::try_from(bytes).unwrap_or(i128::MAX)
}

/// The time in which `bytes` pass, rounded up, so that asking again then succeeds.
fn time_for(bytes: u128, rate: NonZeroU64) -> Duration {
    let nanoseconds = bytes.saturating_mul(NANOSECONDS).div_ceil(u128::from(rate.get()));
    Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedule(text: &str) -> Schedule {
        text.parse().unwrap()
    }

    fn at(hours: u64, minutes: u64) -> Duration {
        Duration::from_secs((hours * 60 + minutes) * 60)
    }

    const MIB: u64 = 1 << 20;

    #[test]
    fn a_plain_rate_holds_all_day() {
        let schedule = schedule("200M");
        assert_eq!(schedule.rate_at(at(0, 0)), NonZeroU64::new(200 * MIB));
        assert_eq!(schedule.rate_at(at(23, 59)), NonZeroU64::new(200 * MIB));
        assert_eq!(
            "64KiB".parse(),
            Ok(Schedule { entries: vec![(Duration::ZERO, NonZeroU64::new(64 << 10))] })
        );
    }

    #[test]
    fn a_schedule_wraps_around_midnight() {
        let schedule = schedule("08:00,100M 19:00,off");
        assert_eq!(schedule.rate_at(at(7, 59)), None);
        assert_eq!(schedule.rate_at(at(8, 0)), NonZeroU64::new(100 * MIB));
        assert_eq!(schedule.rate_at(at(18, 59)), NonZeroU64::new(100 * MIB));
        assert_eq!(schedule.rate_at(at(19, 0)), None);
    }

    #[test]
    fn what_is_no_limit_is_refused() {
        let wrong = [
            "",
            "fast",
            "0",
            "100X",
            "100IB",
            "24:00,1M",
            "8:00,1M",
            "08:60,1M",
            "08:00",
            "08:00,1M 08:00,2M",
            "1M 2M",
            "99999999999999999999",
            "17179869184G",
        ];
        for text in wrong {
            assert!(text.parse::<Schedule>().is_err(), "{text:?} was taken");
        }
    }

    /// Asks for `bytes` again and again until `until`; returns what was admitted.
    fn admitted(bucket: &mut TokenBucket, rate: Rate, bytes: u64, mut now: Duration, until: Duration) -> u64 {
        let mut sum = 0;
        while now < until {
            match bucket.admit(now, rate, bytes) {
                Ok(()) => sum += bytes,
                Err(again) => now = again,
            }
        }
        sum
    }

    #[test]
    fn the_average_is_the_limit_for_requests_of_every_length() {
        let rate = NonZeroU64::new(10 * MIB);
        for bytes in [4096, MIB, 16 * MIB] {
            let sum =
                admitted(&mut TokenBucket::default(), rate, bytes, Duration::ZERO, Duration::from_secs(100));
            assert!(sum.abs_diff(1000 * MIB) <= MIB + bytes, "{sum} of {bytes} each");
        }
    }

    #[test]
    fn idling_saves_up_next_to_nothing() {
        let mut bucket = TokenBucket::default();
        let hour = Duration::from_secs(3600);
        let sum = admitted(&mut bucket, NonZeroU64::new(MIB), 4096, hour, hour + Duration::from_secs(1));
        assert!(sum <= MIB + MIB / 10, "{sum}");
    }

    #[test]
    fn a_long_wait_is_cut_so_that_a_new_limit_is_noticed() {
        let mut bucket = TokenBucket::default();
        assert_eq!(bucket.admit(Duration::ZERO, NonZeroU64::new(1), MIB), Ok(()));
        assert_eq!(bucket.admit(Duration::ZERO, NonZeroU64::new(1), MIB), Err(LOOK_AGAIN));
        assert_eq!(bucket.admit(LOOK_AGAIN, None, MIB), Ok(()));
    }
}
