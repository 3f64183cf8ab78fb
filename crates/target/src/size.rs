//! Byte counts as people write them.

use serde::Deserialize;
use std::fmt;
use std::str::FromStr;

/// A number of bytes: `4096`, `4K`, `1M`, `16GiB`. The units are powers of 1024.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "Written")]
pub struct ByteSize(pub u64);

/// A text that is not a byte count.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{0}\" is not a size: write bytes, or a number with K, M, G or T (also KiB, MiB, GiB, TiB)")]
pub struct InvalidByteSize(String);

/// Unit letters and their powers of 1024.
const UNITS: [(&str, u32); 5] = [("", 0), ("k", 1), ("m", 2), ("g", 3), ("t", 4)];

impl FromStr for ByteSize {
    type Err = InvalidByteSize;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let invalid = || InvalidByteSize(text.to_owned());
        let digits_end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (digits, suffix) = text.split_at(digits_end);
        let number: u64 = digits.parse().map_err(|_| invalid())?;
        let suffix = suffix.trim_start().to_ascii_lowercase();
        let unit = suffix.strip_suffix("ib").filter(|unit| !unit.is_empty()).unwrap_or(&suffix);
        let (_, power) = UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(invalid)?;
        number.checked_mul(1 << (10 * power)).map(Self).ok_or_else(invalid)
    }
}

impl fmt::Display for ByteSize {
    /// In the largest unit that needs no fraction.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = ["", "KiB", "MiB", "GiB", "TiB"];
        let power =
            (0..names.len()).rev().find(|power| self.0.is_multiple_of(1 << (10 * power))).unwrap_or(0);
        let power = if self.0 == 0 { 0 } else { power };
        write!(formatter, "{}{}", self.0 >> (10 * power), names[power])
    }
}

/// A configuration file may write it as a number or as text.
#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    Bytes(u64),
    Text(String),
}

impl TryFrom<Written> for ByteSize {
    type Error = InvalidByteSize;

    fn try_from(written: Written) -> Result<Self, Self::Error> {
        match written {
            Written::Bytes(bytes) => Ok(Self(bytes)),
            Written::Text(text) => text.parse(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_read_as_people_write_them() {
        let bytes = |text: &str| text.parse::<ByteSize>().map(|size| size.0);
        assert_eq!(bytes("4096"), Ok(4096));
        assert_eq!(bytes("4K"), Ok(4096));
        assert_eq!(bytes("1m"), Ok(1 << 20));
        assert_eq!(bytes("16GiB"), Ok(16 << 30));
        assert_eq!(bytes("2 TiB"), Ok(2 << 40));
    }

    #[test]
    fn what_is_no_size_is_refused() {
        for text in ["", "G", "-1", "1.5G", "1GB", "1iB", "99999999999T", "1X"] {
            assert!(text.parse::<ByteSize>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_size_shows_in_its_largest_whole_unit() {
        assert_eq!(ByteSize(16 << 30).to_string(), "16GiB");
        assert_eq!(ByteSize(4096).to_string(), "4KiB");
        assert_eq!(ByteSize(4097).to_string(), "4097");
        assert_eq!(ByteSize(0).to_string(), "0");
    }
}
