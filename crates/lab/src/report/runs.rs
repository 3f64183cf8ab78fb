//! Every run: its measurements and its conditions.

use super::tables::{add_row, sorted, varied};
use crate::experiment::{Plan, Quantity};
use crate::relay::RelayReport;
use crate::results::{Folder, RunRecord};
use crate::rights::Rights;
use observe::report::{Cell, Section, Table, Unit, rfc3339};
use std::time::Duration;

pub(super) fn section(plan: &Plan, folder: &Folder) -> Section {
    Section {
        heading: "Every run".to_owned(),
        paragraphs: vec![
            "A run is INVALID if the relay between the two hosts had a part in what was measured. It is kept, and \
             tried again; what is drawn leaves it out as long as there is a valid one."
                .to_owned(),
        ],
        tables: vec![measured(plan, folder), circumstances(&folder.records)],
        ..Section::default()
    }
}

fn measured(plan: &Plan, folder: &Folder) -> Table {
    let quantities = quantities(plan, &folder.records);
    let numbers = quantities.iter().map(|quantity| (quantity.label(), quantity.unit()));
    let columns =
        [("run", Unit::None)].into_iter().chain(varied(plan)).chain(numbers).chain([("verdict", Unit::None)]);
    let mut table = Table::new(columns);
    for record in &folder.records {
        let varied = plan.variables.iter().map(|name| Cell::Text(record.values[name].clone()));
        let value = |quantity| record.measured.get(quantity).map_or(Cell::Empty, |value| Cell::from(*value));
        let verdict =
            if record.valid { "VALID".to_owned() } else { format!("INVALID: {}", record.reasons.join("; ")) };
        let measured = quantities.iter().map(value);
        add_row(&mut table, &[number(record)], record, varied.chain(measured).chain([Cell::Text(verdict)]));
    }
    table
}

/// All measured quantities.
fn quantities(plan: &Plan, records: &[RunRecord]) -> Vec<Quantity> {
    let mut quantities: Vec<Quantity> = plan.cells.iter().flat_map(|cell| cell.setup.quantities()).collect();
    quantities.sort();
    quantities.dedup();
    quantities.retain(|quantity| records.iter().any(|record| record.measured.contains_key(quantity)));
    quantities
}

fn circumstances(records: &[RunRecord]) -> Table {
    let columns = [
        ("run", Unit::None),
        ("seed", Unit::None),
        ("ended", Unit::None),
        ("rights", Unit::None),
        ("congestion control", Unit::None),
        ("relay late, p99.9", Unit::Seconds),
        ("its longest gap", Unit::Seconds),
        ("its share of a processor", Unit::Share),
        ("in its busiest second", Unit::Share),
        ("load average", Unit::None),
    ];
    let mut table = Table::new(columns);
    table.title = "How they came about".to_owned();
    table.note = "The congestion control is that of the sockets, as read back.".to_owned();
    for record in records {
        let relay = &record.relay;
        table.row([
            number(record),
            Cell::Text(record.seed.to_string()),
            Cell::Text(ended(record)),
            Cell::from(rights(record)),
            Cell::Text(controls(record).join(", ")),
            Cell::from(late_s(relay)),
            Cell::from(gap_s(relay)),
            Cell::from(relay.processor_share),
            Cell::from(relay.processor_share_max),
            Cell::from(record.load_average),
        ]);
    }
    table
}

fn number(record: &RunRecord) -> Cell {
    match record.attempt {
        1 => Cell::Text(record.run.to_string()),
        attempt => Cell::Text(format!("{}, attempt {attempt}", record.run)),
    }
}

/// The end of the run.
pub(super) fn ended(record: &RunRecord) -> String {
    rfc3339(Duration::from_secs(record.ended_unix_seconds))
}

/// The rights that built its lab.
pub(super) fn rights(record: &RunRecord) -> &'static str {
    match record.rights {
        Rights::Root => "root",
        Rights::UserNamespace => "user namespace",
    }
}

/// The congestion controls of its sockets, each once.
pub(super) fn controls(record: &RunRecord) -> Vec<&str> {
    sorted(record.congestion_controls.iter().map(String::as_str))
}

/// The 99.9th percentile of the lateness, in the worse direction.
pub(super) fn late_s(relay: &RelayReport) -> f64 {
    relay.lateness().p999_ns as f64 / 1e9
}

/// The longest time for which the relay did not look.
pub(super) fn gap_s(relay: &RelayReport) -> f64 {
    relay.gaps.max_ns as f64 / 1e9
}
