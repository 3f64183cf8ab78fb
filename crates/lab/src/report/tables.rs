//! What tables of combinations and runs have in common.

use crate::experiment::Plan;
use observe::report::{Cell, Unit};

/// The columns of what is varied.
pub(super) fn varied(plan: &Plan) -> impl Iterator<Item = (&str, Unit)> {
    plan.variables.iter().map(|name| (name.as_str(), Unit::None))
}

/// The values of a combination in them.
pub(super) fn labels(plan: &Plan, cell: usize) -> Vec<Cell> {
    plan.cells[cell].labels.iter().cloned().map(Cell::Text).collect()
}
