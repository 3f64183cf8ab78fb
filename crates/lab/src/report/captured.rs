//! Where the time of commands went, as it was captured.

use super::run_over_time::{RunOverTime, RunsOverTime};
use crate::experiment::Plan;
use crate::results::FolderError;
use observe::report::{Cell, Section, Table, Unit};
use observe::statistics::Sample;
use observe::{CommandReport, Kind};

/// A time of a command, in nanoseconds.
type Time = fn(&CommandReport) -> Option<u64>;

/// As [`observe::timing`] defines them.
const TIMES: [(&str, Time); 6] = [
    ("Ta", |command| Some(command.ta_ns)),
    ("Tb", |command| Some(command.tb_ns)),
    ("Tc", |command| command.tc_ns),
    ("turnaround", |command| Some(command.turnaround_ns)),
    ("R2T wait", |command| (command.r2ts > 0).then_some(command.r2t_wait_ns)),
    ("gaps of a command", |command| (command.gap_count > 0).then_some(command.gap_ns)),
];

/// What is told of each time beside how often it was measured.
const STATISTICS: [&str; 7] = ["mean", "SD", "min", "median", "p90", "p99", "max"];

/// A table for every combination that was captured; `None` if none was.
pub(super) fn section(plan: &Plan, runs: &mut RunsOverTime<'_>) -> Result<Option<Section>, FolderError> {
    let mut tables = Vec::new();
    for cell in (0..plan.cells.len()).filter(|cell| plan.cells[*cell].setup.capture.is_some()) {
        if let Some(run) = runs.of_cell(cell)? {
            tables.push(Table { title: plan.describe(cell), ..table(run) });
        }
    }
    Ok((!tables.is_empty()).then(|| Section {
        heading: "Commands as they were captured".to_owned(),
        paragraphs: vec![
            "Ta is the transfer of a command's data; Tb the target's time, from the last data of a write, or the \
             command of a read, to the status or the first data, less the round trip; Tc the initiator's time from a \
             status to the next command, if nothing was outstanding between. The turnaround is that from a command to \
             its status, and a gap a silence in the middle of its data. Of one run for each combination, those \
             commands that were captured whole."
                .to_owned(),
        ],
        tables,
        ..Section::default()
    }))
}

fn table(run: &RunOverTime<'_>) -> Table {
    let statistics_columns = STATISTICS.map(|name| (name, Unit::Seconds));
    let columns = [("time", Unit::None), ("number", Unit::None)].into_iter().chain(statistics_columns);
    let mut table = Table::new(columns);
    let mut row = |name: String, number: usize, statistics: [Option<f64>; 7]| {
        let statistics = statistics.into_iter().map(|number| Cell::number(number, run.record.valid));
        table.row([Cell::Text(name), Cell::from(number as f64)].into_iter().chain(statistics));
    };
    for (kind, label) in [(Kind::Write, "writes"), (Kind::Read, "reads")] {
        let of_kind = || run.captured().filter(|command| command.kind == kind && command.whole);
        for (name, time) in TIMES {
            if let Some(sample) = seconds(of_kind().filter_map(time)) {
                row(format!("{label}: {name}"), sample.count(), statistics(&sample));
            }
        }
        let gaps = of_kind().flat_map(|command| &command.gaps).map(|gap| gap.duration_ns);
        if let Some(sample) = seconds(gaps) {
            row(format!("{label}: one gap"), sample.count(), statistics(&sample));
        }
    }
    for connection in run.record.capture.iter().flat_map(|capture| &capture.connections) {
        let Some(rtt) = connection.rtt else { continue };
        let [mean, min, max] =
            [rtt.mean_ns, rtt.min_ns, rtt.max_ns].map(|time_ns| Some(time_ns as f64 / 1e9));
        let number = usize::try_from(rtt.samples).unwrap_or(usize::MAX);
        row("round trip to the target".to_owned(), number, [mean, None, min, None, None, None, max]);
    }
    table.note = note(run);
    table
}

fn seconds(times_ns: impl Iterator<Item = u64>) -> Option<Sample> {
    Sample::of(times_ns.map(|time_ns| time_ns as f64 / 1e9))
}

fn statistics(sample: &Sample) -> [Option<f64>; 7] {
    [
        Some(sample.mean()),
        sample.standard_deviation(),
        Some(sample.min()),
        Some(sample.median()),
        Some(sample.percentile(90.0)),
        Some(sample.percentile(99.0)),
        Some(sample.max()),
    ]
}

/// Why the numbers are not to be believed, and what the capture lacks.
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
