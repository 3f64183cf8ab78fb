//! What a folder of results says of itself.

use super::machine::Machine;
use crate::experiment::{Experiment, Form, Plan, Quantity};
use observe::report::Unit;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};
use toml::Table;

/// The number of the folder's format. It grows with every change that older programs would misread.
pub const SCHEMA: u32 = 1;

/// What is in a folder of results, and how it came about.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// [`SCHEMA`] of the program that made it.
    pub schema: u32,
    /// Of the experiment.
    pub title: String,
    /// How much of it is run.
    pub form: Form,
    /// The version of the program.
    pub ropewalk: String,
    /// Where all runs took place.
    pub machine: Machine,
    /// When it was begun, in seconds since 1970.
    pub begun_unix_seconds: u64,
    /// What numbers count, by the name of what is measured.
    pub units: BTreeMap<Quantity, Unit>,
    /// What is to be run; run 1 is the first.
    pub runs: Vec<ManifestRun>,
}

/// A run that is to be done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ManifestRun {
    /// The value of everything that is varied.
    pub values: BTreeMap<String, String>,
    /// From 1.
    pub repetition: u32,
    /// Of all that looks random.
    pub seed: u64,
    /// What is run, after everything was laid over everything.
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

/// Now.
pub(crate) fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
