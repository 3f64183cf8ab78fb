//! An experiment: a file with a setup, its variables, and its plots.
//!
//! ```
//! let experiment = ropewalk_lab::Experiment::parse(r#"
//!     title = "Throughput of one stream against the round trip"
//!
//!     [setup]                                   # applies to every run
//!     link = { rate = "400Mbit", queue = "2MB" }
//!     warm_up = "5s"
//!     streams = { count = 1, measured = "30s" }
//!
//!     [[vary]]                                  # each value of this …
//!     name = "RTT"
//!     key = "rtt"
//!     values = ["0ms", "10ms", "20ms", "40ms", "60ms"]
//!
//!     [[vary]]                                  # … runs with each value of this
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
//!     [[plot]]                                  # the other variables become the series
//!     x = "RTT"
//!     y = "throughput"
//!     theory = ["link"]
//! "#)?;
//! assert_eq!(experiment.plan(ropewalk_lab::Form::Quick)?.runs.len(), 3 * 3);
//! assert_eq!(experiment.plan(ropewalk_lab::Form::Full)?.runs.len(), 5 * 3 * 3);
//! # Ok::<(), ropewalk_lab::InvalidExperiment>(())
//! ```
//!
//! Each value of a variable is overlaid on the setup of all runs, and a form's settings on both. A variable with several
//! keys has `cases`, each with a name and a part of the setup. The result is parsed strictly: an unknown key is an error that
//! lists the known ones. Every run names its congestion control, so nothing depends on the system's defaults.

mod axis;
mod beside_setup;
mod document;
mod overlay;
mod plan;
mod prediction;
mod quantity;
mod request_model;
mod setup;
mod streams_setup;
mod trace;

pub(crate) use axis::positions;
pub use beside_setup::BesideSetup;
pub(crate) use document::SPAN_MAX;
pub use document::{Form, Plot, Theory};
pub use plan::{Cell, Plan, PlannedRun, each_once};
pub use prediction::Prediction;
pub use quantity::Quantity;
pub use setup::{RunLoad, Segments, Setup};
pub use streams_setup::{StreamsEnd, StreamsSetup};

pub(crate) use trace::mark_label;
pub use trace::{CommandEvent, Observed, Trace};

use document::Document;

/// An experiment, as in its file.
#[derive(Clone, Debug)]
pub struct Experiment {
    document: Document,
    text: String,
}

/// A text that is not an experiment. Names the wrong key and its allowed values.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidExperiment(String);

impl InvalidExperiment {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

impl Experiment {
    /// Parses an experiment, and checks every run of both forms.
    ///
    /// # Errors
    /// The first defect.
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

    /// The title, one line.
    #[must_use]
    pub fn title(&self) -> &str {
        &self.document.title
    }

    /// The purpose, and the results to look for.
    #[must_use]
    pub fn about(&self) -> &str {
        &self.document.about
    }

    /// The text of the file.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The figures of measured quantities, in the file's order.
    #[must_use]
    pub fn plots(&self) -> &[Plot] {
        &self.document.plots
    }

    /// The traces of runs over their time.
    #[must_use]
    pub fn traces(&self) -> &[Trace] {
        &self.document.traces
    }

    /// The predictions, for comparison with the measurements.
    #[must_use]
    pub fn predictions(&self) -> &[Prediction] {
        &self.document.predictions
    }

    /// All runs of one form.
    ///
    /// # Errors
    /// The first invalid run, and the reason.
    pub fn plan(&self, form: Form) -> Result<Plan, InvalidExperiment> {
        plan::expand(&self.document, form)
    }
}

#[cfg(test)]
mod tests;
