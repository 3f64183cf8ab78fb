//! The common parts of tables of combinations and runs.

use crate::experiment::Plan;
use crate::results::RunRecord;
use observe::report::{Cell, Table, Unit};
use std::collections::BTreeSet;

/// The columns of the variables.
pub(super) fn varied(plan: &Plan) -> impl Iterator<Item = (&str, Unit)> {
    plan.variables.iter().map(|name| (name.as_str(), Unit::None))
}

/// The values of a combination in these columns.
pub(super) fn labels(plan: &Plan, cell: usize) -> Vec<Cell> {
    plan.cells[cell].labels.iter().cloned().map(Cell::Text).collect()
}

/// Adds a run's row after its labels; crossed out, with the reasons, if the run is INVALID.
pub(super) fn add_row(
    table: &mut Table,
    labels: &[Cell],
    record: &RunRecord,
    told: impl IntoIterator<Item = Cell>,
) {
    table.row(labels.iter().cloned().chain(told));
    if let (false, Some(row)) = (record.valid, table.rows.last_mut()) {
        row.invalid = Some(record.reasons.join("; "));
    }
}

/// Each name once, in alphabetical order.
pub(super) fn sorted<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let names: BTreeSet<&str> = names.into_iter().collect();
    names.into_iter().collect()
}
