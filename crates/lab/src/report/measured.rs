//! The measurements of one combination of values.

use crate::experiment::{Plan, Quantity, RunLoad, Theory};
use crate::results::{Folder, RunRecord};
use observe::report::Point;
use observe::statistics::Sample;
use toml::{Table, Value};

/// All attempts of a cell, in order.
pub(super) fn records<'a>(
    cell: usize,
    plan: &Plan,
    folder: &'a Folder,
) -> impl DoubleEndedIterator<Item = &'a RunRecord> + Clone {
    folder.records.iter().filter(move |record| plan.cell_of_run(record.run) == Some(cell))
}

/// The run to describe in detail: the first VALID one; without one, the last attempt; `None` without any.
pub(super) fn run_to_tell<'a>(cell: usize, plan: &Plan, folder: &'a Folder) -> Option<&'a RunRecord> {
    let mut records = records(cell, plan, folder);
    let valid = records.clone().find(|record| record.valid);
    valid.or_else(|| records.next_back())
}

/// The measurements of a cell's VALID runs, or of its others.
pub(super) fn sample(
    cell: usize,
    quantity: Quantity,
    valid: bool,
    plan: &Plan,
    folder: &Folder,
) -> Option<Sample> {
    let records = records(cell, plan, folder).filter(|record| record.valid == valid);
    Sample::of(records.filter_map(|record| record.measured.get(&quantity).copied()))
}

/// The mean of a cell's VALID runs at this x; nothing if there was no run. Without a VALID run, the mean of all, marked
/// as invalid.
pub(super) fn point(x: f64, cell: usize, quantity: Quantity, plan: &Plan, folder: &Folder) -> Option<Point> {
    let drawn = |sample: &Sample| {
        let point = Point::new(x, sample.mean());
        if sample.count() > 1 { point.between(sample.min(), sample.max()) } else { point }
    };
    match sample(cell, quantity, true, plan, folder) {
        Some(valid) => Some(drawn(&valid)),
        None => {
            let reasons = records(cell, plan, folder).next_back()?.reasons.join("; ");
            let invalid = sample(cell, quantity, false, plan, folder);
            // A run without a measurement has a place too, at the bottom.
            Some(invalid.as_ref().map_or_else(|| Point::new(x, 0.0), drawn).invalid(reasons))
        }
    }
}

/// What a theory says of a cell, in the base of the quantity's unit.
pub(crate) fn theoretical(
    theory: Theory,
    quantity: Quantity,
    cell: usize,
    plan: &Plan,
    folder: &Folder,
) -> Option<f64> {
    theory.value(&plan.cells[cell].setup, quantity, host_time_s(cell, plan, folder))
}

/// Tb + Tc at depth 1 of the runs that differ from a cell's only in the round trip and in how long they last, at the
/// shortest round trip: the hosts' time does not depend on the distance, and shows best without it.
fn host_time_s(cell: usize, plan: &Plan, folder: &Folder) -> Option<f64> {
    let elsewhere = |cell: usize| {
        let mut table = plan.cells[cell].table.clone();
        let pattern = |key| ["scsi", "workload", "pattern", key];
        for place in [&["rtt"][..], &["warm_up"], &pattern("depth"), &pattern("end")] {
            remove(&mut table, place);
        }
        table
    };
    let here = elsewhere(cell);
    let has_one_request = |cell: &usize| match plan.cells[*cell].setup.load() {
        RunLoad::Scsi(run) => run.workload.depth() == 1,
        RunLoad::Streams(_) | RunLoad::Program(_) => false,
    };
    let alike = (0..plan.cells.len()).filter(has_one_request).filter(|cell| elsewhere(*cell) == here);
    let nearest = alike.min_by_key(|cell| plan.cells[*cell].setup.rtt)?;
    let valid = records(nearest, plan, folder).filter(|record| record.valid);
    let measured = valid.filter_map(|record| record.measured.get(&Quantity::HostTime).copied());
    Some(Sample::of(measured)?.mean())
}

fn remove(table: &mut Table, place: &[&str]) {
    match place {
        [] => {}
        [last] => drop(table.remove(*last)),
        [first, rest @ ..] => {
            if let Some(Value::Table(inner)) = table.get_mut(*first) {
                remove(inner, rest);
            }
        }
    }
}
