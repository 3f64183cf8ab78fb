//! Distributions of times, as rows of a table.

use super::table::{Cell, Table};
use super::unit::Unit;
use crate::statistics::Statistic;

/// The columns of each time.
const COLUMNS: [(&str, Unit); 8] = [
    ("number", Unit::None),
    ("mean", Unit::Seconds),
    ("SD", Unit::Seconds),
    ("min", Unit::Seconds),
    ("median", Unit::Seconds),
    ("p95", Unit::Seconds),
    ("p99", Unit::Seconds),
    ("max", Unit::Seconds),
];

impl Table {
    /// An empty table of times: these columns identify them, and the others have their distributions
    /// ([`Statistic::cells`]).
    pub fn of_times<'a>(which: impl IntoIterator<Item = &'a str>) -> Self {
        Self::new(which.into_iter().map(|label| (label, Unit::None)).chain(COLUMNS))
    }
}

impl Statistic {
    /// The cells of a row of [`Table::of_times`], and whether the times are valid.
    #[must_use]
    pub fn cells(&self, is_valid: bool) -> [Cell; 8] {
        let seconds = |time_ns: u64| Cell::number(Some(time_ns as f64 / 1e9), is_valid);
        [
            Cell::from(self.samples as f64),
            seconds(self.mean_ns),
            self.standard_deviation_ns.map_or(Cell::Empty, seconds),
            seconds(self.min_ns),
            seconds(self.median_ns),
            seconds(self.p95_ns),
            seconds(self.p99_ns),
            seconds(self.max_ns),
        ]
    }
}
