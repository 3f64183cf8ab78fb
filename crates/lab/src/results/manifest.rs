//! The description of a folder of results.

use super::machine::Machine;
use crate::experiment::{Experiment, Form, Plan, Quantity};
use observe::report::Unit;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};
use toml::Table;

/// The number of the folder's format. It grows with every change that older programs would misread.
pub const SCHEMA: u32 = 1;

/// The contents of a folder of results, and their origin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// [`SCHEMA`] of the program that made it.
    pub schema: u32,
    /// The experiment's title.
    pub title: String,
    /// The extent: quick or full.
    pub form: Form,
    /// The version of the program.
    pub ropewalk: String,
    /// The machine of all runs.
    pub machine: Machine,
    /// The start, in seconds since 1970.
    pub begun_unix_seconds: u64,
    /// The units, by measured quantity.
    pub units: BTreeMap<Quantity, Unit>,
    /// The runs to do; run 1 is the first.
    pub runs: Vec<ManifestRun>,
}

/// A run to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ManifestRun {
    /// The value of every variable.
    pub values: BTreeMap<String, String>,
    /// The number of the repetition, from 1.
    pub repetition: u32,
    /// The seed of all randomness.
    pub seed: u64,
    /// The setup, after all overlays.
    pub setup: Table,
}

impl Manifest {
    pub(super) fn new(experiment: &Experiment, plan: &Plan) -> Self {
        let quantities = plan.cells.iter().flat_map(|cell| cell.setup.quantities());
        Self {
            schema: SCHEMA,
            title: experiment.title().to_owned(),
            form: plan.form,
            ropewalk: env!("CARGO_PKG_VERSION").to_owned(),
            machine: Machine::this(),
            begun_unix_seconds: unix_seconds(),
            units: quantities.map(|quantity| (quantity, quantity.unit())).collect(),
            runs: (0..plan.runs.len()).map(|number| run(plan, number)).collect(),
        }
    }
}

fn run(plan: &Plan, number: usize) -> ManifestRun {
    let run = &plan.runs[number];
    ManifestRun {
        values: plan.values(run.cell),
        repetition: run.repetition,
        seed: run.seed,
        setup: plan.cells[run.cell].table.clone(),
    }
}

/// The current time.
pub(crate) fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
