//! The file of an experiment.

use super::axis;
use super::prediction::Prediction;
use super::quantity::Quantity;
use super::request_model;
use super::setup::{RunLoad, Setup};
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
    /// The seed of the first repetition; the second has the next number, and so on. It is the same for all
    /// combinations, so that they meet the same accidents.
    #[serde(default = "default_seed")]
    pub seed: u64,
    /// The most attempts at an invalid run.
    #[serde(default = "default_attempts")]
    pub attempts: u32,
    /// The setup of every run.
    pub setup: Table,
    #[serde(rename = "vary", default)]
    pub variables: Vec<Variable>,
    #[serde(rename = "override", default)]
    pub overrides: Vec<Override>,
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

/// A variable: the values of one key, or cases.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Variable {
    pub name: String,
    /// The key below `setup`, with dots: `link.mtu`.
    #[serde(default)]
    pub key: Option<String>,
    #[serde(default)]
    pub values: Option<Vec<Value>>,
    #[serde(default)]
    pub cases: Option<Vec<Case>>,
}

impl Variable {
    /// Its values in the file.
    fn labels(&self) -> impl Iterator<Item = String> {
        let values = self.values.iter().flatten().map(label);
        values.chain(self.cases.iter().flatten().map(|case| case.name.clone()))
    }
}

/// A named combination of several keys.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Case {
    pub name: String,
    pub setup: Table,
}

/// A part of the setup for some combinations of values.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Override {
    /// These values of these variables; a variable without any has all.
    pub only: BTreeMap<String, Vec<String>>,
    /// Overlaid on the values' setup, after earlier overrides.
    pub setup: Table,
}

/// The overrides of one form.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct FormChanges {
    pub repetitions: Option<u32>,
    /// The values, or names of cases, of some variables in this form.
    pub values: BTreeMap<String, Vec<Value>>,
    /// Overlaid on the setup of every run, last.
    pub setup: Table,
}

/// The extent of an experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Form {
    /// Enough to show the effect; the quick forms of a whole paper take ten minutes.
    Quick,
    /// All runs of the experiment.
    Full,
}

impl fmt::Display for Form {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(to)
    }
}

/// A figure: one measured quantity against one variable. The other variables become the series.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plot {
    /// The experiment's title, if missing.
    #[serde(default)]
    pub title: Option<String>,
    /// A variable whose values are numbers with or without a unit; with `bars`, also names.
    pub x: String,
    /// Whether each value of x has a bar.
    #[serde(default)]
    pub bars: bool,
    /// The value of x to which the others are compared as a share.
    #[serde(default)]
    pub share_of: Option<String>,
    /// The measured quantity.
    pub y: Quantity,
    /// Restricts the runs to these values of these variables.
    #[serde(default)]
    pub only: BTreeMap<String, Vec<String>>,
    /// Curves to compare with.
    #[serde(default)]
    pub theory: Vec<Theory>,
}

/// A model's statement about the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Theory {
    /// The TCP payload rate of the bottleneck.
    Link,
    /// The rate of SCSI commands whose data is all sent at once, from a sufficient send buffer: the theoretical curve
    /// of paper 004. Tb + Tc are measured at the shortest round trip.
    Ideal,
    /// The same, with all waits that follow from the setup: for R2Ts, and for room in the send buffer.
    TimeModel,
}

impl Theory {
    /// Its label in a figure.
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Link => "link",
            Self::Ideal => "theory",
            Self::TimeModel => "time model",
        }
    }

    /// In the base of its unit. `host_time_s` is the measured [`Quantity::HostTime`], if there is one.
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

    /// Checks the rules of every form, whatever its runs.
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
        for (number, part) in self.overrides.iter().enumerate() {
            self.check_override(part, &format!("override {}, only", number + 1))?;
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

    /// Checks that some form has each of its values.
    fn check_override(&self, part: &Override, place: &str) -> Result<(), InvalidExperiment> {
        for (name, wanted) in &part.only {
            let of_forms = [Form::Quick, Form::Full].map(|form| self.changes(form).values.get(name));
            let of_forms = of_forms.into_iter().flatten().flatten().map(label);
            let known: Vec<String> = self.variable(name, place)?.labels().chain(of_forms).collect();
            if let Some(unknown) = wanted.iter().find(|wanted| !known.contains(wanted)) {
                let known = known.join(", ");
                let error = format!("{place}: \"{name}\" is never {unknown}, but {known}");
                return Err(InvalidExperiment::new(error));
            }
        }
        Ok(())
    }

    /// Checks that the plot of this number can be drawn from that plan.
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
        for (_, Cell { setup, .. }) in plan.among(&plot.only) {
            Self::check_measured(plot.y, setup, &place("y"))?;
        }
        Ok(())
    }

    /// Checks that the plan measures this quantity.
    pub(super) fn check_measured(
        quantity: Quantity,
        setup: &Setup,
        place: &str,
    ) -> Result<(), InvalidExperiment> {
        if setup.quantities().contains(&quantity) {
            return Ok(());
        }
        let known: Vec<_> = setup.quantities().iter().map(Quantity::to_string).collect();
        let known = known.join(", ");
        let error = format!("{place}: \"{quantity}\" is not measured by this workload, but {known}");
        Err(InvalidExperiment::new(error))
    }
}

impl Document {
    /// Checks that these values of these variables are ever run. A quick form may omit some of them.
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

/// The label of a value, by which it is found again.
pub(crate) fn label(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// The longest accepted run: a week is a typing error.
pub(crate) const SPAN_MAX: Span = Span(std::time::Duration::from_secs(7 * 24 * 3600));
