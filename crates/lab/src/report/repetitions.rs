//! The spread of repetitions.

use super::measured::sample;
use super::tables::{labels, varied};
use crate::experiment::{Experiment, Plan, Quantity};
use crate::results::Folder;
use observe::report::{Cell, Section, Table, Unit};

/// A table for each plotted quantity; `None` without repetitions.
pub(super) fn section(experiment: &Experiment, plan: &Plan, folder: &Folder) -> Option<Section> {
    let plotted = experiment.plots().iter().map(|plot| plot.y);
    let mut drawn: Vec<Quantity> = plotted.chain(experiment.predictions().iter().map(|one| one.of)).collect();
    drawn.sort();
    drawn.dedup();
    let tables = drawn.into_iter().map(|quantity| table(quantity, plan, folder));
    let tables: Vec<Table> = tables.filter(|table| !table.rows.is_empty()).collect();
    (!tables.is_empty()).then(|| Section {
        heading: "Repetitions".to_owned(),
        paragraphs: vec![
            "Of the valid runs of each combination, where there are several. The interval holds the mean of all runs \
             that could be made with a confidence of 95 % (Student's distribution), if they are independent and \
             roughly normal."
                .to_owned(),
        ],
        tables,
        ..Section::default()
    })
}

fn table(quantity: Quantity, plan: &Plan, folder: &Folder) -> Table {
    let unit = || quantity.unit();
    let numbers = [
        ("runs", Unit::None),
        ("mean", unit()),
        ("interval of the mean", unit()),
        ("SD", unit()),
        ("min", unit()),
        ("median", unit()),
        ("p95", unit()),
        ("max", unit()),
    ];
    let mut table = Table::new(varied(plan).chain(numbers));
    table.title = quantity.label().to_owned();
    for cell in 0..plan.cells.len() {
        let Some(sample) = sample(cell, quantity, true, plan, folder).filter(|runs| runs.count() > 1) else {
            continue;
        };
        let cells = [
            Cell::from(sample.count() as f64),
            Cell::from(sample.mean()),
            sample.mean_interval().map_or(Cell::Empty, |(low, high)| Cell::Range([low, high])),
            Cell::from(sample.standard_deviation()),
            Cell::from(sample.min()),
            Cell::from(sample.median()),
            Cell::from(sample.percentile(95.0)),
            Cell::from(sample.max()),
        ];
        table.row(labels(plan, cell).into_iter().chain(cells));
    }
    table
}
