//! The cells of a series of copies, each with its place in the experiment.

use anyhow::Context;
use lab::{CellSummary, Quantity, SeriesSummary, Spread, Summary};

/// A series of copies.
pub struct Copies {
    pub series: SeriesSummary,
    /// In the order of the experiment.
    pub cells: Vec<Copy>,
}

/// The runs of one copy, in one direction, over one path.
#[derive(Clone)]
pub struct Copy {
    pub path: String,
    pub congestion_control: String,
    pub direction: String,
    pub name: String,
    /// What was measured.
    pub cell: CellSummary,
}

impl Copies {
    /// # Errors
    /// If the summary is of another experiment.
    pub fn of(summary: Summary) -> anyhow::Result<Self> {
        let cells = summary.cells.into_iter().map(Copy::of).collect::<anyhow::Result<_>>()?;
        Ok(Self { series: summary.series, cells })
    }

    /// The different values of a property of the cells, in order.
    pub fn values(&self, of: impl Fn(&Copy) -> &str) -> Vec<&str> {
        let mut values = Vec::new();
        for cell in &self.cells {
            if !values.contains(&of(cell)) {
                values.push(of(cell));
            }
        }
        values
    }

    /// What another copy reached in the place of `like`.
    pub fn beside(&self, like: &Copy, name: &str) -> Option<&Copy> {
        self.cells.iter().find(|copy| {
            copy.name == name
                && copy.path == like.path
                && copy.congestion_control == like.congestion_control
                && copy.direction == like.direction
        })
    }
}

impl Copy {
    fn of(cell: CellSummary) -> anyhow::Result<Self> {
        let value = |variable: &str| {
            let value = cell.values.get(variable).cloned();
            value.with_context(|| {
                format!("the results have no variable \"{variable}\": they are of another experiment")
            })
        };
        Ok(Self {
            path: value("path")?,
            congestion_control: value("congestion control")?,
            direction: value("direction")?,
            name: value("copy")?,
            cell,
        })
    }

    /// Its throughput in bits per second.
    pub fn throughput(&self) -> Option<&Spread> {
        self.cell.measured.get(&Quantity::Throughput)
    }
}
