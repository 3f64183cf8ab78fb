//! Pseudo-random numbers: the same seed gives the same ones, on every machine and in every release.

use crate::time::whole;
use crate::units::Probability;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use std::f64::consts::TAU;

/// The numbers of one stage of one parallel path. A stage that draws more or fewer does not change those of the others.
#[derive(Clone, Debug)]
pub(crate) struct Random(Xoshiro256PlusPlus);

impl Random {
    /// The stream of `seed` for the stage called `stage` of the parallel path `path`.
    pub fn new(seed: u64, stage: &str, path: usize) -> Self {
        let mix = |state: u64, byte: u8| (state ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        let name = stage.bytes().chain((path as u64).to_le_bytes());
        Self(Xoshiro256PlusPlus::seed_from_u64(name.fold(seed ^ 0xcbf2_9ce4_8422_2325, mix)))
    }

    /// 64 random bits.
    pub fn word(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number below `bound`; 0 if there is none.
    pub fn below(&mut self, bound: u64) -> u64 {
        scaled(self.word(), bound)
    }

    /// True with this probability.
    pub fn happens(&mut self, probability: Probability) -> bool {
        const ALWAYS: f64 = (1_u64 << 63) as f64;
        self.word() >> 1 < whole(probability.fraction() * ALWAYS)
    }

    /// Uniformly distributed between 0 (included) and 1 (excluded).
    pub fn unit(&mut self) -> f64 {
        const STEPS: f64 = (1_u64 << 53) as f64;
        (self.word() >> 11) as f64 / STEPS
    }

    /// Exponentially distributed with a mean of 1.
    pub fn exponential(&mut self) -> f64 {
        -libm::log(1.0 - self.unit())
    }

    /// Normally distributed around 0 with a standard deviation of 1 (Box and Muller's transformation).
    pub fn normal(&mut self) -> f64 {
        let radius = libm::sqrt(2.0 * self.exponential());
        radius * libm::cos(TAU * self.unit())
    }
}

/// 64 random bits as a number below `bound`; 0 if there is none.
pub(crate) fn scaled(word: u64, bound: u64) -> u64 {
    // The high half of the product: even enough for any bound that is small beside 2^64.
    u64::try_from((u128::from(word) * u128::from(bound)) >> 64).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_these_numbers_for_ever() {
        let mut random = Random::new(7, "loss", 0);
        assert_eq!([random.word(), random.word()], [5_317_586_742_852_102_197, 3_937_777_001_930_203_952]);
        assert_eq!(random.normal().to_bits(), 4_607_250_736_511_698_779);
    }

    #[test]
    fn another_seed_stage_or_path_gives_other_numbers() {
        let first = |seed, stage, path| Random::new(seed, stage, path).word();
        let others = [first(8, "loss", 0), first(7, "jitter", 0), first(7, "loss", 1)];
        assert!(!others.contains(&first(7, "loss", 0)));
    }

    #[test]
    fn what_is_certain_happens_and_what_is_impossible_does_not() {
        let mut random = Random::new(1, "test", 0);
        let certain = Probability::new(1.0).unwrap();
        assert!((0..1000).all(|_| random.happens(certain) && !random.happens(Probability::ZERO)));
    }

    /// Mean and variance of many draws.
    fn moments(mut draw: impl FnMut() -> f64) -> (f64, f64) {
        let count = 100_000;
        let numbers: Vec<f64> = (0..count).map(|_| draw()).collect();
        let mean = numbers.iter().sum::<f64>() / f64::from(count);
        let squares = numbers.iter().map(|number| (number - mean) * (number - mean)).sum::<f64>();
        (mean, squares / f64::from(count))
    }

    #[test]
    fn distributions_have_the_mean_and_the_variance_of_their_names() {
        let mut random = Random::new(1, "test", 0);
        // Six standard deviations: of a mean √(variance/n), of a variance √((fourth moment - variance²)/n).
        let near = |(mean, variance): (f64, f64), means: (f64, f64), fourth: f64| {
            let n = 100_000.0_f64;
            assert!((mean - means.0).abs() < 6.0 * (means.1 / n).sqrt(), "mean {mean}");
            let of_variance = ((fourth - means.1 * means.1) / n).sqrt();
            assert!((variance - means.1).abs() < 6.0 * of_variance, "variance {variance}");
        };
        near(moments(|| random.unit()), (0.5, 1.0 / 12.0), 1.0 / 80.0);
        near(moments(|| random.exponential()), (1.0, 1.0), 9.0);
        near(moments(|| random.normal()), (0.0, 1.0), 3.0);
    }
}
