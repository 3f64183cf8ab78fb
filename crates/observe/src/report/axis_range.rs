//! The range, the unit and the ticks of an axis.

use super::figure::{Axis, Figure, Place, Point, Series};
use super::unit::{Scale, Unit};

/// A drawn axis. Everything but [`AxisRange::of`] counts in the shown unit, not in its base.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct AxisRange {
    pub(super) scale: Scale,
    /// With the unit.
    pub(super) label: String,
    pub(super) logarithmic: bool,
    pub(super) low: f64,
    pub(super) high: f64,
    /// The texts at the ticks, if they are not numbers.
    pub(super) names: Vec<String>,
    intervals: f64,
}

/// The axes of one figure.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Axes {
    pub(super) x: AxisRange,
    pub(super) y: AxisRange,
    pub(super) right: Option<AxisRange>,
}

/// The margin of a logarithmic axis on either side, as a factor.
const MARGIN_FACTOR: f64 = 1.15;
/// The end of an axis of shares.
const WHOLE_PERCENT: f64 = 100.0;
/// The most intervals of a linear axis: numbers beside each other need more room than numbers above each other.
const INTERVALS_BESIDE: f64 = 10.0;
const INTERVALS_ABOVE: f64 = 6.0;
/// Fewer ticks do not show the division of an axis.
const TICKS_MIN: usize = 3;

impl Axes {
    pub(super) fn of(figure: &Figure) -> Self {
        let drawn = |right: bool| {
            figure.series.iter().filter(move |series| (figure.right.is_some() && series.right) == right)
        };
        let places = figure.annotations.iter().map(|annotation| annotation.place);
        let x_of_places = places.clone().flat_map(|place| match place {
            Place::X(x) => vec![x],
            Place::Span { from, to } => vec![from, to],
            Place::Y(_) => Vec::new(),
        });
        let y_of_places = places.filter_map(|place| if let Place::Y(y) = place { Some(y) } else { None });
        let x = figure
            .series
            .iter()
            .flat_map(|series| series.points.iter().map(|point| point.x))
            .chain(x_of_places);
        let y = drawn(false).flat_map(heights).chain(y_of_places);
        Self {
            x: AxisRange::of(&figure.x, x, false),
            y: AxisRange::of(&figure.y, y, true),
            right: figure.right.as_ref().map(|axis| AxisRange::of(axis, drawn(true).flat_map(heights), true)),
        }
    }

    /// The axis of a series.
    pub(super) fn y_of(&self, series: &Series) -> &AxisRange {
        self.right.as_ref().filter(|_| series.right).unwrap_or(&self.y)
    }
}

fn heights(series: &Series) -> impl Iterator<Item = f64> {
    let of_point = |point: &Point| [Some(point.y), point.low, point.high];
    series.points.iter().flat_map(of_point).flatten()
}

/// Whether a number has a place on an axis. Numbers at the limits of a float are not measurements, and have none.
pub(super) fn can_be_drawn(number: f64, logarithmic: bool) -> bool {
    let is_sound = number == 0.0 || (1e-100..1e100).contains(&number.abs());
    is_sound && (number > 0.0 || !logarithmic)
}

impl AxisRange {
    /// An axis for these numbers, in the base of its unit.
    pub(super) fn of(axis: &Axis, numbers: impl Iterator<Item = f64>, with_zero: bool) -> Self {
        if !axis.names.is_empty() {
            return Self::of_names(axis);
        }
        let (low, high) = numbers
            .filter(|number| can_be_drawn(*number, axis.logarithmic))
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), number| {
                (low.min(number), high.max(number))
            });
        let (low, high) = match (low <= high, axis.logarithmic) {
            (true, false) if with_zero => (low.min(0.0), high.max(0.0)),
            (true, _) => (low, high),
            (false, true) => (1.0, 10.0),
            (false, false) => (0.0, 1.0),
        };
        let scale = axis.unit.scale(low.abs().max(high.abs()));
        let mut this = Self {
            label: scale.label(&axis.label),
            logarithmic: axis.logarithmic,
            low: low / scale.factor,
            high: high / scale.factor,
            names: Vec::new(),
            intervals: if with_zero { INTERVALS_ABOVE } else { INTERVALS_BESIDE },
            scale,
        };
        this.make_room(with_zero);
        if axis.unit == Unit::Share && high <= 1.0 {
            this.high = this.high.min(WHOLE_PERCENT);
        }
        this
    }

    /// The same room for each name.
    fn of_names(axis: &Axis) -> Self {
        Self {
            scale: Unit::None.scale(1.0),
            label: axis.label.clone(),
            logarithmic: false,
            low: -0.5,
            high: axis.names.len() as f64 - 0.5,
            names: axis.names.clone(),
            intervals: INTERVALS_BESIDE,
        }
    }

    /// Adds margins, so that nothing lies on the border, and the range is not empty.
    fn make_room(&mut self, with_zero: bool) {
        if self.logarithmic {
            self.low /= MARGIN_FACTOR;
            self.high *= MARGIN_FACTOR;
        } else if with_zero {
            let step = self.step();
            // Not on the border: a little more, then up to the next tick.
            let above = |number: f64| (number / step * 1.02).ceil() * step;
            self.high = if self.high > 0.0 { above(self.high) } else { self.high };
            self.low = if self.low < 0.0 { -above(-self.low) } else { self.low };
        } else {
            let margin = (self.high - self.low) * 0.02;
            // A time or a size that begins at zero begins at the border.
            self.low -= if self.low == 0.0 { 0.0 } else { margin };
            self.high += margin;
        }
        if self.high <= self.low {
            let half = if self.low == 0.0 { 0.5 } else { self.low.abs() / 2.0 };
            (self.low, self.high) = (self.low - half, self.high + half);
        }
    }

    /// The position of a number between the ends, from 0 to 1; `None` if it cannot be drawn.
    pub(super) fn position(&self, number: f64) -> Option<f64> {
        let share = if self.logarithmic {
            (number / self.low).ln() / (self.high / self.low).ln()
        } else {
            (number - self.low) / (self.high - self.low)
        };
        can_be_drawn(number, self.logarithmic).then_some(share)
    }

    /// The positions of grid lines and numbers, ascending.
    pub(super) fn ticks(&self) -> Vec<f64> {
        if !self.names.is_empty() {
            return (0..self.names.len()).map(|index| index as f64).collect();
        }
        let logarithmic = if self.logarithmic { self.logarithmic_ticks() } else { Vec::new() };
        // A short axis has hardly any power of ten, or 2 or 5 times one.
        if logarithmic.len() < TICKS_MIN { self.linear_ticks() } else { logarithmic }
    }

    #[allow(clippy::cast_possible_truncation, reason = "some ten of them")]
    fn linear_ticks(&self) -> Vec<f64> {
        let step = self.step();
        let first = (self.low / step - 1e-9).ceil();
        let count = (self.high / step + 1e-9).floor() - first;
        (0..=count as i64).map(|index| (first + index as f64) * step).collect()
    }

    /// The distance of ticks: 1, 2 or 5 times a power of ten.
    fn step(&self) -> f64 {
        let rough = (self.high - self.low) / self.intervals;
        let power = 10_f64.powf(rough.log10().floor());
        let fits = |factor: &f64| factor * power >= rough * (1.0 - 1e-9);
        let step = [1.0, 2.0, 5.0].into_iter().find(fits).unwrap_or(10.0) * power;
        if step.is_finite() && step > 0.0 { step } else { 1.0 }
    }

    /// Powers of ten, and 2 and 5 times them if these are few.
    #[allow(clippy::cast_possible_truncation, reason = "the exponent of a number")]
    fn logarithmic_ticks(&self) -> Vec<f64> {
        let (first, last) = (self.low.log10().floor() as i32, self.high.log10().ceil() as i32);
        let digits: &[f64] = if last - first <= 4 { &[1.0, 2.0, 5.0] } else { &[1.0] };
        let ticks =
            (first..=last).flat_map(|exponent| digits.iter().map(move |digit| digit * 10_f64.powi(exponent)));
        ticks.filter(|tick| (self.low..=self.high).contains(tick)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Unit;

    fn range(axis: &Axis, numbers: &[f64], with_zero: bool) -> AxisRange {
        AxisRange::of(axis, numbers.iter().copied(), with_zero)
    }

    #[test]
    fn a_rate_is_shown_from_zero_to_the_tick_above_it() {
        let range = range(&Axis::new("rate", Unit::BitsPerSecond), &[375e6, 941e6], true);
        assert_eq!(range.label, "rate [Mbit/s]");
        assert_eq!((range.low, range.high), (0.0, 1000.0));
        assert_eq!(range.ticks(), [0.0, 200.0, 400.0, 600.0, 800.0, 1000.0]);
        assert_eq!(range.position(500.0), Some(0.5));
    }

    #[test]
    fn a_share_ends_at_the_whole() {
        let range = range(&Axis::new("share", Unit::Share), &[0.1, 1.0], true);
        assert_eq!((range.low, range.high), (0.0, 100.0));
    }

    #[test]
    fn a_logarithmic_axis_leaves_out_what_it_cannot_show() {
        let range = range(&Axis::new("p", Unit::None).logarithmic(), &[0.0, -1.0, 0.001, 1.0], true);
        assert_eq!(range.ticks().first(), Some(&0.001));
        assert!(range.low < 0.001 && range.high > 1.0);
        assert_eq!(range.position(0.0), None);
    }

    #[test]
    fn a_short_logarithmic_axis_has_ticks_too() {
        let range = range(&Axis::new("p", Unit::None).logarithmic(), &[120.0, 150.0], false);
        assert!(range.ticks().len() >= TICKS_MIN, "{range:?}");
    }

    #[test]
    fn an_axis_of_one_number_or_none_has_a_width() {
        for numbers in [&[][..], &[0.0], &[7.0], &[-7.0], &[f64::MAX], &[f64::MIN_POSITIVE], &[1e99]] {
            for logarithmic in [false, true] {
                for with_zero in [false, true] {
                    let axis = Axis { logarithmic, ..Axis::new("x", Unit::None) };
                    let range = range(&axis, numbers, with_zero);
                    assert!(range.low < range.high, "{numbers:?} {range:?}");
                    assert!(range.ticks().len() < 50, "{numbers:?} {range:?}");
                }
            }
        }
    }
}
