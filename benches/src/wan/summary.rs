//! Medians and spreads of a series of copies.

use anyhow::Context;
use lab::netem::{ETHERNET_FRAMING, MTU, Rate};
use lab::{Folder, Form, Machine, ManifestRun, Quantity, RunRecord};
use observe::report::rfc3339;
use observe::statistics::Sample;
use policy::time_model::{TCP_IPV4_BYTES, payload_bits_per_second};
use serde::{Deserialize, Serialize};
use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

/// A series and its cells.
#[derive(Debug, Deserialize)]
pub struct Summary {
    pub series: Series,
    /// In the order of the experiment.
    pub cells: Vec<Cell>,
}

/// What was measured, when, and on which machine.
#[derive(Debug, Serialize, Deserialize)]
pub struct Series {
    pub title: String,
    pub form: Form,
    /// The version of ropewalk, and the commits of the builds that measured.
    pub ropewalk: String,
    pub revisions: Vec<String>,
    pub machine: Machine,
    /// The start, in UTC.
    pub begun: String,
    pub runs: Counts,
}

/// Numbers of runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// The runs of the experiment.
    pub planned: usize,
    /// Those with a VALID attempt.
    pub valid: usize,
    /// All INVALID attempts.
    pub invalid_attempts: usize,
}

/// The runs of one combination; rates are in Mbit/s of payload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    pub path: String,
    pub congestion_control: String,
    pub direction: String,
    pub copy: String,
    /// The payload rate of the path's bottleneck.
    pub link: f64,
    /// The most TCP connections that the client had.
    pub connections: usize,
    pub valid_runs: usize,
    pub invalid_attempts: usize,
    /// Of the valid runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Spread>,
    /// Why the last attempt is INVALID, if no run is VALID.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Rates of several runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    pub median: f64,
    pub min: f64,
    pub max: f64,
}

impl Summary {
    /// Summarises a folder of results.
    ///
    /// # Errors
    /// If it cannot be read, or has results of another experiment.
    pub fn of(results: &Path) -> anyhow::Result<Self> {
        let folder = Folder::open(results)?;
        let of_first_repetition = folder.manifest.runs.iter().filter(|run| run.repetition == 1);
        let cells =
            of_first_repetition.map(|run| Cell::of(run, &folder)).collect::<anyhow::Result<Vec<_>>>()?;
        let manifest = &folder.manifest;
        let mut revisions: Vec<String> =
            folder.records.iter().filter_map(|record| record.program.as_ref()?.revision.clone()).collect();
        revisions.sort();
        revisions.dedup();
        let runs = Counts {
            planned: manifest.runs.len(),
            valid: cells.iter().map(|cell| cell.valid_runs).sum(),
            invalid_attempts: cells.iter().map(|cell| cell.invalid_attempts).sum(),
        };
        let series = Series {
            title: manifest.title.clone(),
            form: manifest.form,
            ropewalk: manifest.ropewalk.clone(),
            revisions,
            machine: manifest.machine.clone(),
            begun: rfc3339(Duration::from_secs(manifest.begun_unix_seconds)),
            runs,
        };
        Ok(Self { series, cells })
    }

    /// The file, with a line for each cell.
    pub fn json(&self) -> anyhow::Result<String> {
        let mut text = format!("{{\n\"series\": {},\n\"cells\": [\n", serde_json::to_string(&self.series)?);
        for (index, cell) in self.cells.iter().enumerate() {
            let comma = if index + 1 < self.cells.len() { "," } else { "" };
            writeln!(text, "{}{comma}", serde_json::to_string(cell)?)?;
        }
        text += "]\n}\n";
        Ok(text)
    }

    /// The different values of a property of the cells, in order.
    pub fn values(&self, of: impl Fn(&Cell) -> &str) -> Vec<&str> {
        let mut values = Vec::new();
        for cell in &self.cells {
            if !values.contains(&of(cell)) {
                values.push(of(cell));
            }
        }
        values
    }

    /// The cell of this copy in the place of `like`.
    pub fn beside(&self, like: &Cell, copy: &str) -> Option<&Cell> {
        self.cells.iter().find(|cell| {
            cell.copy == copy
                && cell.path == like.path
                && cell.congestion_control == like.congestion_control
                && cell.direction == like.direction
        })
    }
}

impl Cell {
    fn of(run: &ManifestRun, folder: &Folder) -> anyhow::Result<Self> {
        let value = |variable: &str| {
            let value = run.values.get(variable).cloned();
            value.with_context(|| {
                format!("the results have no variable \"{variable}\": they are of another experiment")
            })
        };
        let records: Vec<&RunRecord> =
            folder.records.iter().filter(|record| record.values == run.values).collect();
        let valid: Vec<&RunRecord> = records.iter().copied().filter(|record| record.valid).collect();
        let rates = valid.iter().filter_map(|record| record.measured.get(&Quantity::Throughput).copied());
        let rate = Sample::of(rates).map(|sample| Spread::of(&sample));
        let last = records.last().filter(|_| valid.is_empty());
        let rate_of_link: Rate = run
            .setup
            .get("link")
            .and_then(|link| link.get("rate")?.as_str())
            .context("a link has a rate")?
            .parse()?;
        let link =
            payload_bits_per_second(rate_of_link.bits().get() as f64, MTU, TCP_IPV4_BYTES, ETHERNET_FRAMING);
        Ok(Self {
            path: value("path")?,
            congestion_control: value("congestion control")?,
            direction: value("direction")?,
            copy: value("copy")?,
            link: megabits(link),
            connections: records.iter().map(|record| record.sockets.sockets.len()).max().unwrap_or(0),
            valid_runs: valid.len(),
            invalid_attempts: records.len() - valid.len(),
            rate,
            reason: last.map(|record| record.reasons.join("; ")),
        })
    }
}

impl Spread {
    fn of(sample: &Sample) -> Self {
        Self { median: megabits(sample.median()), min: megabits(sample.min()), max: megabits(sample.max()) }
    }
}

/// Mbit/s, to a tenth.
fn megabits(bits_per_second: f64) -> f64 {
    (bits_per_second / 1e5).round() / 10.0
}
