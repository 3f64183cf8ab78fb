//! A small summary of a series: medians and spreads of what its figures show. Documents that quote a series are
//! committed with it.

use crate::experiment::{Experiment, Form, Plan, Quantity, Theory};
use crate::report::theoretical;
use crate::results::{Folder, FolderError, Machine, Manifest, RunRecord};
use observe::report::rfc3339;
use observe::statistics::Sample;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// A series and its cells.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// What was measured, when, and on which machine.
    pub series: SeriesSummary,
    /// In the order of the experiment.
    pub cells: Vec<CellSummary>,
}

/// What was measured, when, and on which machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SeriesSummary {
    /// Of the experiment.
    pub title: String,
    /// Its form.
    pub form: Form,
    /// The version of ropewalk.
    pub ropewalk: String,
    /// The commits of the builds that measured.
    pub revisions: Vec<String>,
    /// The names and versions of other programs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<String>,
    /// Where it ran.
    pub machine: Machine,
    /// The start, in UTC.
    pub begun: String,
    /// The runs of the experiment.
    pub planned: usize,
    /// Those with a VALID attempt.
    pub valid: usize,
    /// All INVALID attempts.
    pub invalid_attempts: usize,
}

/// The runs of one combination of values.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CellSummary {
    /// The value of every variable.
    pub values: BTreeMap<String, String>,
    /// The data that each run moves, in bytes, if it moves a fixed amount.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// The payload rate of the bottleneck, in bits per second.
    pub link: f64,
    /// The median number of TCP connections that the client had.
    pub connections: usize,
    /// Runs to be done.
    pub planned: usize,
    /// Those with a VALID attempt.
    pub valid: usize,
    /// All INVALID attempts.
    pub invalid_attempts: usize,
    /// What the VALID runs measured, of the quantities that the experiment plots, in the base of their units.
    pub measured: BTreeMap<Quantity, Spread>,
    /// What models say of them: those of the plots' theories, but for the link, and of the predictions.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub predicted: BTreeMap<Quantity, BTreeMap<Theory, f64>>,
    /// What limited how many of them, by their own diagnoses.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub limits: BTreeMap<String, usize>,
    /// How many times as fast they would be with what would help, as predicted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub predicted_gain: Option<Spread>,
    /// Why runs are missing: their last attempts' reasons.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<String>,
}

/// A quantity in several runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// The middle one.
    pub median: f64,
    /// The smallest one.
    pub min: f64,
    /// The largest one.
    pub max: f64,
    /// Each repetition; `None` if it has no VALID run.
    pub runs: Vec<Option<f64>>,
}

impl Summary {
    /// Summarises a folder of results.
    ///
    /// # Errors
    /// If the folder's experiment cannot be read.
    pub fn of(folder: &Folder) -> Result<Self, FolderError> {
        let experiment = folder.experiment()?;
        let plan = folder.plan(&experiment)?;
        let cells = (0..plan.cells.len()).map(|cell| CellSummary::of(cell, &experiment, &plan, folder));
        let cells: Vec<CellSummary> = cells.collect();
        Ok(Self { series: SeriesSummary::of(&folder.manifest, &folder.records, &cells), cells })
    }

    /// The summary in JSON, with a line for each cell.
    ///
    /// # Errors
    /// Never: all keys are texts.
    pub fn json(&self) -> serde_json::Result<String> {
        let cells = self.cells.iter().map(serde_json::to_string).collect::<Result<Vec<_>, _>>()?;
        let series = serde_json::to_string(&self.series)?;
        Ok(format!("{{\n\"series\": {series},\n\"cells\": [\n{}\n]\n}}\n", cells.join(",\n")))
    }
}

impl SeriesSummary {
    fn of(manifest: &Manifest, records: &[RunRecord], cells: &[CellSummary]) -> Self {
        let revisions = records.iter().filter_map(|record| record.program.as_ref()?.revision.clone());
        let mut revisions: Vec<String> = revisions.collect();
        revisions.sort();
        revisions.dedup();
        Self {
            title: manifest.title.clone(),
            form: manifest.form,
            ropewalk: manifest.ropewalk.clone(),
            revisions,
            others: Vec::new(),
            machine: manifest.machine.clone(),
            begun: rfc3339(Duration::from_secs(manifest.begun_unix_seconds)),
            planned: manifest.runs.len(),
            valid: cells.iter().map(|cell| cell.valid).sum(),
            invalid_attempts: cells.iter().map(|cell| cell.invalid_attempts).sum(),
        }
    }
}

impl CellSummary {
    fn of(cell: usize, experiment: &Experiment, plan: &Plan, folder: &Folder) -> Self {
        let runs = plan.runs.iter().enumerate().filter(|(_, run)| run.cell == cell);
        let attempts: Vec<Vec<&RunRecord>> =
            runs.map(|(index, _)| folder.attempts(index + 1).collect()).collect();
        let valid: Vec<Option<&RunRecord>> =
            attempts.iter().map(|attempts| attempts.iter().copied().find(|attempt| attempt.valid)).collect();
        let missing = attempts.iter().zip(&valid).filter(|(_, valid)| valid.is_none());
        let reasons = missing.map(|(attempts, _)| match attempts.last() {
            Some(last) => last.reasons.join("; "),
            None => "not run".to_owned(),
        });
        let quantities = experiment.plots().iter().map(|plot| plot.y);
        let of_runs = |quantity: Quantity| {
            let runs = valid.iter().map(|record| record.and_then(|record| record.measured.get(&quantity)));
            Spread::of(runs.map(Option::<&f64>::copied).collect())
        };
        let diagnosis = |record: &&RunRecord| record.session.as_ref()?.diagnosis.clone();
        let mut limits = BTreeMap::new();
        for diagnosis in valid.iter().flatten().filter_map(diagnosis) {
            *limits.entry(diagnosis.limit).or_default() += 1;
        }
        let gain = |record: &Option<&RunRecord>| record.as_ref().and_then(diagnosis)?.gain;
        let predicted_gain = Spread::of(valid.iter().map(gain).collect());
        let setup = &plan.cells[cell].setup;
        let mut connections: Vec<usize> =
            valid.iter().flatten().map(|record| record.sockets.sockets.len()).collect();
        connections.sort_unstable();
        Self {
            values: plan.values(cell),
            bytes: setup.amount().map(|amount| amount.0),
            link: setup.payload_bits_per_second(setup.read_share()).round(),
            connections: connections.get(connections.len() / 2).copied().unwrap_or(0),
            planned: valid.len(),
            valid: valid.iter().flatten().count(),
            invalid_attempts: attempts.iter().flatten().filter(|attempt| !attempt.valid).count(),
            measured: quantities.filter_map(|quantity| Some((quantity, of_runs(quantity)?))).collect(),
            predicted: predicted(cell, experiment, plan, folder),
            limits,
            predicted_gain,
            reasons: reasons.collect(),
        }
    }
}

fn predicted(
    cell: usize,
    experiment: &Experiment,
    plan: &Plan,
    folder: &Folder,
) -> BTreeMap<Quantity, BTreeMap<Theory, f64>> {
    let of_plots =
        experiment.plots().iter().flat_map(|plot| plot.theory.iter().map(|theory| (plot.y, *theory)));
    let of_predictions = experiment.predictions().iter().map(|prediction| (prediction.of, prediction.by));
    let mut predicted = BTreeMap::<_, BTreeMap<_, _>>::new();
    for (quantity, theory) in of_plots.chain(of_predictions).filter(|(_, theory)| *theory != Theory::Link) {
        if let Some(value) = theoretical(theory, quantity, cell, plan, folder) {
            predicted.entry(quantity).or_default().insert(theory, four_digits(value));
        }
    }
    predicted
}

impl Spread {
    /// The spread of these runs; `None` if none has a value.
    #[must_use]
    pub fn of(runs: Vec<Option<f64>>) -> Option<Self> {
        let sample = Sample::of(runs.iter().flatten().copied())?;
        let [median, min, max] = [sample.median(), sample.min(), sample.max()].map(four_digits);
        Some(Self { median, min, max, runs: runs.into_iter().map(|run| run.map(four_digits)).collect() })
    }

    /// Each run divided by the same repetition of another.
    #[must_use]
    pub fn share_of(&self, other: &Self) -> Option<Self> {
        let pairs = self.runs.iter().zip(&other.runs);
        Self::of(pairs.map(|(run, other)| Some((*run)? / (*other)?)).collect())
    }
}

/// Measurements have no more digits than that.
fn four_digits(value: f64) -> f64 {
    format!("{value:.3e}").parse().expect("a number was written")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_that_of_the_same_repetition() {
        let copy = Spread::of(vec![Some(60.0), None, Some(90.0)]).unwrap();
        let plain = Spread::of(vec![Some(120.0), Some(130.0), Some(100.0)]).unwrap();
        let share = copy.share_of(&plain).unwrap();
        assert_eq!(share.runs, [Some(0.5), None, Some(0.9)]);
        assert_eq!((share.median, share.min, share.max), (0.7, 0.5, 0.9));
        assert_eq!(Spread::of(vec![None]), None);
    }

    #[test]
    fn numbers_are_as_long_as_they_are_true() {
        assert_eq!([1234.56, 0.001_234_56, 0.0].map(four_digits), [1235.0, 0.001_235, 0.0]);
    }
}
