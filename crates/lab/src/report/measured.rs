//! What was measured in the runs of one combination of values.

use crate::experiment::{Plan, Quantity, RunLoad};
use crate::results::{Folder, RunRecord};
use observe::report::Point;
use observe::statistics::Sample;
use toml::{Table, Value};

/// All runs of a cell, in the order in which they were tried.
pub(super) fn records<'a>(
    cell: usize,
    plan: &Plan,
    folder: &'a Folder,
) -> impl DoubleEndedIterator<Item = &'a RunRecord> + Clone {
    folder.records.iter().filter(move |record| plan.cell_of_run(record.run) == Some(cell))
}

/// Of those the one that is told of in detail: the first valid one; if there is none, the last that was tried; `None` if none
/// was.
pub(super) fn run_to_tell<'a>(cell: usize, plan: &Plan, folder: &'a Folder) -> Option<&'a RunRecord> {
    let mut records = records(cell, plan, folder);
    let valid = records.clone().find(|record| record.valid);
    valid.or_else(|| records.next_back())
}

/// What was measured in the runs of a cell: in the valid ones, or in the others.
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

/// The mean of the valid runs of a cell, at that x; nothing if there was no run. If none was valid, the mean of all, which is
/// not to be believed.
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
            // A run of which nothing was measured has a place too: at the bottom.
            Some(invalid.as_ref().map_or_else(|| Point::new(x, 0.0), drawn).invalid(reasons))
        }
    }
}

/// Tb + Tc of the runs with one request at a time that differ from a cell's in nothing else but the round trip, where that
/// is shortest: what the hosts take does not depend on the distance, and is seen best without.
pub(super) fn host_time_s(cell: usize, plan: &Plan, folder: &Folder) -> Option<f64> {
    let elsewhere = |cell: usize| {
        let mut table = plan.cells[cell].table.clone();
        for place in [&["rtt"][..], &["scsi", "workload", "pattern", "depth"]] {
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
