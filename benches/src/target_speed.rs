//! Compares our target with others, under the same clients.

use crate::contender::{Contender, FIRST_PEER, ROPEWALK_FILE};
use crate::measure::{Measurement, rounds, with_spread};
use crate::workload::Workload;
use crate::{Effort, WORKING_SET_MIB};
use anyhow::Context;
use observe::statistics::Sample;
use std::fmt::Write;
use std::ops::Range;

/// The client's load above which the client is the bottleneck, so that the cell says nothing about the target.
const CLIENT_BOUND_LOAD: f64 = 0.9;

/// One cell: for each contender, the runs of all rounds.
struct Cell {
    workload: Workload,
    runs: Vec<Vec<Measurement>>,
}

impl Cell {
    fn measure(workload: Workload, contenders: &[Contender], effort: Effort) -> anyhow::Result<Self> {
        let mut runs = vec![Vec::new(); contenders.len()];
        for _ in 0..effort.rounds {
            for (contender, runs) in contenders.iter().zip(&mut runs) {
                runs.push(workload.run(contender, effort.duration)?);
            }
        }
        Ok(Self { workload, runs })
    }

    fn median(&self, contender: usize, number: impl Fn(&Measurement) -> f64) -> anyhow::Result<f64> {
        Ok(rounds(self.runs[contender].iter().map(number))?.median())
    }

    fn speed(&self, contender: usize) -> anyhow::Result<f64> {
        self.median(contender, |run| run.bytes_per_second)
    }

    /// The target's processor seconds per GiB.
    fn cost(&self, contender: usize) -> anyhow::Result<f64> {
        self.median(contender, |run| run.target_seconds_per_gib)
    }

    fn peers(&self) -> Range<usize> {
        FIRST_PEER..self.runs.len()
    }

    /// Ropewalk's speed divided by that of the fastest peer, round by round. All of them serve the same file.
    fn ratios_to_best_peer(&self) -> anyhow::Result<Sample> {
        let speeds: Vec<f64> = self.peers().map(|peer| self.speed(peer)).collect::<anyhow::Result<_>>()?;
        let best = self.peers().zip(speeds).max_by(|a, b| a.1.total_cmp(&b.1)).context("no peer")?.0;
        let pairs = self.runs[ROPEWALK_FILE].iter().zip(&self.runs[best]);
        rounds(pairs.map(|(ours, theirs)| ours.bytes_per_second / theirs.bytes_per_second))
    }

    /// Ropewalk's processor time per GiB, divided by the least of the peers', on the same file.
    fn cost_ratio(&self) -> anyhow::Result<f64> {
        let costs: Vec<f64> = self.peers().map(|peer| self.cost(peer)).collect::<anyhow::Result<_>>()?;
        Ok(self.cost(ROPEWALK_FILE)? / rounds(costs)?.min())
    }

    fn is_client_bound(&self) -> anyhow::Result<bool> {
        Ok(self.median(ROPEWALK_FILE, |run| run.client_load)? > CLIENT_BOUND_LOAD)
    }

    /// The cell's row of the table.
    fn row(&self) -> anyhow::Result<String> {
        let mark = if self.is_client_bound()? { " †" } else { "" };
        let mut row = format!("| {}{mark} |", self.workload);
        for contender in 0..self.runs.len() {
            write!(row, " {:.0} ({:.2}) |", self.speed(contender)? / 1e6, self.cost(contender)?)?;
        }
        writeln!(row, " {} |", with_spread(&self.ratios_to_best_peer()?))?;
        Ok(row)
    }
}

pub fn measure(effort: Effort) -> anyhow::Result<String> {
    // The disk of the peers, and of ropewalk beside them.
    let file = tempfile::Builder::new().suffix(".raw").tempfile_in("/dev/shm")?;
    file.as_file().set_len(WORKING_SET_MIB << 20)?;
    let contenders = Contender::all(file.path())?;
    let mut cells = Vec::new();
    for workload in Workload::all() {
        eprintln!("{workload}");
        cells.push(Cell::measure(workload, &contenders, effort)?);
    }
    let names: Vec<&str> = contenders.iter().map(|contender| contender.name).collect();
    report(&names, &cells)
}

fn report(names: &[&str], cells: &[Cell]) -> anyhow::Result<String> {
    let mut text = String::from(
        "## Our target beside others\n\n\
         Reads by `iscsi-perf`, writes by `qemu-img bench -w`, one connection. \"ropewalk, file\", tgt and istgt serve \
         the same file in `/dev/shm`; \"ropewalk, RAM\" serves `ram:`, memory of its own. MB/s (10^6 bytes); in brackets \
         the target's processor seconds per GiB. Ratio: \"ropewalk, file\" to the best of tgt and istgt in that cell, \
         with the smallest and largest of the rounds. † the client used more than 90 % of its core with \
         \"ropewalk, file\", so the ratio says little about the target.\n\n",
    );
    writeln!(text, "| cell | {} | ratio |", names.join(" | "))?;
    writeln!(text, "|---|{}---:|", "---:|".repeat(names.len()))?;
    for cell in cells {
        text += &cell.row()?;
    }
    text += &means(cells)?;
    Ok(text)
}

/// The means of the ratios, in two sentences.
fn means(cells: &[Cell]) -> anyhow::Result<String> {
    let (mut ratios, mut costs) = (Vec::new(), Vec::new());
    for cell in cells {
        if !cell.is_client_bound()? {
            ratios.push(cell.ratios_to_best_peer()?.median());
        }
        costs.push(cell.cost_ratio()?);
    }
    costs.retain(|ratio| ratio.is_finite());
    let mut text = match geometric_mean(&ratios) {
        Some(mean) => {
            format!("\nGeometric mean of the ratios of the {} cells without †: {mean:.2}.\n", ratios.len())
        }
        None => "\nEvery cell was limited by its client.\n".to_owned(),
    };
    if let Some(mean) = geometric_mean(&costs) {
        writeln!(
            text,
            "Processor time per GiB, \"ropewalk, file\" to the best of tgt and istgt in all cells: {mean:.2}."
        )?;
    }
    Ok(text)
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
    use crate::workload::Operation;

    /// A cell in which the contenders move so many bytes per second in every round.
    fn cell(speeds: &[f64]) -> Cell {
        let run = |bytes_per_second| Measurement {
            bytes_per_second,
            target_seconds_per_gib: 1.0,
            client_load: 0.5,
        };
        let workload = Workload { operation: Operation::Read, request_bytes: 4096, requests: 1 };
        Cell { workload, runs: speeds.iter().map(|speed| vec![run(*speed); 3]).collect() }
    }

    #[test]
    fn the_ratio_compares_targets_that_serve_the_same_file() {
        let names = ["ropewalk, RAM", "ropewalk, file", "tgt", "istgt"];
        let text = report(&names, &[cell(&[9e6, 6e6, 2e6, 4e6])]).unwrap();
        let row = "| read 4K × 1 | 9 (1.00) | 6 (1.00) | 2 (1.00) | 4 (1.00) | 1.50 (1.50–1.50) |";
        assert!(text.contains(row), "{text}");
        assert!(text.contains("1 cells without †: 1.50."), "{text}");
    }

    #[test]
    fn the_geometric_mean_of_a_double_and_a_half_is_one() {
        assert!((geometric_mean(&[2.0, 0.5]).unwrap() - 1.0).abs() < 1e-9);
        assert_eq!(geometric_mean(&[]), None);
    }
}
