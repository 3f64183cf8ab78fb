//! Outages: times in which a line carries nothing.

use crate::model::InvalidModel;
use crate::pareto::Pareto;
use crate::random::Random;
use crate::time::{nanoseconds, whole};
use crate::units::Span;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Outages that come at random and whose lengths have a heavy tail (Paxson 1997 measured an infinite variance).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Outages {
    /// The mean time from the end of one to the beginning of the next, exponentially distributed.
    pub every: Span,
    /// The length of each outage.
    pub length: Pareto,
}

/// The least value of `every`. More frequent outages are better modelled as loss.
const EVERY_MIN: Duration = Duration::from_millis(1);

impl Outages {
    pub(crate) fn validate(&self) -> Result<(), InvalidModel> {
        if self.every.0 < EVERY_MIN {
            return Err(InvalidModel::new("every", self.every, "at least 1ms"));
        }
        self.length.validate()
    }
}

/// The present outage, or the next.
#[derive(Clone, Debug)]
pub(crate) struct OutageProcess {
    outages: Outages,
    begins_ns: u64,
    ends_ns: u64,
    random: Random,
}

impl OutageProcess {
    pub fn new(outages: Outages, random: Random) -> Self {
        Self { outages, begins_ns: 0, ends_ns: 0, random }
    }

    /// Whether there is an outage at `at_ns`, which never goes back.
    pub fn covers(&mut self, at_ns: u64) -> bool {
        while self.ends_ns <= at_ns {
            let quiet = nanoseconds(self.outages.every.0) as f64 * self.random.exponential();
            self.begins_ns = self.ends_ns.saturating_add(whole(quiet));
            self.ends_ns = self.begins_ns.saturating_add(self.outages.length.draw(&mut self.random).max(1));
        }
        self.begins_ns <= at_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process() -> OutageProcess {
        let length =
            Pareto { alpha: 3.0, min: Span(Duration::from_millis(50)), max: Span(Duration::from_secs(10)) };
        OutageProcess::new(
            Outages { every: Span(Duration::from_secs(1)), length },
            Random::new(1, "outage", 0),
        )
    }

    const MILLISECOND: u64 = 1_000_000;

    /// Looks every millisecond for ten thousand seconds; the lengths of times without an outage, and with one.
    fn runs() -> (Vec<f64>, Vec<f64>) {
        let mut process = process();
        let looks: Vec<bool> = (0..10_000_000).map(|look| process.covers(look * MILLISECOND)).collect();
        let runs: Vec<&[bool]> = looks.chunk_by(|one, next| one == next).collect();
        let lengths =
            |out: bool| runs.iter().filter(|run| run[0] == out).map(|run| run.len() as f64).collect();
        (lengths(false), lengths(true))
    }

    #[test]
    fn outages_come_as_often_and_last_as_long_as_they_should() {
        let (quiet, out) = runs();
        let mean = |runs: &[f64]| runs.iter().sum::<f64>() / runs.len() as f64;
        let sigma = |deviation: f64| 6.0 * deviation / (out.len() as f64).sqrt();
        // Exponential: the deviation is the mean. Pareto with α = 3: mean 75 ms, deviation 75 / √3.
        assert!((mean(&quiet) - 1000.0).abs() < sigma(1000.0) + 1.0, "{}", mean(&quiet));
        assert!((mean(&out) - 75.0).abs() < sigma(75.0 / 3.0_f64.sqrt()) + 1.0, "{}", mean(&out));
        assert!(out.iter().all(|length| (49.0..=10_001.0).contains(length)));
    }

    #[test]
    fn how_often_one_looks_changes_nothing() {
        let (mut often, mut seldom) = (process(), process());
        for look in 0..100_000 {
            let is_out = often.covers(look * MILLISECOND);
            assert!(look % 1000 != 0 || is_out == seldom.covers(look * MILLISECOND));
        }
    }
}
