//! The cells of a series of copies, each with its place in the experiment.

use anyhow::ensure;
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
    /// What was measured; it has a value of each of the [`VARIABLES`].
    pub cell: CellSummary,
}

/// The experiment's variables.
const VARIABLES: [&str; 4] = ["path", "congestion control", "direction", "copy"];

impl Copies {
    /// # Errors
    /// If the summary is of another experiment.
    pub fn of(summary: Summary) -> anyhow::Result<Self> {
        let cells = summary.cells.into_iter().map(Copy::of).collect::<anyhow::Result<_>>()?;
        Ok(Self { series: summary.series, cells })
    }

    /// The different values of a property of the copies, in order.
    pub fn values(&self, of: impl Fn(&Copy) -> &str) -> Vec<&str> {
        lab::each_once(self.cells.iter().map(of))
    }

    /// The copy of that name in this place.
    pub fn at(&self, path: &str, congestion_control: &str, direction: &str, name: &str) -> Option<&Copy> {
        let place = (path, congestion_control, direction, name);
        self.cells
            .iter()
            .find(|copy| (copy.path(), copy.congestion_control(), copy.direction(), copy.name()) == place)
    }

    /// What another copy reached in the place of `like`.
    pub fn beside(&self, like: &Copy, name: &str) -> Option<&Copy> {
        self.at(like.path(), like.congestion_control(), like.direction(), name)
    }
}

impl Copy {
    /// # Errors
    /// If the cell is of another experiment.
    pub fn of(cell: CellSummary) -> anyhow::Result<Self> {
        for variable in VARIABLES {
            ensure!(
                cell.values.contains_key(variable),
                "the results have no variable \"{variable}\": they are of another experiment"
            );
        }
        Ok(Self { cell })
    }

    pub fn path(&self) -> &str {
        &self.cell.values["path"]
    }

    pub fn congestion_control(&self) -> &str {
        &self.cell.values["congestion control"]
    }

    pub fn direction(&self) -> &str {
        &self.cell.values["direction"]
    }

    pub fn name(&self) -> &str {
        &self.cell.values["copy"]
    }

    /// Its throughput in bits per second.
    pub fn throughput(&self) -> Option<&Spread> {
        self.cell.measured.get(&Quantity::Throughput)
    }
}
