//! The times of captured commands.

use super::run_over_time::{RunOverTime, RunsOverTime};
use crate::experiment::Plan;
use crate::results::FolderError;
use observe::report::{Cell, Section, Table, Unit};
use observe::statistics::Statistic;
use observe::{CommandSummary, Kind};

/// A table for every captured combination; `None` if there is none.
pub(super) fn section(plan: &Plan, runs: &mut RunsOverTime<'_>) -> Result<Option<Section>, FolderError> {
    let mut tables = Vec::new();
    for cell in (0..plan.cells.len()).filter(|cell| plan.cells[*cell].setup.capture.is_some()) {
        if let Some(run) = runs.of_cell(cell)? {
            tables.push(Table { title: plan.describe(cell), ..table(run) });
        }
    }
    Ok((!tables.is_empty()).then(|| Section {
        heading: "Commands as they were captured".to_owned(),
        paragraphs: vec![format!(
            "{} Of one run for each combination, those commands that were captured whole.",
            CommandSummary::TIMES_EXPLAINED
        )],
        tables,
        ..Section::default()
    }))
}

fn table(run: &RunOverTime<'_>) -> Table {
    let is_valid = run.record.valid;
    let mut table = Table::of_times(["time"]);
    let mut row = |name: String, cells: [Cell; 8]| table.row([Cell::Text(name)].into_iter().chain(cells));
    for (kind, label) in [(Kind::Write, "writes"), (Kind::Read, "reads")] {
        let Some(summary) = CommandSummary::of(kind, run.captured()) else { continue };
        for (name, statistic) in summary.times() {
            row(format!("{label}: {name}"), statistic.cells(is_valid));
        }
        let of_kind = run.captured().filter(|command| command.kind == kind && command.whole);
        let gaps = of_kind.flat_map(|command| &command.gaps).map(|gap| gap.duration_ns);
        if let Some(statistic) = Statistic::of(gaps) {
            row(format!("{label}: one gap"), statistic.cells(is_valid));
        }
    }
    for connection in run.record.capture.iter().flat_map(|capture| &capture.connections) {
        let Some(rtt) = connection.rtt else { continue };
        let [mean, min, max] = [rtt.mean_ns, rtt.min_ns, rtt.max_ns]
            .map(|time_ns| Cell::number(Some(time_ns as f64 / 1e9), is_valid));
        let unknown = || Cell::Empty;
        let cells =
            [Cell::from(rtt.samples as f64), mean, unknown(), min, unknown(), unknown(), unknown(), max];
        row("round trip to the target".to_owned(), cells);
    }
    table.note = note(run);
    table
}

/// The reasons for doubt, and the gaps of the capture.
fn note(run: &RunOverTime<'_>) -> String {
    let mut notes = Vec::new();
    if !run.record.valid {
        notes.push(format!("×: not valid: {}.", run.record.reasons.join("; ")));
    }
    let Some(capture) = &run.record.capture else { return notes.concat() };
    if capture.frames_lost > 0 {
        notes.push(format!("The capture was full after {} frames.", capture.frames));
    }
    if capture.connections.is_empty() {
        notes.push("It holds no iSCSI.".to_owned());
    }
    let missed_bytes: u64 = capture.connections.iter().map(|connection| connection.missed_bytes).sum();
    if missed_bytes > 0 {
        notes.push(format!("It missed {}.", Unit::Bytes.format(missed_bytes as f64)));
    }
    notes.join(" ")
}
