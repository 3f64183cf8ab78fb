//! Jitter: random extra delay.

use crate::model::InvalidModel;
use crate::pareto::Pareto;
use crate::random::Random;
use crate::time::{nanoseconds, whole};
use crate::units::Span;
use serde::{Deserialize, Serialize};

/// Extra delay of each packet, never negative: the configured delay is that of an undisturbed packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum Jitter {
    /// No packet takes longer than the configured delay.
    #[default]
    None,
    /// Uniformly distributed up to this.
    Uniform(Span),
    /// Normally distributed, but not below zero and not above the mean and six deviations.
    Normal {
        /// The mean, before values outside these bounds are drawn again.
        mean: Span,
        /// The standard deviation, before values below zero are drawn again.
        deviation: Span,
    },
    /// Pareto-distributed: mostly little and sometimes much.
    Pareto(Pareto),
}

impl Jitter {
    pub(crate) fn validate(&self) -> Result<(), InvalidModel> {
        match self {
            Self::Pareto(pareto) => pareto.validate(),
            Self::None | Self::Uniform(_) | Self::Normal { .. } => Ok(()),
        }
    }

    /// Draws the extra delay of a packet, in nanoseconds.
    pub(crate) fn draw(&self, random: &mut Random) -> u64 {
        match self {
            Self::None => 0,
            Self::Uniform(max) => random.below(nanoseconds(max.0).saturating_add(1)),
            Self::Normal { mean, deviation } => {
                normal(nanoseconds(mean.0) as f64, nanoseconds(deviation.0) as f64, random)
            }
            Self::Pareto(pareto) => pareto.draw(random),
        }
    }
}

/// Draws until the value is in range. At least every other draw is, because the mean is not negative.
fn normal(mean: f64, deviation: f64, random: &mut Random) -> u64 {
    let range = 0.0..=mean + 6.0 * deviation;
    loop {
        let length = mean + deviation * random.normal();
        if range.contains(&length) {
            return whole(length);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const MILLISECOND: f64 = 1e6;

    fn draws(jitter: Jitter) -> Vec<f64> {
        let mut random = Random::new(1, "jitter", 0);
        (0..100_000).map(|_| jitter.draw(&mut random) as f64).collect()
    }

    fn mean(draws: &[f64]) -> f64 {
        draws.iter().sum::<f64>() / draws.len() as f64
    }

    #[test]
    fn uniform_jitter_is_anything_up_to_its_bound() {
        let draws = draws(Jitter::Uniform(Span(Duration::from_millis(2))));
        let sigma = 2.0 * MILLISECOND / (12.0_f64 * 1e5).sqrt();
        assert!((mean(&draws) - MILLISECOND).abs() < 6.0 * sigma);
        assert!(draws.iter().all(|draw| *draw <= 2.0 * MILLISECOND));
    }

    #[test]
    fn normal_jitter_is_truncated_at_zero() {
        let millis = |number| Span(Duration::from_millis(number));
        let far = draws(Jitter::Normal { mean: millis(10), deviation: millis(1) });
        assert!((mean(&far) - 10.0 * MILLISECOND).abs() < 6.0 * MILLISECOND / 1e5_f64.sqrt());
        // Half of a normal distribution has the mean √(2/π).
        let near = draws(Jitter::Normal { mean: millis(0), deviation: millis(1) });
        let expected = (2.0 / std::f64::consts::PI).sqrt() * MILLISECOND;
        assert!((mean(&near) - expected).abs() < 6.0 * 0.603 * MILLISECOND / 1e5_f64.sqrt());
    }

    #[test]
    fn no_jitter_draws_nothing() {
        let mut random = Random::new(1, "jitter", 0);
        assert_eq!(Jitter::None.draw(&mut random), 0);
        assert_eq!(random.word(), Random::new(1, "jitter", 0).word());
    }
}
