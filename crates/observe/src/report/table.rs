//! Tables.

use super::unit::{Scale, Unit};
use serde::{Deserialize, Serialize};

/// Rows with the same columns.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Table {
    /// Its subject, or empty.
    #[serde(default)]
    pub title: String,
    /// From left to right.
    pub columns: Vec<Column>,
    /// From top to bottom.
    pub rows: Vec<Row>,
    /// A note below it, or empty.
    #[serde(default)]
    pub note: String,
}

/// A column: its heading, and the unit of its cells.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Column {
    /// The heading, without the unit.
    pub label: String,
    /// The unit of its numbers.
    #[serde(default)]
    pub unit: Unit,
}

/// One row, with a cell for every column.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// From left to right.
    pub cells: Vec<Cell>,
    /// The reason why its numbers are invalid, if they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub invalid: Option<String>,
}

/// The contents of a cell.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Cell {
    /// A cell without a value.
    #[default]
    Empty,
    /// In the base of the column's unit.
    Number(f64),
    /// From one number to another.
    Range([f64; 2]),
    /// A number that is invalid, while others of its row are valid.
    Invalid {
        /// In the base of the column's unit.
        invalid: f64,
    },
    /// A text, shown as it is.
    Text(String),
}

impl Table {
    /// An empty table with these columns.
    pub fn new<'a>(columns: impl IntoIterator<Item = (&'a str, Unit)>) -> Self {
        let column = |(label, unit): (&str, _)| Column { label: label.to_owned(), unit };
        Self { columns: columns.into_iter().map(column).collect(), ..Self::default() }
    }

    /// Adds a row to the end.
    pub fn row(&mut self, cells: impl IntoIterator<Item = Cell>) {
        self.rows.push(Row { cells: cells.into_iter().collect(), invalid: None });
    }

    /// The scale of a column's numbers, by the largest of them.
    #[must_use]
    pub fn scale(&self, column: usize) -> Scale {
        let largest = self.numbers(column).map(f64::abs).fold(0.0, f64::max);
        self.columns.get(column).map_or(&Unit::None, |column| &column.unit).scale(largest)
    }

    /// Whether a column holds only numbers.
    #[must_use]
    pub fn is_numeric(&self, column: usize) -> bool {
        let is_text = |row: &Row| matches!(row.cells.get(column), Some(Cell::Text(_)));
        !self.rows.iter().any(is_text)
    }

    fn numbers(&self, column: usize) -> impl Iterator<Item = f64> {
        self.rows.iter().filter_map(move |row| match row.cells.get(column) {
            Some(Cell::Number(number) | Cell::Range([_, number]) | Cell::Invalid { invalid: number }) => {
                Some(*number).filter(|number| number.is_finite())
            }
            _ => None,
        })
    }
}

impl Cell {
    /// A number, and whether it is valid. Empty if there is none, or if it cannot be shown.
    #[must_use]
    pub fn number(number: Option<f64>, is_valid: bool) -> Self {
        match Self::from(number) {
            Self::Number(invalid) if !is_valid => Self::Invalid { invalid },
            cell => cell,
        }
    }

    /// The text of the cell; numbers are without the unit.
    #[must_use]
    pub fn text(&self, scale: &Scale) -> String {
        match self {
            Self::Empty => String::new(),
            Self::Number(number) => scale.digits(*number),
            Self::Range([low, high]) => format!("{}–{}", scale.digits(*low), scale.digits(*high)),
            Self::Invalid { invalid } => format!("× {}", scale.digits(*invalid)),
            Self::Text(text) => text.clone(),
        }
    }
}

impl Row {
    /// The reason why it is invalid, unless one of its cells shows that already.
    #[must_use]
    pub fn untold_reason(&self) -> Option<&str> {
        let reason = self.invalid.as_deref()?;
        let tells = |cell: &Cell| matches!(cell, Cell::Text(text) if text.contains(reason));
        (!self.cells.iter().any(tells)).then_some(reason)
    }
}

impl From<f64> for Cell {
    fn from(number: f64) -> Self {
        if number.is_finite() { Self::Number(number) } else { Self::Empty }
    }
}

impl From<Option<f64>> for Cell {
    fn from(number: Option<f64>) -> Self {
        number.map_or(Self::Empty, Self::from)
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}
