//! Compares our target with others, under the same clients.

use crate::contender::Contender;
use crate::measure::Sample;
use crate::statistics::{median, spread};
use crate::workload::Workload;
use crate::{Effort, WORKING_SET_MIB};
use std::fmt::Write;
use std::fs::File;
use std::path::{Path, PathBuf};

/// The client's load above which the client is the bottleneck, so that the cell says nothing about the target.
const CLIENT_BOUND_LOAD: f64 = 0.9;

/// The file that is the other targets' disk. Dropping this value removes the file.
struct MemoryFile(PathBuf);

impl MemoryFile {
    fn create() -> anyhow::Result<Self> {
        let path = Path::new("/dev/shm").join(format!("ropewalk-benches-{}.raw", std::process::id()));
        File::create(&path)?.set_len(WORKING_SET_MIB << 20)?;
        Ok(Self(path))
    }
}

impl Drop for MemoryFile {
    fn drop(&mut self) {
        // A failure to remove the file is ignored.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// One cell: for each contender, a sample of each round.
struct Cell {
    workload: Workload,
    samples: Vec<Vec<Sample>>,
}

impl Cell {
    fn median(&self, contender: usize, number: impl Fn(&Sample) -> f64) -> f64 {
        median(self.samples[contender].iter().map(number))
    }

    /// The index of the fastest other target.
    fn best_peer(&self) -> usize {
        let speed = |contender: &usize| self.median(*contender, |sample| sample.bytes_per_second);
        (1..self.samples.len()).max_by(|a, b| speed(a).total_cmp(&speed(b))).unwrap_or_default()
    }

    /// Our speed divided by another target's, round by round.
    fn ratios(&self, peer: usize) -> Vec<f64> {
        let rounds = self.samples[0].iter().zip(&self.samples[peer]);
        rounds.map(|(ours, theirs)| ours.bytes_per_second / theirs.bytes_per_second).collect()
    }

    fn is_client_bound(&self) -> bool {
        self.median(0, |sample| sample.client_load) > CLIENT_BOUND_LOAD
    }
}

pub fn measure(effort: Effort) -> anyhow::Result<String> {
    let file = MemoryFile::create()?;
    let contenders = Contender::all(&file.0)?;
    let mut cells = Vec::new();
    for workload in Workload::all() {
        eprintln!("{workload}");
        let mut samples = vec![Vec::new(); contenders.len()];
        for _ in 0..effort.rounds {
            for (contender, samples) in contenders.iter().zip(&mut samples) {
                samples.push(workload.run(contender, effort.duration)?);
            }
        }
        cells.push(Cell { workload, samples });
    }
    report(&contenders, &cells)
}

fn report(contenders: &[Contender], cells: &[Cell]) -> anyhow::Result<String> {
    let mut text = String::from(
        "## Our target beside others\n\n\
         Reads by `iscsi-perf`, writes by `qemu-img bench -w`, one connection. MB/s (10^6 bytes); in brackets the \
         target's processor seconds per GiB. Ratio: ours to the best of the others in that cell, with the smallest \
         and largest of the rounds. † the client used more than 90 % of its core with our target, so the ratio says \
         little about the target.\n\n",
    );
    let names: Vec<&str> = contenders.iter().map(|contender| contender.name).collect();
    writeln!(text, "| cell | {} | ratio |", names.join(" | "))?;
    writeln!(text, "|---|{}---:|", "---:|".repeat(names.len()))?;
    for cell in cells {
        write!(text, "| {}{} |", cell.workload, if cell.is_client_bound() { " †" } else { "" })?;
        for contender in 0..contenders.len() {
            let speed = cell.median(contender, |sample| sample.bytes_per_second) / 1e6;
            let cost = cell.median(contender, |sample| sample.target_seconds_per_gib);
            write!(text, " {speed:.0} ({cost:.2}) |")?;
        }
        let ratios = cell.ratios(cell.best_peer());
        let (least, most) = spread(&ratios);
        writeln!(text, " {:.2} ({least:.2}–{most:.2}) |", median(ratios))?;
    }
    let free: Vec<f64> = cells
        .iter()
        .filter(|cell| !cell.is_client_bound())
        .map(|cell| median(cell.ratios(cell.best_peer())))
        .collect();
    match geometric_mean(&free) {
        Some(mean) => {
            writeln!(
                text,
                "\nGeometric mean of the ratios of the {} cells without †: {mean:.2}.",
                free.len()
            )?;
        }
        None => writeln!(text, "\nEvery cell was limited by its client.")?,
    }
    let costs: Vec<f64> = cells.iter().map(cost_ratio).filter(|ratio| ratio.is_finite()).collect();
    if let Some(mean) = geometric_mean(&costs) {
        writeln!(text, "Processor time per GiB, ours to the best of the others' in all cells: {mean:.2}.")?;
    }
    Ok(text)
}

/// Our processor time per GiB, divided by the least of the others'.
fn cost_ratio(cell: &Cell) -> f64 {
    let cost = |contender| cell.median(contender, |sample| sample.target_seconds_per_gib);
    let least = (1..cell.samples.len()).map(cost).fold(f64::INFINITY, f64::min);
    cost(0) / least
}

/// The geometric mean; `None` for no values.
fn geometric_mean(values: &[f64]) -> Option<f64> {
    let logarithms: f64 = values.iter().map(|value| value.ln()).sum();
    // There are at most a few dozen values.
    (!values.is_empty()).then(|| (logarithms / values.len() as f64).exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_geometric_mean_of_a_double_and_a_half_is_one() {
        assert!((geometric_mean(&[2.0, 0.5]).unwrap() - 1.0).abs() < 1e-9);
        assert_eq!(geometric_mean(&[]), None);
    }
}
