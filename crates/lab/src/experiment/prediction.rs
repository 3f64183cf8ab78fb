//! What a model predicts beside what was measured, over all combinations.

use super::InvalidExperiment;
use super::document::{Document, Theory};
use super::plan::Plan;
use super::setup::Quantity;
use serde::Deserialize;
use std::collections::BTreeMap;

/// A figure with a point for each combination of values: what was predicted of it, and what was measured.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prediction {
    /// The experiment's, if it is missing.
    #[serde(default)]
    pub title: Option<String>,
    /// What is predicted, and measured.
    pub of: Quantity,
    /// By which model.
    pub by: Theory,
    /// A variable whose values have a colour each.
    #[serde(default)]
    pub series: Option<String>,
    /// Only runs with these values of these variables.
    #[serde(default)]
    pub only: BTreeMap<String, Vec<String>>,
}

impl Document {
    /// Whether the prediction of this number can be compared in that plan.
    pub fn check_prediction(&self, number: usize, plan: &Plan) -> Result<(), InvalidExperiment> {
        let prediction = &self.predictions[number];
        let place = |key: &str| format!("prediction {}, {key}", number + 1);
        if let Some(name) = &prediction.series {
            self.variable(name, &place("series"))?;
        }
        self.check_only(&prediction.only, &place("only"), plan)?;
        let cells = plan.cells.iter().enumerate().filter(|(cell, _)| plan.is_among(*cell, &prediction.only));
        for (_, cell) in cells {
            Self::check_measured(prediction.of, &cell.setup, &place("of"))?;
        }
        Ok(())
    }
}
