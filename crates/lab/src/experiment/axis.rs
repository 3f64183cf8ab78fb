//! The positions of a variable's values on an axis.

use netem::{Bytes, Probability, Rate, Span};
use observe::report::Unit;

/// Parses a text with a unit to the unit's base.
type Reader = fn(&str) -> Option<f64>;

const READERS: &[(Unit, Reader)] = &[
    (Unit::None, |text| text.parse().ok()),
    (Unit::Seconds, |text| Some(text.parse::<Span>().ok()?.0.as_secs_f64())),
    (Unit::BitsPerSecond, |text| Some(text.parse::<Rate>().ok()?.bits().get() as f64)),
    (Unit::Bytes, |text| Some(text.parse::<Bytes>().ok()?.0 as f64)),
    (Unit::Share, |text| Some(text.parse::<Probability>().ok()?.fraction())),
];

/// The positions of these texts, in the base of the axis' unit. They must all be of one kind.
///
/// # Errors
/// The defect, in words.
pub(crate) fn positions(texts: &[&str]) -> Result<(Vec<f64>, Unit), String> {
    let read = |(unit, reader): &(Unit, Reader)| {
        Some((texts.iter().copied().map(reader).collect::<Option<_>>()?, unit.clone()))
    };
    READERS.iter().find_map(read).ok_or_else(|| {
        format!(
            "{} cannot be put on one axis: write numbers, all of them with the same kind of unit",
            texts.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_lie_where_their_numbers_are() {
        assert_eq!(positions(&["0ms", "500us", "2s"]), Ok((vec![0.0, 0.0005, 2.0], Unit::Seconds)));
        assert_eq!(positions(&["100Mbit", "1Gbit"]), Ok((vec![1e8, 1e9], Unit::BitsPerSecond)));
        assert_eq!(positions(&["512KiB", "4MiB"]), Ok((vec![524_288.0, 4_194_304.0], Unit::Bytes)));
        assert_eq!(positions(&["0.1%", "1%"]), Ok((vec![0.001, 0.01], Unit::Share)));
        assert_eq!(positions(&["1500", "9000"]), Ok((vec![1500.0, 9000.0], Unit::None)));
    }

    #[test]
    fn names_and_mixed_units_have_no_place() {
        assert!(positions(&["reno", "cubic"]).is_err());
        assert!(positions(&["1ms", "1MB"]).is_err());
    }
}
