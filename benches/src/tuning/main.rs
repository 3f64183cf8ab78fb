//! Scores tuners against the best fixed number of connections, from the results of `experiments/003/tuning.toml` and of
//! those like it, as a table and a JSON file.

#![forbid(unsafe_code)]

mod again;
mod curve;
mod over_time;
mod score;

use again::Again;
use anyhow::Context;
use clap::Parser;
use curve::Curve;
use lab::{Folder, Quantity, RunRecord, SeriesSummary, Summary};
use score::{PathScore, Tuned};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs;
use std::iter;
use std::path::PathBuf;

/// Score tuners against the best fixed number of connections; print a table.
#[derive(Debug, Parser)]
struct Options {
    /// The folders of the results: those with the fixed numbers, and more with other tuners over the same paths.
    #[arg(value_name = "FOLDER", required = true)]
    results: Vec<PathBuf>,
    /// The times at which the paths change, and the end, in seconds: each part is scored by itself.
    #[arg(long, value_name = "SECONDS", value_delimiter = ',')]
    changes: Vec<f64>,
    /// Instead of scores, say what runs with a tuner moved at these times, in seconds, and over how many connections.
    #[arg(long, value_name = "SECONDS", value_delimiter = ',', conflicts_with_all = ["changes", "summary"])]
    over_time: Vec<f64>,
    /// Instead of scores, say what the tuner that is here now decides over the same slices of time.
    #[arg(long, conflicts_with_all = ["changes", "over_time", "summary"])]
    again: bool,
    /// A file for the same numbers, in JSON.
    #[arg(long)]
    summary: Option<PathBuf>,
}

/// The experiment's variables.
const PATH: &str = "path";
const CONNECTIONS: &str = "connections";

/// What is written as JSON.
#[derive(Serialize)]
struct Scores {
    series: Vec<SeriesSummary>,
    paths: Vec<PathScore>,
}

/// A part of each run, from and to these seconds of the path's time, which begins while the disk is still being made.
type Part = (f64, f64);

impl Options {
    /// The parts to score, in order; the whole of each run is one without a name.
    fn parts(&self) -> Vec<(String, Part)> {
        if self.changes.is_empty() {
            return vec![(String::new(), (0.0, f64::MAX))];
        }
        let begins = iter::once(0.0).chain(self.changes.iter().copied());
        let parts = begins.zip(self.changes.iter().copied());
        parts.map(|(from, to)| (format!(", {from} to {to} s"), (from, to))).collect()
    }
}

fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    let folders: Vec<Folder> =
        options.results.iter().map(|folder| Folder::open(folder)).collect::<Result<_, _>>()?;
    if options.again {
        return decide_again(&folders);
    }
    if !options.over_time.is_empty() {
        print!("{}", over_time::table(&folders, &options.over_time)?);
        return Ok(());
    }
    let series = folders.iter().map(|folder| Ok(Summary::of(folder)?.series));
    let scores = Scores {
        series: series.collect::<anyhow::Result<_>>()?,
        paths: score_all(&folders, &options.parts())?,
    };
    print!("{}", table(&scores.paths));
    if let Some(file) = &options.summary {
        let text = serde_json::to_string_pretty(&scores)? + "\n";
        fs::write(file, text).with_context(|| format!("writing {}", file.display()))?;
    }
    Ok(())
}

/// A line for each run that has a tuner.
fn decide_again(folders: &[Folder]) -> anyhow::Result<()> {
    println!("| run | of | decisions | now |\n|---:|---|---:|---|");
    let records = folders.iter().flat_map(|folder| folder.records.iter().map(move |record| (folder, record)));
    for (folder, record) in records {
        if let Some(again) = Again::of(folder, record)? {
            println!("{again}");
        }
    }
    Ok(())
}

/// The paths in the order of the folders' experiments.
fn score_all(folders: &[Folder], parts: &[(String, Part)]) -> anyhow::Result<Vec<PathScore>> {
    let mut paths = Vec::<String>::new();
    for folder in folders {
        let plan = folder.plan(&folder.experiment()?)?;
        paths.extend(plan.labels(PATH).into_iter().map(str::to_owned));
    }
    let paths = lab::each_once(paths);
    let scores = paths.iter().flat_map(|path| {
        parts.iter().map(move |(name, part)| score(folders, path, &format!("{path}{name}"), *part))
    });
    scores.collect()
}

fn score(folders: &[Folder], path: &str, name: &str, part: Part) -> anyhow::Result<PathScore> {
    let mut runs = BTreeMap::<&str, Vec<Tuned>>::new();
    for (folder, record) in
        folders.iter().flat_map(|folder| folder.records.iter().map(move |record| (folder, record)))
    {
        if record.valid && value(record, PATH)? == path {
            runs.entry(value(record, CONNECTIONS)?).or_default().push(run(folder, record, part)?);
        }
    }
    Ok(PathScore::of(name, &runs))
}

/// The value that a run has for one of the experiment's variables.
fn value<'a>(record: &'a RunRecord, variable: &str) -> anyhow::Result<&'a str> {
    let value = record.values.get(variable).context("the results are of another experiment")?;
    Ok(value)
}

fn run(folder: &Folder, record: &RunRecord, (from, to): Part) -> anyhow::Result<Tuned> {
    let decisions = record.session.as_ref().map(|session| session.decisions.as_slice()).unwrap_or_default();
    let samples = folder.samples(record)?;
    let sockets = &record.sockets.sockets;
    let is_of_session = |connection: usize| {
        sockets.get(connection).is_some_and(|socket| socket.peer.port() == initiator::DEFAULT_PORT)
    };
    let acknowledged = Curve::of(&samples, is_of_session);
    let first_ns = curve::first_request_ns(&samples).unwrap_or_default();
    let late_s = first_ns.saturating_sub(record.relay.begun_ns) as f64 / 1e9;
    let (from, to) = ((from - late_s).max(0.0), to - late_s);
    let last = decisions.iter().rfind(|decision| decision.at_s < to);
    let curve = match completed_bytes_per_second(record) {
        Some(rate) if to == f64::MAX => Curve::steady(rate, acknowledged.seconds()),
        _ => acknowledged.part(from, to),
    };
    Ok(Tuned {
        repetition: record.repetition,
        curve,
        connections: last.map(|decision| decision.connections),
        bbr: last.is_some_and(|decision| decision.bbr),
    })
}

/// What the disk completed over the whole run, if it has a limit of its own: of what the network acknowledged then, much may
/// still wait in the target's memory.
fn completed_bytes_per_second(record: &RunRecord) -> Option<f64> {
    let disk = record.setup.get("scsi")?.get("disk")?;
    disk.get("rate")?;
    Some(record.measured.get(&Quantity::Throughput)? / 8.0)
}

fn table(paths: &[PathScore]) -> String {
    let mut text = "| path | fixed: connections, Mbit/s | tuner | of the best fixed number's bytes | lost, s | \
                    within 90 % after | rate at the end | connections at the end |\n|---|---|---|---:|---:|---:|---:|---|\n"
        .to_owned();
    for path in paths {
        let fixed = path.fixed.iter().map(|(connections, megabits)| format!("{connections}: {megabits:.1}"));
        let fixed = fixed.collect::<Vec<_>>().join(", ");
        for (number, tuner) in path.tuners.iter().enumerate() {
            let (name, fixed) = if number == 0 { (path.path.as_str(), fixed.as_str()) } else { ("", "") };
            text += &format!("| {name} | {fixed} | {tuner} |\n");
        }
    }
    text
}
