//! What runs with a tuner moved, and over how many connections, as time passed.

use crate::again::slices_of;
use crate::{CONNECTIONS, PATH, value};
use lab::{Folder, RunRecord};
use observe::statistics::Sample;
use pdu::Duration;
use policy::tuner::Slice;

/// The rate is that of this time.
const WINDOW: Duration = Duration::from_secs(5);

/// A run with a tuner, as that saw it.
struct Run {
    path: String,
    tuner: String,
    slices: Vec<Slice>,
}

/// A line for each path and tuner: at each of these times, in seconds since the tuner's first look, the rate of the last
/// five seconds and the connections, medians over the valid runs.
///
/// # Errors
/// If a folder cannot be read, or is of another experiment.
pub fn table(folders: &[Folder], times: &[f64]) -> anyhow::Result<String> {
    let records = folders.iter().flat_map(|folder| folder.records.iter().map(move |record| (folder, record)));
    let runs = records.filter(|(_, record)| record.valid).map(|(folder, record)| Run::of(folder, record));
    let mut runs: Vec<Run> = runs.collect::<anyhow::Result<_>>()?;
    runs.retain(|run| !run.slices.is_empty());
    let kinds = lab::each_once(runs.iter().map(|run| (run.path.clone(), run.tuner.clone())));
    let heads: String = times.iter().map(|at| format!(" at {at} s |")).collect();
    let rules = "---|".repeat(times.len());
    let mut text = format!("| path | tuner | runs |{heads}\n|---|---|---:|{rules}\n");
    for (path, tuner) in kinds {
        let alike: Vec<&Run> = runs.iter().filter(|run| (&run.path, &run.tuner) == (&path, &tuner)).collect();
        let cells: String = times.iter().map(|at| format!(" {} |", cell(&alike, *at))).collect();
        text += &format!("| {path} | {tuner} | {} |{cells}\n", alike.len());
    }
    Ok(text)
}

impl Run {
    fn of(folder: &Folder, record: &RunRecord) -> anyhow::Result<Self> {
        let slices = slices_of(&folder.samples(record)?).map(|sample| sample.slice).collect();
        Ok(Self {
            path: value(record, PATH)?.to_owned(),
            tuner: value(record, CONNECTIONS)?.to_owned(),
            slices,
        })
    }

    /// The rate in Mbit/s, and the connections; `None` where no slice ended in that time.
    fn at(&self, seconds: f64) -> Option<(f64, f64)> {
        let first = self.slices.first()?;
        let until = first.end + Duration::from_secs_f64(seconds);
        let window = || self.slices.iter().filter(|slice| slice.end <= until && slice.end + WINDOW > until);
        let bytes: u64 = window().map(|slice| slice.moved_bytes).sum();
        let length: Duration = window().map(|slice| slice.length).sum();
        let last = window().next_back()?;
        Some((bytes as f64 * 8e-6 / length.as_secs_f64(), last.connections.into()))
    }
}

/// What runs of one kind did at that time.
fn cell(runs: &[&Run], seconds: f64) -> String {
    let (rates, connections): (Vec<f64>, Vec<f64>) = runs.iter().filter_map(|run| run.at(seconds)).unzip();
    match (Sample::of(rates), Sample::of(connections)) {
        (Some(rates), Some(connections)) => {
            format!("{:.0} Mbit/s over {:.0}", rates.median(), connections.median())
        }
        _ => "–".to_owned(),
    }
}
