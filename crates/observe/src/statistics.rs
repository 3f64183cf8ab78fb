//! Statistics of repeated measurements, for the few repetitions of an experiment.

use serde::{Deserialize, Serialize};

/// Quantiles of Student's distribution for an interval of 95 % (0.975 on either side), for 1 to 30 degrees of freedom.
const T_975: [f64; 30] = [
    12.706_205, 4.302_653, 3.182_446, 2.776_445, 2.570_582, 2.446_912, 2.364_624, 2.306_004, 2.262_157,
    2.228_139, 2.200_985, 2.178_813, 2.160_369, 2.144_787, 2.131_450, 2.119_905, 2.109_816, 2.100_922,
    2.093_024, 2.085_963, 2.079_614, 2.073_873, 2.068_658, 2.063_899, 2.059_539, 2.055_529, 2.051_831,
    2.048_407, 2.045_230, 2.042_272,
];
/// The same quantile of the normal distribution.
const Z_975: f64 = 1.959_964;

/// Values of one quantity, at least one.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// In ascending order.
    values: Vec<f64>,
}

impl Sample {
    /// Makes a sample of these values, in any order. Ignores values that are not finite; `None` if no other is there.
    #[must_use]
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.into_iter().filter(|value| value.is_finite()).collect();
        values.sort_by(f64::total_cmp);
        (!values.is_empty()).then_some(Self { values })
    }

    /// The values, ascending.
    #[must_use]
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.values.len()
    }

    /// The smallest value.
    #[must_use]
    pub fn min(&self) -> f64 {
        self.percentile(0.0)
    }

    /// The largest value.
    #[must_use]
    pub fn max(&self) -> f64 {
        self.percentile(100.0)
    }

    /// The arithmetic mean.
    #[must_use]
    pub fn mean(&self) -> f64 {
        self.values.iter().sum::<f64>() / self.values.len() as f64
    }

    /// The estimated standard deviation of the population, with n − 1; `None` for a single value.
    #[must_use]
    pub fn standard_deviation(&self) -> Option<f64> {
        let degrees = self.values.len() - 1;
        let mean = self.mean();
        let squares: f64 = self.values.iter().map(|value| (value - mean).powi(2)).sum();
        (degrees > 0).then(|| (squares / degrees as f64).sqrt())
    }

    /// The 50th percentile.
    #[must_use]
    pub fn median(&self) -> f64 {
        self.percentile(50.0)
    }

    /// The value below which `percent` of the values lie, interpolated linearly between the two next to it: of n values
    /// the k-th smallest is the percentile 100 (k − 1) / (n − 1) (type 7 of Hyndman and Fan, 1996). `percent` is from 0
    /// to 100.
    #[must_use]
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to the number of values")]
    pub fn percentile(&self, percent: f64) -> f64 {
        let last = self.values.len() - 1;
        let rank = last as f64 * (percent / 100.0).clamp(0.0, 1.0);
        let below = rank as usize;
        let (low, high) = (self.values[below], self.values[(below + 1).min(last)]);
        low + (high - low) * rank.fract()
    }

    /// The lowest and highest mean that are compatible with the sample at a confidence of 95 %, by Student's
    /// distribution. Assumes independent, roughly normal values. `None` for a single value.
    #[must_use]
    pub fn mean_interval(&self) -> Option<(f64, f64)> {
        let half =
            t_975(self.values.len() - 1)? * self.standard_deviation()? / (self.values.len() as f64).sqrt();
        Some((self.mean() - half, self.mean() + half))
    }

    /// The values between which the population's median lies at a confidence of at least 95 %, whatever the
    /// distribution: it is below the k-th smallest value with the probability that a coin falls on one side fewer than
    /// k times (the sign test). `None` below six values, of which even the outermost two are not sure enough, and above a
    /// thousand, for which the probabilities are too small to be represented.
    #[must_use]
    pub fn median_interval(&self) -> Option<(f64, f64)> {
        let count = self.values.len();
        if count > 1000 {
            return None;
        }
        let mut one_outcome = 0.5f64.powi(i32::try_from(count).ok()?);
        let mut beyond = one_outcome;
        let mut rank = None;
        for below in 0..count / 2 {
            if beyond > 0.025 {
                break;
            }
            rank = Some(below);
            one_outcome *= (count - below) as f64 / (below + 1) as f64;
            beyond += one_outcome;
        }
        rank.map(|rank| (self.values[rank], self.values[count - 1 - rank]))
    }
}

/// A summary of a [`Sample`] of times, in whole nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names say which statistics they are")]
pub struct Statistic {
    /// The number of values.
    pub samples: u64,
    pub min_ns: u64,
    pub mean_ns: u64,
    /// [`Sample::standard_deviation`]; `None` for a single value.
    pub standard_deviation_ns: Option<u64>,
    /// Half are not longer.
    pub median_ns: u64,
    /// One in twenty is longer.
    pub p95_ns: u64,
    /// One in a hundred is longer.
    pub p99_ns: u64,
    pub max_ns: u64,
}

impl Statistic {
    /// Summarises times in nanoseconds; `None` if there are none.
    #[must_use]
    pub fn of(times_ns: impl IntoIterator<Item = u64>) -> Option<Self> {
        let sample = Sample::of(times_ns.into_iter().map(|time_ns| time_ns as f64))?;
        Some(Self {
            samples: sample.count() as u64,
            min_ns: whole(sample.min()),
            mean_ns: whole(sample.mean()),
            standard_deviation_ns: sample.standard_deviation().map(whole),
            median_ns: whole(sample.median()),
            p95_ns: whole(sample.percentile(95.0)),
            p99_ns: whole(sample.percentile(99.0)),
            max_ns: whole(sample.max()),
        })
    }
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "of whole numbers that are not negative"
)]
fn whole(time_ns: f64) -> u64 {
    time_ns.round() as u64
}

/// The 97.5th percentile of Student's distribution.
fn t_975(degrees: usize) -> Option<f64> {
    if let Some(quantile) = T_975.get(degrees.checked_sub(1)?) {
        return Some(*quantile);
    }
    // Beyond the table the expansion by 1/ν (Fisher and Cornish) is exact to five digits.
    let (z, degrees) = (Z_975, degrees as f64);
    let first = (z.powi(3) + z) / 4.0;
    let second = (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / 96.0;
    let third = (3.0 * z.powi(7) + 19.0 * z.powi(5) + 17.0 * z.powi(3) - 15.0 * z) / 384.0;
    Some(z + first / degrees + second / degrees.powi(2) + third / degrees.powi(3))
}

/// The evenness of a distribution, from 1/n (one has everything) to 1 (all have the same): Jain's fairness index, (Σx)²
/// / (n Σx²). `None` if there are no values, or all are zero.
#[must_use]
pub fn jain_index(values: &[f64]) -> Option<f64> {
    let sum: f64 = values.iter().sum();
    let squares: f64 = values.iter().map(|value| value * value).sum();
    (squares > 0.0).then(|| sum * sum / (values.len() as f64 * squares))
}

/// Pearson's correlation of two quantities that were measured together, from -1 to 1; `None` if one never changes.
#[must_use]
pub fn correlation(first: &[f64], second: &[f64]) -> Option<f64> {
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let (first_mean, second_mean) = (mean(first), mean(second));
    let pairs = || first.iter().zip(second).map(|(a, b)| (a - first_mean, b - second_mean));
    let common: f64 = pairs().map(|(a, b)| a * b).sum();
    let squares = pairs().map(|(a, _)| a * a).sum::<f64>() * pairs().map(|(_, b)| b * b).sum::<f64>();
    (squares > 0.0).then(|| common / squares.sqrt())
}

/// The share of each in their sum, from 0 to 1; all zero if the sum is.
#[must_use]
pub fn shares(values: &[f64]) -> Vec<f64> {
    let sum: f64 = values.iter().sum();
    values.iter().map(|value| if sum == 0.0 { 0.0 } else { value / sum }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(values: &[f64]) -> Sample {
        Sample::of(values.iter().copied()).expect("there are values")
    }

    fn assert_close(value: f64, expected: f64) {
        assert!((value - expected).abs() <= 1e-6 * expected.abs().max(1.0), "{value} is not {expected}");
    }

    /// The control group of `PlantGrowth`, a data set that comes with R.
    const CONTROL: [f64; 10] = [4.17, 5.58, 5.18, 6.11, 4.50, 4.61, 5.17, 4.53, 5.33, 5.14];

    #[test]
    fn mean_deviation_and_interval_are_those_of_a_textbook() {
        let control = sample(&CONTROL);
        assert_close(control.mean(), 5.032);
        assert_close(control.standard_deviation().expect("there are ten"), 0.583_091_378);
        let (low, high) = control.mean_interval().expect("there are ten");
        assert_close(low, 4.614_882);
        assert_close(high, 5.449_118);
    }

    /// The ranks are those of published tables of the sign test.
    #[test]
    fn the_interval_of_a_median_needs_no_distribution() {
        let ranks = |count: u32| sample(&(1..=count).map(f64::from).collect::<Vec<_>>()).median_interval();
        assert_eq!(ranks(1), None);
        assert_eq!(ranks(5), None);
        assert_eq!(ranks(6), Some((1.0, 6.0)));
        assert_eq!(ranks(10), Some((2.0, 9.0)));
        assert_eq!(ranks(20), Some((6.0, 15.0)));
        assert_eq!(ranks(30), Some((10.0, 21.0)));
    }

    #[test]
    fn percentiles_are_interpolated_between_neighbours() {
        let four = sample(&[40.0, 10.0, 30.0, 20.0]);
        assert_eq!((four.min(), four.median(), four.max()), (10.0, 25.0, 40.0));
        assert_close(four.percentile(25.0), 17.5);
        assert_close(four.percentile(95.0), 38.5);
    }

    #[test]
    fn a_single_value_has_neither_deviation_nor_interval() {
        let one = sample(&[7.0]);
        assert_eq!((one.mean(), one.median(), one.percentile(99.0)), (7.0, 7.0, 7.0));
        assert_eq!((one.standard_deviation(), one.mean_interval()), (None, None));
    }

    #[test]
    fn what_is_not_finite_does_not_count() {
        assert_eq!(sample(&[f64::NAN, 3.0, f64::INFINITY]).count(), 1);
        assert_eq!(Sample::of([f64::NAN]), None);
    }

    #[test]
    fn a_statistic_is_what_a_sample_says_in_whole_nanoseconds() {
        let statistic = Statistic::of((1..=200).rev()).expect("there are times");
        assert_eq!((statistic.samples, statistic.min_ns, statistic.max_ns), (200, 1, 200));
        // 100.5, 190.05 and 198.01.
        assert_eq!((statistic.median_ns, statistic.p95_ns, statistic.p99_ns), (101, 190, 198));
        assert_eq!((statistic.mean_ns, statistic.standard_deviation_ns), (101, Some(58)));
        assert_eq!(Statistic::of([7]).map(|one| (one.p99_ns, one.standard_deviation_ns)), Some((7, None)));
        assert_eq!(Statistic::of([]), None);
    }

    #[test]
    fn quantiles_beyond_the_table_continue_it() {
        for (degrees, expected) in [(1, 12.706_205), (30, 2.042_272), (31, 2.039_513), (120, 1.979_930)] {
            assert_close(t_975(degrees).expect("a sample"), expected);
        }
        assert_eq!(t_975(0), None);
    }

    #[test]
    fn fairness_is_one_for_equals_and_one_in_n_if_one_has_all() {
        assert_eq!(jain_index(&[3.0; 4]), Some(1.0));
        assert_eq!(jain_index(&[8.0, 0.0, 0.0, 0.0]), Some(0.25));
        assert_close(jain_index(&[1.0, 2.0, 3.0]).expect("they have something"), 36.0 / 42.0);
        assert_eq!((jain_index(&[]), jain_index(&[0.0, 0.0])), (None, None));
    }

    #[test]
    fn quantities_correlate_if_they_change_together() {
        assert_eq!(correlation(&[1.0, 2.0, 3.0], &[6.0, 4.0, 2.0]), Some(-1.0));
        assert_eq!(correlation(&[1.0, 2.0, 1.0, 2.0], &[1.0, 1.0, 2.0, 2.0]), Some(0.0));
        assert_close(correlation(&[1.0, 2.0, 3.0], &[1.0, 2.0, 9.0]).expect("both change"), 0.917_662_9);
        assert_eq!((correlation(&[1.0, 2.0], &[3.0, 3.0]), correlation(&[], &[])), (None, None));
    }

    #[test]
    fn shares_add_up_to_the_whole() {
        assert_eq!(shares(&[1.0, 3.0]), [0.25, 0.75]);
        assert_eq!(shares(&[0.0, 0.0]), [0.0, 0.0]);
    }
}
