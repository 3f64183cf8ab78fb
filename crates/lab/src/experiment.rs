//! An experiment: a file that says what is run, what is varied, and what is plotted.
//!
//! ```
//! let experiment = ropewalk_lab::Experiment::parse(r#"
//!     title = "Throughput of one stream against the round trip"
//!
//!     [setup]                                   # of every run
//!     link = { rate = "400Mbit", queue = "2MB" }
//!     warm_up = "5s"
//!     streams = { count = 1, measured = "30s" }
//!
//!     [[vary]]                                  # every value of this …
//!     name = "RTT"
//!     key = "rtt"
//!     values = ["0ms", "10ms", "20ms", "40ms", "60ms"]
//!
//!     [[vary]]                                  # … with every value of this
//!     name = "congestion control"
//!     key = "congestion_control"
//!     values = ["reno", "cubic", "bbr"]
//!
//!     [quick]                                   # the short form: fewer values, and other settings
//!     values.RTT = ["0ms", "20ms", "60ms"]
//!     setup.streams.measured = "3s"
//!
//!     [full]
//!     repetitions = 3
//!
//!     [[plot]]                                  # what else is varied makes the series
//!     x = "RTT"
//!     y = "throughput"
//!     theory = ["link"]
//! "#)?;
//! assert_eq!(experiment.plan(ropewalk_lab::Form::Quick)?.runs.len(), 3 * 3);
//! assert_eq!(experiment.plan(ropewalk_lab::Form::Full)?.runs.len(), 5 * 3 * 3);
//! # Ok::<(), ropewalk_lab::InvalidExperiment>(())
//! ```
//!
//! A value that is varied is laid over the setup of all runs, and a form's settings over both; a variable with several
//! keys has `cases`, each with a name and a piece of setup. What comes out is read strictly: an unknown key is an
//! error that lists those that are known. Every run names its congestion control; nothing is left to what the system
//! happens to have set.

mod axis;
mod document;
mod overlay;
mod plan;
mod prediction;
mod request_model;
mod setup;
mod trace;

pub(crate) use axis::positions;
pub(crate) use document::SPAN_MAX;
pub use document::{Form, Plot, Theory};
pub use plan::{Cell, Plan, PlannedRun};
pub use prediction::Prediction;
pub use setup::{Quantity, RunLoad, Segments, Setup, StreamsSetup};

pub(crate) use trace::mark_label;
pub use trace::{CommandEvent, Observed, Trace};

use document::Document;

/// An experiment, as its file says it.
#[derive(Clone, Debug)]
pub struct Experiment {
    document: Document,
    text: String,
}

/// A text that is no experiment: which key is wrong, and what is allowed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidExperiment(String);

impl InvalidExperiment {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

impl Experiment {
    /// Reads an experiment, and checks every run of both forms.
    ///
    /// # Errors
    /// The first thing that is wrong with it.
    pub fn parse(text: &str) -> Result<Self, InvalidExperiment> {
        let document: Document =
            toml::from_str(text).map_err(|error| InvalidExperiment::new(error.to_string().trim_end()))?;
        let experiment = Self { document, text: text.to_owned() };
        for form in [Form::Quick, Form::Full] {
            let plan = experiment.plan(form)?;
            for number in 0..experiment.plots().len() {
                experiment.document.check_plot(number, &plan)?;
            }
            for number in 0..experiment.traces().len() {
                experiment.document.check_trace(number, &plan)?;
            }
            for number in 0..experiment.predictions().len() {
                experiment.document.check_prediction(number, &plan)?;
            }
        }
        Ok(experiment)
    }

    /// What it is called, in a line.
    #[must_use]
    pub fn title(&self) -> &str {
        &self.document.title
    }

    /// What is to be seen in it.
    #[must_use]
    pub fn about(&self) -> &str {
        &self.document.about
    }

    /// The text that it was read from.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What is plotted.
    #[must_use]
    pub fn plots(&self) -> &[Plot] {
        &self.document.plots
    }

    /// What is drawn over the time of runs.
    #[must_use]
    pub fn traces(&self) -> &[Trace] {
        &self.document.traces
    }

    /// What is predicted, to be compared with what is measured.
    #[must_use]
    pub fn predictions(&self) -> &[Prediction] {
        &self.document.predictions
    }

    /// All runs of one form.
    ///
    /// # Errors
    /// The first run that is none, and why.
    pub fn plan(&self, form: Form) -> Result<Plan, InvalidExperiment> {
        plan::expand(&self.document, form)
    }
}

#[cfg(test)]
mod tests;
