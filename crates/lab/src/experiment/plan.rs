//! All runs of an experiment: every combination of the variables' values, repeatedly.

use super::InvalidExperiment;
use super::document::{Document, Form, Variable, label};
use super::overlay::{lay, nest};
use super::setup::Setup;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use toml::{Table, Value};

/// The runs of one form of an experiment.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The extent: quick or full.
    pub form: Form,
    /// The names of the variables, in the file's order.
    pub variables: Vec<String>,
    /// The combinations to run.
    pub cells: Vec<Cell>,
    /// In the order of execution: every cell once before any repeats, so that changes of this machine affect all alike.
    pub runs: Vec<PlannedRun>,
    /// The most attempts at an invalid run.
    pub attempts: u32,
}

/// One combination of values.
#[derive(Clone, Debug)]
pub struct Cell {
    /// The value of each of [`Plan::variables`].
    pub labels: Vec<String>,
    /// The setup that these values give.
    pub setup: Setup,
    /// The setup as written, after all overlays.
    pub table: Table,
}

/// A run to do: its cell, its repetition and its seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedRun {
    /// An index of [`Plan::cells`].
    pub cell: usize,
    /// The number of the repetition, from 1.
    pub repetition: u32,
    /// The seed of all randomness.
    pub seed: u64,
}

/// More cells are a mistake: at a second each they would take most of a day.
const CELLS_MAX: usize = 50_000;
/// More runs are a mistake too.
const REPETITIONS_MAX: u32 = 10_000;

/// Each once, in order.
pub fn each_once<T: PartialEq>(all: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut different = Vec::new();
    for one in all {
        if !different.contains(&one) {
            different.push(one);
        }
    }
    different
}

impl Plan {
    /// The distinct values of a variable, in order; none if there is no such variable.
    #[must_use]
    pub fn labels(&self, variable: &str) -> Vec<&str> {
        let index = self.variables.iter().position(|name| name == variable);
        let labels = |index: usize| self.cells.iter().map(move |cell| cell.labels[index].as_str());
        each_once(index.into_iter().flat_map(labels))
    }

    /// The value of each variable, by its name.
    #[must_use]
    pub fn values(&self, cell: usize) -> BTreeMap<String, String> {
        self.variables.iter().cloned().zip(self.cells[cell].labels.iter().cloned()).collect()
    }

    /// The cells that have one of the wanted values, for each variable with any, and their numbers.
    pub(crate) fn among(
        &self,
        wanted: &BTreeMap<String, Vec<String>>,
    ) -> impl Iterator<Item = (usize, &Cell)> {
        self.cells.iter().enumerate().filter(|(_, cell)| matches(&self.variables, &cell.labels, wanted))
    }

    /// The cell of a run; run numbers start at 1.
    pub(crate) fn cell_of_run(&self, run: usize) -> Option<usize> {
        Some(self.runs.get(run.checked_sub(1)?)?.cell)
    }

    /// The time of all runs if each is valid at once.
    #[must_use]
    pub fn estimate(&self) -> Duration {
        self.runs.iter().map(|run| self.cells[run.cell].setup.estimate()).sum()
    }

    /// A cell for people: `RTT 20ms, congestion control reno`.
    #[must_use]
    pub fn describe(&self, cell: usize) -> String {
        describe(&self.variables, &self.cells[cell].labels)
    }
}

/// Whether a combination has one of the wanted values, for each variable with any.
fn matches(variables: &[String], labels: &[String], wanted: &BTreeMap<String, Vec<String>>) -> bool {
    let has = |name: &String, wanted: &[String]| {
        variables.iter().zip(labels).any(|(variable, label)| variable == name && wanted.contains(label))
    };
    wanted.iter().all(|(name, wanted)| has(name, wanted))
}

fn describe(variables: &[String], labels: &[String]) -> String {
    let pairs = variables.iter().zip(labels).map(|(variable, label)| format!("{variable} {label}"));
    pairs.collect::<Vec<_>>().join(", ")
}

pub(crate) fn expand(document: &Document, form: Form) -> Result<Plan, InvalidExperiment> {
    document.check()?;
    let changes = document.changes(form);
    let mut combinations = vec![(Vec::new(), document.setup.clone())];
    for variable in &document.variables {
        let choices = choices(variable, changes.values.get(&variable.name), form)?;
        if combinations.len().saturating_mul(choices.len()) > CELLS_MAX {
            let error = format!("the {form} form has more than {CELLS_MAX} combinations");
            return Err(InvalidExperiment::new(error));
        }
        combinations = combine(&combinations, &choices);
    }
    let variables: Vec<String> = document.variables.iter().map(|variable| variable.name.clone()).collect();
    let cells = combinations.into_iter().map(|(labels, mut table)| {
        for part in document.overrides.iter().filter(|part| matches(&variables, &labels, &part.only)) {
            lay(&mut table, &part.setup);
        }
        lay(&mut table, &changes.setup);
        let setup = Setup::read(&table).map_err(|problem| {
            let cell = match labels.is_empty() {
                true => String::new(),
                false => format!(" with {}", describe(&variables, &labels)),
            };
            InvalidExperiment::new(format!("in the {form} form{cell}: {problem}"))
        })?;
        Ok(Cell { labels, setup, table })
    });
    let cells = cells.collect::<Result<Vec<_>, InvalidExperiment>>()?;
    let repetitions = changes.repetitions.unwrap_or(1);
    if repetitions > REPETITIONS_MAX {
        let error = format!("{form}.repetitions is {repetitions}, but must be at most {REPETITIONS_MAX}");
        return Err(InvalidExperiment::new(error));
    }
    let runs = (1..=repetitions).flat_map(|repetition| {
        let seed = document.seed.wrapping_add(u64::from(repetition - 1));
        (0..cells.len()).map(move |cell| PlannedRun { cell, repetition, seed })
    });
    Ok(Plan { form, variables, runs: runs.collect(), cells, attempts: document.attempts })
}

type Combination = (Vec<String>, Table);

fn combine(combinations: &[Combination], choices: &[(String, Table)]) -> Vec<Combination> {
    let combined = combinations.iter().flat_map(|(labels, table)| {
        choices.iter().map(move |(label, over)| {
            let mut table = table.clone();
            lay(&mut table, over);
            (labels.iter().cloned().chain([label.clone()]).collect(), table)
        })
    });
    combined.collect()
}

/// The values of a variable, with the setup that each overlays.
fn choices(
    variable: &Variable,
    of_form: Option<&Vec<Value>>,
    form: Form,
) -> Result<Vec<(String, Table)>, InvalidExperiment> {
    let name = &variable.name;
    let invalid = |problem: &str| Err(InvalidExperiment::new(format!("vary \"{name}\": {problem}")));
    let choices: Vec<(String, Table)> = match (&variable.key, &variable.values, &variable.cases) {
        (Some(key), Some(values), None) => {
            let values = of_form.unwrap_or(values);
            values.iter().map(|value| (label(value), nest(key, value.clone()))).collect()
        }
        (None, None, Some(cases)) => {
            let is_wanted =
                |name: &str| of_form.is_none_or(|values| values.iter().any(|value| label(value) == name));
            for value in of_form.into_iter().flatten() {
                if !cases.iter().any(|case| case.name == label(value)) {
                    let known: Vec<&str> = cases.iter().map(|case| case.name.as_str()).collect();
                    return Err(InvalidExperiment::new(format!(
                        "{form}.values: \"{name}\" has no case {value}, but {}",
                        known.join(", ")
                    )));
                }
            }
            let cases = cases.iter().filter(|case| is_wanted(&case.name));
            cases.map(|case| (case.name.clone(), case.setup.clone())).collect()
        }
        _ => return invalid("it needs key and values, or else cases, each with name and setup"),
    };
    if choices.is_empty() {
        return invalid(&format!("the {form} form has no value of it"));
    }
    let labels: BTreeSet<&String> = choices.iter().map(|(label, _)| label).collect();
    if labels.len() < choices.len() {
        return invalid("a value is there twice");
    }
    Ok(choices)
}
