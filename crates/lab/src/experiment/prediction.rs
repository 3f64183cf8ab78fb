//! A model's predictions beside the measurements, over all combinations.

use super::InvalidExperiment;
use super::document::{Document, Theory};
use super::plan::Plan;
use super::quantity::Quantity;
use serde::Deserialize;
use std::collections::BTreeMap;

/// A figure with a point for each combination of values: its prediction and its measurement.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prediction {
    /// The experiment's title, if missing.
    #[serde(default)]
    pub title: Option<String>,
    /// The predicted and measured quantity.
    pub of: Quantity,
    /// The model that predicts.
    pub by: Theory,
    /// A variable whose values get a colour each.
    #[serde(default)]
    pub series: Option<String>,
    /// Restricts the runs to these values of these variables.
    #[serde(default)]
    pub only: BTreeMap<String, Vec<String>>,
}

impl Document {
    /// Checks that the prediction of this number can be compared in that plan.
    pub fn check_prediction(&self, number: usize, plan: &Plan) -> Result<(), InvalidExperiment> {
        let prediction = &self.predictions[number];
        let place = |key: &str| format!("prediction {}, {key}", number + 1);
        if let Some(name) = &prediction.series {
            self.variable(name, &place("series"))?;
        }
        self.check_only(&prediction.only, &place("only"), plan)?;
        for (_, cell) in plan.among(&prediction.only) {
            Self::check_measured(prediction.of, &cell.setup, &place("of"))?;
        }
        Ok(())
    }
}
