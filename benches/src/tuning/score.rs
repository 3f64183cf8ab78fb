//! How a tuner does beside the best fixed number of connections.

use crate::curve::Curve;
use observe::statistics::Sample;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;

/// One run.
#[derive(Clone, Debug)]
pub struct Tuned {
    pub repetition: u32,
    pub curve: Curve,
    /// Those that the last decision left; `None` without a decision.
    pub connections: Option<u32>,
    /// They used BBR.
    pub bbr: bool,
}

/// The scores over one path.
#[derive(Debug, Serialize)]
pub struct PathScore {
    pub path: String,
    /// The rate of each fixed number in the second half of its runs, in Mbit/s, the median.
    pub fixed: BTreeMap<u32, f64>,
    pub tuners: Vec<TunerScore>,
}

/// The score of one tuner.
#[derive(Debug, Serialize)]
pub struct TunerScore {
    pub name: String,
    pub runs: Vec<RunScore>,
}

/// The score of one run, beside the fixed number that was the best one in all other repetitions: the best of some noisy
/// numbers looks better than it is, in the runs by which it was chosen.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct RunScore {
    pub repetition: u32,
    /// That fixed number.
    pub best: u32,
    /// What was moved, as a share of what the fixed number moves in the same time, with the same seed.
    pub share: f64,
    /// The time in which that number would have moved what is missing, in seconds: what the search has cost.
    pub lost_s: f64,
    /// The start of the first five seconds at 90 % of its rate, in seconds.
    pub reached_s: Option<f64>,
    /// The rate in the second half, as a share of its rate.
    pub late_share: f64,
    /// The connections at the end; `None` if nothing was decided.
    pub connections: Option<u32>,
    /// They used BBR.
    pub bbr: bool,
}

/// The runs of each fixed number.
type Fixed<'a> = BTreeMap<u32, &'a [Tuned]>;

impl PathScore {
    /// The runs by the name of what chose their number of connections: a number, or a tuner.
    pub fn of(path: &str, runs: &BTreeMap<&str, Vec<Tuned>>) -> Self {
        let fixed = runs.iter().filter_map(|(name, runs)| Some((name.parse().ok()?, runs.as_slice())));
        let fixed: Fixed = fixed.collect();
        let tuners = runs.iter().filter(|(name, _)| name.parse::<u32>().is_err());
        Self {
            path: path.to_owned(),
            fixed: fixed.iter().filter_map(|(of, runs)| Some((*of, rate(*runs)? * 8e-6))).collect(),
            tuners: tuners.map(|(name, runs)| TunerScore::of(name, runs, &fixed)).collect(),
        }
    }
}

impl TunerScore {
    fn of(name: &str, runs: &[Tuned], fixed: &Fixed) -> Self {
        let runs = runs.iter().filter_map(|run| RunScore::of(run, fixed)).collect();
        Self { name: name.to_owned(), runs }
    }

    /// The median, the least and the most; a dash without any.
    fn spread(&self, of: impl Fn(&RunScore) -> Option<f64>, unit: &str) -> String {
        Sample::of(self.runs.iter().filter_map(of)).map_or_else(
            || "–".to_owned(),
            |sample| format!("{:.1}{unit} ({:.1}–{:.1})", sample.median(), sample.min(), sample.max()),
        )
    }
}

impl RunScore {
    /// `None` without other repetitions to choose the best number by, or if that has no run in the same one.
    fn of(run: &Tuned, fixed: &Fixed) -> Option<Self> {
        let elsewhere = |runs: &[Tuned]| rate(runs.iter().filter(|fixed| fixed.repetition != run.repetition));
        let rates =
            fixed.keys().filter_map(|connections| Some((connections, elsewhere(fixed[connections])?)));
        let (best, _) = rates.max_by(|(_, one), (_, other)| one.total_cmp(other))?;
        let best_run = fixed[best].iter().find(|fixed| fixed.repetition == run.repetition)?;
        let best_rate = best_run.curve.late_rate();
        // Its run is shorter. What it moves early it would move only once, and then go on.
        let (seconds, early) = (run.curve.seconds(), best_run.curve.seconds() / 2.0);
        let best_bytes = best_run.curve.bytes_until(early) + best_rate * (seconds - early);
        let bytes = run.curve.bytes_until(seconds);
        Some(Self {
            repetition: run.repetition,
            best: *best,
            share: bytes / best_bytes,
            lost_s: (best_bytes - bytes) / best_rate,
            reached_s: run.curve.reaches(0.9 * best_rate),
            late_share: run.curve.late_rate() / best_rate,
            connections: run.connections,
            bbr: run.bbr,
        })
    }
}

/// The bytes per second of several runs in their second halves, the median; `None` without a run.
fn rate<'a>(runs: impl IntoIterator<Item = &'a Tuned>) -> Option<f64> {
    Sample::of(runs.into_iter().map(|run| run.curve.late_rate())).map(|sample| sample.median())
}

impl fmt::Display for TunerScore {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.name;
        if self.runs.is_empty() {
            return write!(formatter, "{name} | – | – | – | – | –");
        }
        let share = self.spread(|run| Some(run.share * 100.0), " %");
        let lost = self.spread(|run| Some(run.lost_s), "");
        let mut reached = self.spread(|run| run.reached_s, " s");
        let missing = self.runs.iter().filter(|run| run.reached_s.is_none()).count();
        if missing > 0 {
            reached += &format!(", {missing} never");
        }
        let late = self.spread(|run| Some(run.late_share * 100.0), " %");
        write!(formatter, "{name} | {share} | {lost} | {reached} | {late}")?;
        let ends = self.runs.iter().map(|run| {
            let law = if run.bbr { " of BBR" } else { "" };
            run.connections
                .map_or_else(|| "as at first".to_owned(), |connections| format!("{connections}{law}"))
        });
        write!(formatter, " | {}", ends.collect::<Vec<_>>().join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(rates: &[f64]) -> Vec<Tuned> {
        let run = |(repetition, rate): (u32, &f64)| Tuned {
            repetition,
            curve: Curve::steady(*rate, 20.0),
            connections: None,
            bbr: false,
        };
        (1..).zip(rates).map(run).collect()
    }

    #[test]
    fn a_run_is_scored_beside_the_number_that_is_best_without_it() {
        // Sixteen are best but for the third repetition, which alone would choose four.
        let all = BTreeMap::from([
            ("4", runs(&[80.0, 80.0, 200.0])),
            ("16", runs(&[100.0, 100.0, 100.0])),
            ("guided", runs(&[90.0, 90.0, 90.0])),
        ]);
        let score = PathScore::of("a path", &all);
        let best: Vec<u32> = score.tuners[0].runs.iter().map(|run| run.best).collect();
        assert_eq!(best[2], 16);
        assert!((score.tuners[0].runs[2].share - 0.9).abs() < 0.05, "{score:?}");
    }
}
