//! The Pareto distribution, for lengths that are mostly short and sometimes very long.

use crate::model::InvalidModel;
use crate::random::Random;
use crate::time::{nanoseconds, whole};
use crate::units::Span;
use serde::{Deserialize, Serialize};

/// A Pareto distribution between bounds: P(X > x) falls with x^-`alpha`. The smaller `alpha`, the heavier the tail; up
/// to 2 the variance grows with `max`, up to 1 the mean does too.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pareto {
    /// The shape: the exponent of the tail, above zero.
    pub alpha: f64,
    /// The shortest, which is also the most frequent.
    pub min: Span,
    /// The longest, which bounds the tail.
    pub max: Span,
}

impl Pareto {
    pub(crate) fn validate(&self) -> Result<(), InvalidModel> {
        if !(self.alpha > 0.0 && self.alpha.is_finite()) {
            return Err(InvalidModel::new("alpha", self.alpha, "a number above zero"));
        }
        if self.min == Span::default() || self.min > self.max {
            return Err(InvalidModel::new("min", self.min, "above zero and not above max"));
        }
        Ok(())
    }

    /// Draws a length in nanoseconds.
    pub(crate) fn draw(&self, random: &mut Random) -> u64 {
        let (min, max) = (nanoseconds(self.min.0) as f64, nanoseconds(self.max.0) as f64);
        let beyond_max = libm::pow(min / max, self.alpha);
        whole(inverse(min, self.alpha, random.unit() * (1.0 - beyond_max)))
    }
}

/// Draws from an unbounded Pareto distribution with this mean, which needs an `alpha` above 1. In nanoseconds.
pub(crate) fn draw_with_mean(mean_ns: f64, alpha: f64, random: &mut Random) -> u64 {
    whole(inverse(mean_ns * (alpha - 1.0) / alpha, alpha, random.unit()))
}

/// The length that a share of 1 - `quantile` exceeds.
fn inverse(min: f64, alpha: f64, quantile: f64) -> f64 {
    min * libm::pow(1.0 - quantile, -1.0 / alpha)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const LENGTHS: Pareto =
        Pareto { alpha: 1.5, min: Span(Duration::from_millis(50)), max: Span(Duration::from_secs(10)) };

    fn draws(count: usize) -> impl Iterator<Item = u64> {
        let mut random = Random::new(1, "test", 0);
        (0..count).map(move |_| LENGTHS.draw(&mut random))
    }

    #[test]
    fn a_seed_gives_these_lengths_for_ever() {
        assert_eq!(draws(3).collect::<Vec<_>>(), [612_849_977, 59_963_229, 69_404_155]);
    }

    #[test]
    fn lengths_stay_within_their_bounds_and_come_near_both() {
        let (shortest, longest) = (draws(10_000).min().unwrap(), draws(10_000).max().unwrap());
        assert!((50_000_000..51_000_000).contains(&shortest), "{shortest}");
        assert!((1_000_000_000..=10_000_000_000).contains(&longest), "{longest}");
    }

    #[test]
    fn the_part_that_is_longer_falls_with_the_power_of_the_length() {
        // P(X > 200 ms) = (4^-1.5 - 200^-1.5) / (1 - 200^-1.5)
        let beyond_max = 200.0_f64.powf(-1.5);
        let expected = (4.0_f64.powf(-1.5) - beyond_max) / (1.0 - beyond_max);
        let longer = draws(100_000).filter(|length| *length > 200_000_000).count();
        let sigma = (expected * (1.0 - expected) * 1e5).sqrt();
        assert!((longer as f64 - expected * 1e5).abs() < 6.0 * sigma, "{longer}");
    }

    #[test]
    fn a_mean_is_met_where_the_tail_allows() {
        let mut random = Random::new(1, "test", 0);
        // At alpha = 3 the variance is mean² / 3.
        let sum: u64 = (0..100_000).map(|_| draw_with_mean(1e6, 3.0, &mut random)).sum();
        assert!((sum as f64 / 1e5 - 1e6).abs() < 6.0 * 1e6 / 3e5_f64.sqrt(), "{sum}");
    }

    #[test]
    fn nonsense_is_refused() {
        let refused = |pareto: Pareto| pareto.validate().is_err();
        assert!(refused(Pareto { alpha: 0.0, ..LENGTHS }) && refused(Pareto { alpha: f64::NAN, ..LENGTHS }));
        assert!(refused(Pareto { min: Span::default(), ..LENGTHS }));
        assert!(refused(Pareto { max: Span(Duration::from_millis(49)), ..LENGTHS }));
        assert!(!refused(LENGTHS));
    }
}
