//! Compares diagnoses with what limited the runs of `experiments/diagnosis/limits.toml`, and predicted gains with those that
//! were reached, as a table and a JSON file.

#![forbid(unsafe_code)]

use anyhow::Context;
use clap::Parser;
use lab::{Folder, Quantity, RunRecord, SeriesSummary, Summary};
use observe::statistics::Sample;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::PathBuf;

/// Compare diagnoses with what limited the runs; print a table.
#[derive(Debug, Parser)]
struct Options {
    /// The folder of the results.
    #[arg(value_name = "FOLDER")]
    results: PathBuf,
    /// A file for the same numbers, in JSON.
    #[arg(long)]
    summary: Option<PathBuf>,
}

/// What is written as JSON.
#[derive(Serialize)]
struct Report {
    series: SeriesSummary,
    limits: Vec<Injected>,
}

/// One limit, set in several runs.
#[derive(Serialize)]
struct Injected {
    /// The limit, and what sets it.
    name: String,
    /// How often each verdict was given.
    verdicts: BTreeMap<String, usize>,
    right: usize,
    runs: usize,
    /// The median of the gains that the diagnoses predicted.
    predicted: Option<f64>,
    /// The median of the rates with the remedy, each by that of the same seed with the limit.
    achieved: Option<f64>,
    /// How far each prediction was from what was then reached, as a share of that.
    errors: Vec<f64>,
}

fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    let folder = Folder::open(&options.results)?;
    let plan = folder.plan(&folder.experiment()?)?;
    let limits = plan.labels("limit").into_iter().map(|limit| Injected::of(&folder, limit)).collect();
    let report = Report { series: Summary::of(&folder)?.series, limits };
    print!("{report}");
    if let Some(file) = &options.summary {
        let text = serde_json::to_string_pretty(&report)? + "\n";
        fs::write(file, text).with_context(|| format!("writing {}", file.display()))?;
    }
    Ok(())
}

/// The verdicts that are right; of two limits that are almost equal, either is.
fn right_verdicts(name: &str) -> Vec<&str> {
    match name {
        "disk and path" => vec!["target", "saturation"],
        "losses and timeouts" => vec!["losses", "timeouts"],
        _ => vec![name.split(',').next().unwrap_or(name)],
    }
}

impl Injected {
    fn of(folder: &Folder, name: &str) -> Self {
        let of_run = |run: &'static str| {
            let is_of = move |record: &&RunRecord| {
                let value = |variable: &str| record.values.get(variable).map(String::as_str);
                record.valid && value("limit") == Some(name) && value("run") == Some(run)
            };
            folder.records.iter().filter(is_of)
        };
        let rate = |record: &RunRecord| record.measured.get(&Quantity::Throughput).copied();
        let gain = |limited: &RunRecord| {
            let cured = of_run("cured").find(|cured| cured.repetition == limited.repetition)?;
            Some(rate(cured)? / rate(limited)?)
        };
        let predicted = |limited: &RunRecord| limited.session.as_ref()?.diagnosis.as_ref()?.gain;
        let pairs = of_run("limited").filter_map(|limited| predicted(limited).zip(gain(limited)));
        let errors = pairs.map(|(predicted, achieved)| (predicted - achieved).abs() / achieved).collect();
        let diagnoses: Vec<_> =
            of_run("limited").filter_map(|record| record.session.as_ref()?.diagnosis.as_ref()).collect();
        let mut verdicts = BTreeMap::new();
        for diagnosis in &diagnoses {
            *verdicts.entry(diagnosis.limit.clone()).or_default() += 1;
        }
        let right = right_verdicts(name).iter().filter_map(|verdict| verdicts.get(*verdict)).sum();
        Self {
            name: name.to_owned(),
            verdicts,
            right,
            runs: of_run("limited").count(),
            predicted: median(of_run("limited").filter_map(predicted)),
            achieved: median(of_run("limited").filter_map(gain)),
            errors,
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "| what limited | right | verdicts | predicted gain | achieved | error |")?;
        writeln!(formatter, "|---|---:|---|---:|---:|---:|")?;
        for limit in &self.limits {
            let Injected { name, verdicts, right, runs, predicted, achieved, errors } = limit;
            let verdicts =
                verdicts.iter().map(|(verdict, number)| format!("{verdict} {number}")).collect::<Vec<_>>();
            let gain = |gain: Option<f64>| gain.map_or("–".to_owned(), |gain| format!("{gain:.2}"));
            // A gain that nobody predicted has no error.
            let error = median(errors.iter().copied());
            let error = error.map_or("–".to_owned(), |error| format!("{:.0} %", error * 100.0));
            writeln!(
                formatter,
                "| {name} | {right} of {runs} | {} | {} | {} | {error} |",
                verdicts.join(", "),
                gain(*predicted),
                gain(*achieved),
            )?;
        }
        let sum = |number: fn(&Injected) -> usize| self.limits.iter().map(number).sum::<usize>();
        let errors = self.limits.iter().flat_map(|limit| limit.errors.iter().copied());
        let error = median(errors).unwrap_or(f64::NAN);
        writeln!(
            formatter,
            "\nRight: {} of {} runs. The median error of the predicted gains is {:.0} %.",
            sum(|limit| limit.right),
            sum(|limit| limit.runs),
            error * 100.0
        )
    }
}

fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    Sample::of(values).map(|sample| sample.median())
}
