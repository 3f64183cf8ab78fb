//! The file of an experiment as it is written.

use super::axis;
use super::prediction::Prediction;
use super::request_model;
use super::setup::{Quantity, RunLoad, Setup};
use super::trace::Trace;
use super::{Cell, InvalidExperiment, Plan};
use netem::Span;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use toml::{Table, Value};

/// The whole file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Document {
    pub title: String,
    #[serde(default)]
    pub about: String,
    /// Of the first repetition; the second has the next one, and so on. It is the same for all that is varied, so that
    /// what is compared has met the same accidents.
    #[serde(default = "default_seed")]
    pub seed: u64,
    /// How often a run that is invalid is tried.
    #[serde(default = "default_attempts")]
    pub attempts: u32,
    /// Of every run.
    pub setup: Table,
    #[serde(rename = "vary", default)]
    pub variables: Vec<Variable>,
    #[serde(default)]
    pub quick: FormChanges,
    #[serde(default)]
    pub full: FormChanges,
    #[serde(rename = "plot", default)]
    pub plots: Vec<Plot>,
    #[serde(rename = "trace", default)]
    pub traces: Vec<Trace>,
    #[serde(rename = "prediction", default)]
    pub predictions: Vec<Prediction>,
}

fn default_seed() -> u64 {
    1
}

fn default_attempts() -> u32 {
    3
}

/// What is varied: the values of one key, or cases.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Variable {
    pub name: String,
    /// Below `setup`, with dots: `link.mtu`.
    #[serde(default)]
    pub key: Option<String>,
    #[serde(default)]
    pub values: Option<Vec<Value>>,
    #[serde(default)]
    pub cases: Option<Vec<Case>>,
}

/// Several keys that belong together.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Case {
    pub name: String,
    pub setup: Table,
}

/// What is different in one form.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct FormChanges {
    pub repetitions: Option<u32>,
    /// The values, or names of cases, that some of the variables have in this form.
    pub values: BTreeMap<String, Vec<Value>>,
    /// Laid over the setup of every run, last.
    pub setup: Table,
}

/// How much of an experiment is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Form {
    /// Enough to see what it is about; the quick forms of a whole paper take ten minutes.
    Quick,
    /// All of it.
    Full,
}

impl fmt::Display for Form {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(match self {
            Self::Quick => "quick",
            Self::Full => "full",
        })
    }
}

/// A figure: one measured quantity against one variable. What else is varied makes the series.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plot {
    /// The experiment's, if it is missing.
    #[serde(default)]
    pub title: Option<String>,
    /// A variable whose values are numbers with a unit, or without; or, with `bars`, names.
    pub x: String,
    /// Whether each value of x has a bar.
    #[serde(default)]
    pub bars: bool,
    /// A value of x of which all others are told as a share.
    #[serde(default)]
    pub share_of: Option<String>,
    /// What was measured.
    pub y: Quantity,
    /// Only runs with these values of these variables.
    #[serde(default)]
    pub only: BTreeMap<String, Vec<String>>,
    /// Curves to compare with.
    #[serde(default)]
    pub theory: Vec<Theory>,
}

/// What a model of the path says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Theory {
    /// The payload of TCP that the bottleneck lets through.
    Link,
    /// What SCSI commands could do of which all data is sent at once, from a send buffer that is large enough: the
    /// theoretical curve of paper 004. Tb + Tc are what was measured at the shortest round trip.
    Ideal,
    /// The same with all waits that follow from the setup: for R2Ts, and for room in the send buffer.
    TimeModel,
}

impl Theory {
    /// As it is called in a figure.
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Link => "link",
            Self::Ideal => "theory",
            Self::TimeModel => "time model",
        }
    }

    /// In the base of its unit. `host_time_s` is what was measured of [`Quantity::HostTime`], if anything was.
    pub(crate) fn value(self, setup: &Setup, quantity: Quantity, host_time_s: Option<f64>) -> Option<f64> {
        match (self, setup.load()) {
            (Self::Link, _) => {
                let payload = setup.payload_bits_per_second(setup.read_share());
                (quantity == Quantity::Throughput).then_some(payload)
            }
            (Self::Ideal | Self::TimeModel, RunLoad::Scsi(run)) => {
                request_model::predict(setup, run, quantity, host_time_s?, self == Self::Ideal)
            }
            (Self::Ideal | Self::TimeModel, RunLoad::Streams(_) | RunLoad::Program(_)) => None,
        }
    }
}

impl Document {
    pub fn changes(&self, form: Form) -> &FormChanges {
        match form {
            Form::Quick => &self.quick,
            Form::Full => &self.full,
        }
    }

    pub(super) fn variable(&self, name: &str, mentioned_in: &str) -> Result<&Variable, InvalidExperiment> {
        self.variables.iter().find(|variable| variable.name == name).ok_or_else(|| {
            let known: Vec<String> =
                self.variables.iter().map(|variable| format!("\"{}\"", variable.name)).collect();
            InvalidExperiment::new(format!(
                "{mentioned_in} names \"{name}\", which is not varied; {}",
                match known.is_empty() {
                    true => "nothing is: there is no [[vary]]".to_owned(),
                    false => format!("varied are {}", known.join(", ")),
                }
            ))
        })
    }

    /// What every form must keep to, whatever its runs are.
    pub fn check(&self) -> Result<(), InvalidExperiment> {
        if self.attempts == 0 {
            return Err(InvalidExperiment::new("attempts is 0, but must be 1 or more"));
        }
        let mut names = BTreeSet::new();
        for variable in &self.variables {
            if !names.insert(&variable.name) {
                return Err(InvalidExperiment::new(format!("\"{}\" is varied twice", variable.name)));
            }
        }
        for form in [Form::Quick, Form::Full] {
            if self.changes(form).repetitions == Some(0) {
                return Err(InvalidExperiment::new(format!(
                    "{form}.repetitions is 0, but must be 1 or more"
                )));
            }
            for name in self.changes(form).values.keys() {
                self.variable(name, &format!("{form}.values"))?;
            }
        }
        Ok(())
    }

    /// Whether the plot of this number can be drawn of that plan.
    pub fn check_plot(&self, number: usize, plan: &Plan) -> Result<(), InvalidExperiment> {
        let plot = &self.plots[number];
        let place = |key: &str| format!("plot {}, {key}", number + 1);
        self.variable(&plot.x, &place("x"))?;
        let labels = plan.labels(&plot.x);
        if !plot.bars {
            axis::positions(&labels)
                .map_err(|problem| InvalidExperiment::new(format!("{}: {problem}", place("x"))))?;
        }
        if let Some(base) = plot.share_of.as_deref().filter(|base| !labels.contains(base)) {
            let (place, labels) = (place("share_of"), labels.join(", "));
            let error = format!("{place}: \"{}\" is never {base}, but {labels}", plot.x);
            return Err(InvalidExperiment::new(error));
        }
        self.check_only(&plot.only, &place("only"), plan)?;
        let cells = plan.cells.iter().enumerate().filter(|(cell, _)| plan.is_among(*cell, &plot.only));
        for (_, Cell { setup, .. }) in cells {
            Self::check_measured(plot.y, setup, &place("y"))?;
        }
        Ok(())
    }

    /// Whether that is measured of it.
    pub(super) fn check_measured(
        quantity: Quantity,
        setup: &Setup,
        place: &str,
    ) -> Result<(), InvalidExperiment> {
        if setup.quantities().contains(&quantity) {
            return Ok(());
        }
        let known: Vec<&str> = setup.quantities().iter().map(|quantity| quantity.name()).collect();
        let (name, known) = (quantity.name(), known.join(", "));
        let error = format!("{place}: \"{name}\" is not measured by this workload, but {known}");
        Err(InvalidExperiment::new(error))
    }
}

impl Document {
    /// Whether these values of these variables are ever run. A quick form may leave out some of them.
    pub fn check_only(
        &self,
        only: &BTreeMap<String, Vec<String>>,
        place: &str,
        plan: &Plan,
    ) -> Result<(), InvalidExperiment> {
        for (name, wanted) in only {
            self.variable(name, place)?;
            let labels = plan.labels(name);
            if !wanted.iter().any(|wanted| labels.contains(&wanted.as_str())) {
                return Err(InvalidExperiment::new(format!(
                    "{place}: \"{name}\" is never {}; its values in the {} form are {}",
                    wanted.join(" or "),
                    plan.form,
                    labels.join(", ")
                )));
            }
        }
        Ok(())
    }
}

/// How a value is told to people, and found again.
pub(crate) fn label(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// The longest run that is let in: a week is a typing error.
pub(crate) const SPAN_MAX: Span = Span(std::time::Duration::from_secs(7 * 24 * 3600));
