//! Rates, times, queue lengths and probabilities as people write them: a number and its unit.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::num::NonZeroU64;
use std::str::FromStr;
use std::time::Duration;

/// A text that is not the quantity that was expected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{text}\" is not {expected}")]
pub struct InvalidQuantity {
    text: String,
    expected: &'static str,
}

impl InvalidQuantity {
    fn new(text: &str, expected: &'static str) -> Self {
        Self { text: text.to_owned(), expected }
    }
}

/// Bits per second, with everything that [`LinkModel::framing`](crate::LinkModel::framing) adds to a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Rate(NonZeroU64);

/// A length of time, or a moment as the time since the beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Span(pub Duration);

/// A number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Bytes(pub u64);

/// The size of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum QueueSize {
    /// A number of bytes.
    Bytes(Bytes),
    /// A multiple of the bandwidth-delay product: the bytes that pass at the rate in a round trip without queues.
    Bdp(f64),
}

/// A probability from 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Probability(f64);

/// Names of units and the value of each in the smallest unit, ascending. A quantity is shown in the last unit that
/// divides it.
type Units = [(&'static str, u64)];

const RATES: &Units = &[("bit", 1), ("kbit", 1_000), ("Mbit", 1_000_000), ("Gbit", 1_000_000_000)];
const SPANS: &Units = &[("ns", 1), ("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000)];
const BYTES: &Units = &[("B", 1), ("kB", 1_000), ("MB", 1_000_000), ("GB", 1_000_000_000)];
const BINARY_BYTES: &Units = &[("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30)];

impl Rate {
    /// The highest rate. Beyond it, the time of a small packet is hardly a nanosecond.
    pub const MAX: Self = Self(NonZeroU64::new(1_000_000_000_000).expect("not zero"));

    /// A rate in bits per second, limited to the range from one to [`Self::MAX`].
    #[must_use]
    pub fn bits_per_second(bits: u64) -> Self {
        Self(NonZeroU64::new(bits).unwrap_or(NonZeroU64::MIN)).min(Self::MAX)
    }

    /// A rate in millions of bits per second, with the same limits.
    #[must_use]
    pub fn megabits_per_second(megabits: u64) -> Self {
        Self::bits_per_second(megabits.saturating_mul(1_000_000))
    }

    /// In bits per second.
    #[must_use]
    pub fn bits(self) -> NonZeroU64 {
        self.0
    }

    /// The time that `bytes` take, in whole nanoseconds.
    pub(crate) fn time_ns(self, bytes: u64) -> u64 {
        let nanoseconds = u128::from(bytes) * 8_000_000_000 / u128::from(self.0.get());
        u64::try_from(nanoseconds).unwrap_or(u64::MAX)
    }

    /// The bytes that pass in `time`.
    pub(crate) fn bytes_in(self, time: Duration) -> u64 {
        let bytes = time.as_nanos().saturating_mul(u128::from(self.0.get())) / 8_000_000_000;
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }
}

impl Probability {
    /// The event never happens.
    pub const ZERO: Self = Self(0.0);

    /// `None` unless `fraction` is between 0 and 1.
    #[must_use]
    pub fn new(fraction: f64) -> Option<Self> {
        (0.0..=1.0).contains(&fraction).then_some(Self(fraction))
    }

    /// 0 to 1.
    #[must_use]
    pub fn fraction(self) -> f64 {
        self.0
    }
}

impl FromStr for Rate {
    type Err = InvalidQuantity;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bits = quantity(text, RATES).filter(|bits| (1..=Self::MAX.0.get()).contains(bits));
        let expected =
            "a rate above zero, up to 1000Gbit: write a number and bit, kbit, Mbit or Gbit, as in 144Mbit";
        bits.map(Self::bits_per_second).ok_or_else(|| InvalidQuantity::new(text, expected))
    }
}

impl FromStr for Span {
    type Err = InvalidQuantity;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let expected = "a time: write a number and ns, us, ms or s, as in 20ms";
        let nanoseconds = quantity(text, SPANS).ok_or_else(|| InvalidQuantity::new(text, expected))?;
        Ok(Self(Duration::from_nanos(nanoseconds)))
    }
}

impl FromStr for Bytes {
    type Err = InvalidQuantity;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let expected =
            "a number of bytes: write a number and B, kB, MB or GB (powers of 1000), or KiB, MiB or GiB";
        let bytes = quantity(text, BYTES).or_else(|| quantity(text, BINARY_BYTES));
        bytes.map(Self).ok_or_else(|| InvalidQuantity::new(text, expected))
    }
}

impl FromStr for QueueSize {
    type Err = InvalidQuantity;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let expected = "the size of a queue: write bytes, as in 720kB, or a multiple of the bandwidth-delay product, \
                        as in 1.0bdp";
        let size = match text.strip_suffix("bdp") {
            Some(number) => number.parse().ok().filter(is_factor).map(Self::Bdp),
            None => text.parse().ok().map(Self::Bytes),
        };
        size.ok_or_else(|| InvalidQuantity::new(text, expected))
    }
}

impl FromStr for Probability {
    type Err = InvalidQuantity;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let expected = "a probability: write a percentage, as in 0.1%, or a number from 0 to 1";
        let fraction = match text.strip_suffix('%') {
            Some(percent) => percent.parse::<f64>().ok().map(|percent| percent / 100.0),
            None => text.parse().ok(),
        };
        fraction.and_then(Self::new).ok_or_else(|| InvalidQuantity::new(text, expected))
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_quantity(formatter, u128::from(self.0.get()), RATES)
    }
}

impl fmt::Display for Span {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_quantity(formatter, self.0.as_nanos(), SPANS)
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_quantity(formatter, u128::from(self.0), BYTES)
    }
}

impl fmt::Display for QueueSize {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(bytes) => bytes.fmt(formatter),
            Self::Bdp(factor) => write!(formatter, "{factor}bdp"),
        }
    }
}

impl fmt::Display for Probability {
    /// Shows a fraction, which parses back to the same number.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// Whether a queue can be this multiple: neither zero nor larger than any memory.
pub(crate) fn is_factor(factor: &f64) -> bool {
    *factor > 0.0 && *factor < 1e6
}

/// Lets serde read and write a quantity as its text.
macro_rules! as_text {
    ($($quantity:ty),*) => {$(
        impl TryFrom<String> for $quantity {
            type Error = InvalidQuantity;

            fn try_from(text: String) -> Result<Self, Self::Error> {
                text.parse()
            }
        }

        impl From<$quantity> for String {
            fn from(quantity: $quantity) -> Self {
                quantity.to_string()
            }
        }
    )*};
}

as_text!(Rate, Span, Bytes, QueueSize, Probability);

/// The number in `text` times the value of its unit; `None` if that is not a whole number of the smallest unit.
fn quantity(text: &str, units: &Units) -> Option<u64> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, unit) = text.split_at(end);
    let (_, worth) = units.iter().find(|(name, _)| *name == unit.trim_start())?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let parts = 10_u64.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    let below_one = u128::from(fraction.parse::<u64>().ok()?) * u128::from(*worth);
    let below_one = below_one.is_multiple_of(parts.into()).then_some(below_one / u128::from(parts))?;
    whole.parse::<u64>().ok()?.checked_mul(*worth)?.checked_add(below_one.try_into().ok()?)
}

fn write_quantity(formatter: &mut fmt::Formatter<'_>, value: u128, units: &Units) -> fmt::Result {
    let divides = |worth: u64| worth == 1 || (value > 0 && value.is_multiple_of(worth.into()));
    let unit = units.iter().rev().find(|(_, worth)| divides(*worth));
    let (name, worth) = unit.unwrap_or(&units[0]);
    write!(formatter, "{}{name}", value / u128::from(*worth))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_read_as_people_write_them() {
        assert_eq!("144Mbit".parse(), Ok(Rate::megabits_per_second(144)));
        assert_eq!("1.5 Gbit".parse(), Ok(Rate::megabits_per_second(1500)));
        assert_eq!("20ms".parse(), Ok(Span(Duration::from_millis(20))));
        assert_eq!("0.25us".parse(), Ok(Span(Duration::from_nanos(250))));
        assert_eq!("720kB".parse(), Ok(QueueSize::Bytes(Bytes(720_000))));
        assert_eq!("64KiB".parse(), Ok(Bytes(65536)));
        assert_eq!("1.0bdp".parse(), Ok(QueueSize::Bdp(1.0)));
        assert_eq!("0.1%".parse(), Ok(Probability(0.001)));
        assert_eq!("0.027".parse(), Ok(Probability(0.027)));
    }

    #[test]
    fn what_is_no_quantity_is_refused_with_what_is_expected() {
        for text in [
            "",
            "144",
            "Mbit",
            "-1Mbit",
            "0Mbit",
            "144MB",
            "1.2.3Mbit",
            ".5Mbit",
            "1.Mbit",
            "0.5bit",
            "2000Gbit",
        ] {
            let refusal = text.parse::<Rate>().unwrap_err().to_string();
            assert!(refusal.starts_with(&format!("\"{text}\" is not a rate")), "{refusal}");
        }
        for text in ["20", "-1ms", "0.5ns", "1e3s", "99999999999999s", "1h"] {
            assert!(text.parse::<Span>().is_err(), "{text}");
        }
        for text in ["0bdp", "-1bdp", "NaNbdp", "infbdp", "bdp", "1", "1K"] {
            assert!(text.parse::<QueueSize>().is_err(), "{text}");
        }
        for text in ["101%", "-0.1%", "1.1", "NaN", "%", "often"] {
            assert!(text.parse::<Probability>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_quantity_shows_in_its_largest_whole_unit() {
        assert_eq!(Rate::megabits_per_second(144).to_string(), "144Mbit");
        assert_eq!(Rate::megabits_per_second(2000).to_string(), "2Gbit");
        assert_eq!(Span(Duration::from_micros(1500)).to_string(), "1500us");
        assert_eq!(Span::default().to_string(), "0ns");
        assert_eq!(Bytes(65536).to_string(), "65536B");
    }

    proptest::proptest! {
        #[test]
        fn what_is_shown_reads_back(number in 1_u64..1_000_000_000_000, fraction in 0.0_f64..=1.0) {
            let rate = Rate::bits_per_second(number);
            proptest::prop_assert_eq!(rate.to_string().parse(), Ok(rate));
            let span = Span(Duration::from_nanos(number));
            proptest::prop_assert_eq!(span.to_string().parse(), Ok(span));
            let probability = Probability(fraction);
            proptest::prop_assert_eq!(probability.to_string().parse(), Ok(probability));
            let queue = QueueSize::Bdp(fraction + 0.1);
            proptest::prop_assert_eq!(queue.to_string().parse(), Ok(queue));
        }
    }
}
