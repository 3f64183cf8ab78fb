//! Units, and numbers for people.

use serde::{Deserialize, Serialize};

/// The unit of a number. Numbers are given in its base.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// None, or the label names it.
    #[default]
    None,
    /// Seconds; shown from nanoseconds up.
    Seconds,
    /// Bytes; shown in powers of 1024.
    Bytes,
    /// Bytes per second; shown in powers of 1024.
    BytesPerSecond,
    /// Bits per second; shown in powers of 1000.
    BitsPerSecond,
    /// A part of a whole, from 0 to 1; shown as percent.
    Share,
    /// Any other, shown without conversion: `packets`.
    Named(String),
}

/// The scale of the numbers of one axis or column.
#[derive(Clone, Debug, PartialEq)]
pub struct Scale {
    /// One shown unit, in the base of the unit.
    pub factor: f64,
    /// The symbol of the shown unit, such as `ms`; empty for a plain number.
    pub symbol: String,
}

const SECONDS: &[(f64, &str)] = &[(1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")];
const BITS_PER_SECOND: &[(f64, &str)] = &[(1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"), (1.0, "bit/s")];
const BYTES: &[(f64, &str)] = &[
    (1_099_511_627_776.0, "TiB"),
    (1_073_741_824.0, "GiB"),
    (1_048_576.0, "MiB"),
    (1024.0, "KiB"),
    (1.0, "bytes"),
];
const BYTES_PER_SECOND: &[(f64, &str)] =
    &[(1_073_741_824.0, "GiB/s"), (1_048_576.0, "MiB/s"), (1024.0, "KiB/s"), (1.0, "B/s")];

impl Unit {
    /// A unit of another kind.
    pub fn named(symbol: impl Into<String>) -> Self {
        Self::Named(symbol.into())
    }

    /// The scale for numbers up to `largest`.
    #[must_use]
    pub fn scale(&self, largest: f64) -> Scale {
        let prefixes = match self {
            Self::None => &[(1.0, "")],
            Self::Seconds => SECONDS,
            Self::Bytes => BYTES,
            Self::BytesPerSecond => BYTES_PER_SECOND,
            Self::BitsPerSecond => BITS_PER_SECOND,
            Self::Share => &[(0.01, "%")],
            Self::Named(symbol) => return Scale { factor: 1.0, symbol: symbol.clone() },
        };
        let fits = |(factor, _): &&(f64, &str)| largest.abs() >= *factor;
        // Zero is zero of the base.
        let base = || prefixes.iter().find(|(factor, _)| *factor == 1.0);
        let smallest = || if largest == 0.0 { base() } else { None }.or(prefixes.last());
        let (factor, symbol) = *prefixes.iter().find(fits).or_else(smallest).unwrap_or(&(1.0, ""));
        Scale { factor, symbol: symbol.to_owned() }
    }

    /// A number with its unit: `12.3 ms`.
    #[must_use]
    pub fn format(&self, value: f64) -> String {
        let scale = self.scale(value);
        let digits = number(value / scale.factor);
        if scale.symbol.is_empty() { digits } else { format!("{digits} {}", scale.symbol) }
    }
}

impl Scale {
    /// A label with the unit, for an axis: `round trip [ms]`.
    #[must_use]
    pub fn label(&self, label: &str) -> String {
        match (label, self.symbol.as_str()) {
            (_, "") => label.to_owned(),
            ("", symbol) => format!("[{symbol}]"),
            (_, symbol) => format!("{label} [{symbol}]"),
        }
    }

    /// A number without the unit, for use under such a label; `value` is in the base.
    #[must_use]
    pub fn digits(&self, value: f64) -> String {
        number(value / self.factor)
    }
}

/// A number with four significant digits, without trailing zeroes.
pub(crate) fn number(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return if value == 0.0 { "0".to_owned() } else { "–".to_owned() };
    }
    let magnitude = value.abs().log10().floor();
    if !(-4.0..9.0).contains(&magnitude) {
        return format!("{value:.3e}");
    }
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and 7")]
    let decimals = (3.0 - magnitude).max(0.0) as usize;
    let text = format!("{value:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_shown_with_the_prefix_that_fits_it() {
        for (unit, value, text) in [
            (Unit::Seconds, 0.0123, "12.3 ms"),
            (Unit::Seconds, 90.0, "90 s"),
            (Unit::Seconds, 0.0, "0 s"),
            (Unit::Bytes, 4_194_304.0, "4 MiB"),
            (Unit::BitsPerSecond, 941e6, "941 Mbit/s"),
            (Unit::BytesPerSecond, 512.0, "512 B/s"),
            (Unit::Share, 0.027, "2.7 %"),
            (Unit::named("packets"), 1300.0, "1300 packets"),
            (Unit::None, 0.333_333, "0.3333"),
        ] {
            assert_eq!(unit.format(value), text);
        }
    }

    #[test]
    fn numbers_without_a_prefix_to_fit_are_shown_with_exponents() {
        assert_eq!(number(1.5e12), "1.500e12");
        assert_eq!(number(-0.000_01), "-1.000e-5");
        assert_eq!(number(f64::NAN), "–");
    }
}
