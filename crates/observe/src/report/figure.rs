//! Figures: series of points over axes.

use super::table::{Cell, Column, Row, Table};
use super::unit::Unit;
use serde::{Deserialize, Deserializer, Serialize};

/// The most rows of a table made of the points of a figure.
const ROWS_MAX: usize = 200;

/// Series over common axes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// The subject, above the figure.
    pub title: String,
    /// An explanation, or empty.
    #[serde(default)]
    pub caption: String,
    /// The axis below.
    pub x: Axis,
    /// The axis to the left.
    pub y: Axis,
    /// The axis to the right, for the series drawn against it.
    #[serde(default)]
    pub right: Option<Axis>,
    /// The curves, in drawing order.
    pub series: Vec<Series>,
    /// Texts within the figure.
    #[serde(default)]
    pub annotations: Vec<Annotation>,
    /// Warnings across the figure, which nobody should miss: `INVALID: the relay was busy`.
    #[serde(default)]
    pub warnings: Vec<String>,
    /// The table that belongs to it. Without one, its points become a table ([`Figure::table_or_points`]).
    #[serde(default)]
    pub table: Option<Table>,
}

/// One axis. A linear y axis includes zero; an x axis includes the drawn points.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Axis {
    /// The quantity, without the unit.
    pub label: String,
    /// The base unit of all values on this axis.
    #[serde(default)]
    pub unit: Unit,
    /// Whether equal distances are equal factors. Then only positive numbers are drawn.
    #[serde(default)]
    pub logarithmic: bool,
    /// The names at 0, 1, 2 and so on instead of numbers; only for the axis below.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
}

/// Points that belong together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// In any order; drawn in the order of x.
    pub points: Vec<Point>,
    /// How the points are drawn and joined.
    #[serde(default)]
    pub style: Style,
    /// Whether the axis to the right applies.
    #[serde(default)]
    pub right: bool,
}

/// The style of a series.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Style {
    /// Points, joined by lines; for many points only the lines.
    #[default]
    Line,
    /// A dashed line for values that were not measured: theory, a limit.
    Dashed,
    /// A line that keeps each value until the next.
    Steps,
    /// Points that are not joined.
    Points,
    /// A bar for each point, from zero; bars of several series stand side by side. For an axis with names.
    Bars,
}

/// A value at a place on the axis below, perhaps with an error bar.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// On the axis below.
    pub x: f64,
    /// On the axis at the side. A number that is not finite (stored as null) interrupts the line.
    #[serde(deserialize_with = "number_or_null")]
    pub y: f64,
    /// The lower end of its error bar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// The upper end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
    /// The reason why it is invalid, if it is. It is then drawn as a cross, and no line leads to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub invalid: Option<String>,
}

/// A text at a place in a figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Annotation {
    /// A value or a range on an axis.
    pub place: Place,
    /// A few words.
    pub text: String,
}

/// The place of an annotation.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names of the range's ends say what they are")]
pub enum Place {
    /// A vertical line.
    X(f64),
    /// A horizontal line, on the axis to the left.
    Y(f64),
    /// A range of the axis below.
    Span { from: f64, to: f64 },
}

fn number_or_null<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or(f64::NAN))
}

impl Axis {
    /// A linear axis.
    pub fn new(label: impl Into<String>, unit: Unit) -> Self {
        Self { label: label.into(), unit, ..Self::default() }
    }

    /// An axis of names.
    pub fn named(label: impl Into<String>, names: Vec<String>) -> Self {
        Self { label: label.into(), names, ..Self::default() }
    }

    /// The name at a place on an axis of names.
    #[must_use]
    pub fn name_at(&self, place: f64) -> Option<&str> {
        let is_place = |index: &usize| *index as f64 == place;
        (0..self.names.len()).find(is_place).map(|index| self.names[index].as_str())
    }

    /// Makes the axis logarithmic.
    #[must_use]
    pub fn logarithmic(self) -> Self {
        Self { logarithmic: true, ..self }
    }
}

impl Point {
    /// A point without an error bar.
    #[must_use]
    pub fn new(x: f64, y: f64) -> Self {
        Self { x, y, ..Self::default() }
    }

    /// Adds an error bar.
    #[must_use]
    pub fn between(self, low: f64, high: f64) -> Self {
        Self { low: Some(low), high: Some(high), ..self }
    }

    /// Marks the point as invalid.
    #[must_use]
    pub fn invalid(self, reason: impl Into<String>) -> Self {
        Self { invalid: Some(reason.into()), ..self }
    }
}

impl Series {
    /// A series against the axis to the left.
    pub fn new(name: impl Into<String>, style: Style, points: impl IntoIterator<Item = Point>) -> Self {
        Self { name: name.into(), points: points.into_iter().collect(), style, right: false }
    }

    /// Assigns the series to the axis to the right.
    #[must_use]
    pub fn right(self) -> Self {
        Self { right: true, ..self }
    }
}

impl Figure {
    /// A figure without series.
    pub fn new(title: impl Into<String>, x: Axis, y: Axis) -> Self {
        Self { title: title.into(), x, y, ..Self::default() }
    }

    /// Adds a caption.
    #[must_use]
    pub fn caption(self, caption: impl Into<String>) -> Self {
        Self { caption: caption.into(), ..self }
    }

    /// Adds a series.
    #[must_use]
    pub fn series(mut self, series: Series) -> Self {
        self.series.push(series);
        self
    }

    /// The reasons of its invalid points, each once, in the order of the points.
    #[must_use]
    pub fn invalid_reasons(&self) -> Vec<&str> {
        let mut reasons = Vec::new();
        let points = self.series.iter().flat_map(|series| &series.points);
        for reason in points.filter_map(|point| point.invalid.as_deref()) {
            if !reasons.contains(&reason) {
                reasons.push(reason);
            }
        }
        reasons
    }

    /// Its table; without one, its points: a row for each x, or several if a series has several points there. Rows
    /// without measurements omit theory. Truncated at a few hundred rows.
    #[must_use]
    pub fn table_or_points(&self) -> Table {
        self.table.clone().unwrap_or_else(|| self.points())
    }

    fn points(&self) -> Table {
        let mut table = Table { columns: self.columns(), ..Table::default() };
        let rows = self.rows();
        let mut notes = Vec::new();
        if rows.len() > ROWS_MAX {
            notes.push(format!("The first {ROWS_MAX} of {} rows.", rows.len()));
        }
        if !self.invalid_reasons().is_empty() {
            notes.push("×: not valid.".to_owned());
        }
        table.note = notes.join(" ");
        table.rows = rows.into_iter().take(ROWS_MAX).collect();
        table
    }

    fn columns(&self) -> Vec<Column> {
        let mut columns = vec![Column { label: self.x.label.clone(), unit: self.x.unit.clone() }];
        for series in &self.series {
            let axis = self.right.as_ref().filter(|_| series.right).unwrap_or(&self.y);
            let mut column = |label: String| columns.push(Column { label, unit: axis.unit.clone() });
            column(series.name.clone());
            if series.has_errors() {
                column(format!("{}, from–to", series.name));
            }
        }
        columns
    }

    /// The rows: one for every measured x, or several; the second is for series with a second point there.
    fn rows(&self) -> Vec<Row> {
        let width = self.columns().len();
        let mut column = 1;
        let mut entries = Vec::new();
        for series in &self.series {
            let (mut x, mut occurrence) = (f64::NAN, 0);
            for point in series.in_order() {
                occurrence = if point.x == x { occurrence + 1 } else { 0 };
                x = point.x;
                entries.push(((x, occurrence), column, series, point));
            }
            column += series.columns();
        }
        entries.sort_by(|(one, ..), (other, ..)| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)));
        let same_row = entries.chunk_by(|(one, ..), (other, ..)| one == other);
        let is_measured = |series: &Series| series.style != Style::Dashed;
        let all = !self.series.iter().any(is_measured);
        let told =
            same_row.filter(|entries| all || entries.iter().any(|(_, _, series, _)| is_measured(series)));
        let rows = told.map(|entries| {
            let mut row = Row { cells: vec![Cell::Empty; width], invalid: None };
            for ((x, _), column, series, point) in entries {
                row.cells[0] = self.x.name_at(*x).map_or(Cell::Number(*x), Cell::from);
                series.fill(&mut row, *column, point);
            }
            row
        });
        rows.collect()
    }
}

impl Series {
    /// Whether a line joins its points.
    pub(crate) fn is_joined(&self) -> bool {
        !matches!(self.style, Style::Points | Style::Bars)
    }

    pub(crate) fn has_errors(&self) -> bool {
        self.points.iter().any(|point| point.low.is_some() || point.high.is_some())
    }

    /// The number of its columns in a table.
    fn columns(&self) -> usize {
        if self.has_errors() { 2 } else { 1 }
    }

    /// Its points in drawing order.
    pub(crate) fn in_order(&self) -> Vec<&Point> {
        let mut points: Vec<&Point> = self.points.iter().filter(|point| point.x.is_finite()).collect();
        points.sort_by(|one, other| one.x.total_cmp(&other.x));
        points
    }

    fn fill(&self, row: &mut Row, column: usize, point: &Point) {
        row.cells[column] = Cell::number(Some(point.y), point.invalid.is_none());
        if point.low.or(point.high).is_some() {
            row.cells[column + 1] =
                Cell::Range([point.low.unwrap_or(point.y), point.high.unwrap_or(point.y)]);
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test says by its failure what went wrong")]
mod tests {
    use super::*;

    fn figure() -> Figure {
        Figure::new("t", Axis::new("RTT", Unit::Seconds), Axis::new("rate", Unit::BitsPerSecond))
    }

    #[test]
    fn points_of_the_same_x_share_a_row_and_repetitions_have_more() {
        let one = [Point::new(2.0, 20.0), Point::new(1.0, 10.0), Point::new(1.0, 11.0)];
        let other = [Point::new(1.0, 5.0).between(4.0, 6.0).invalid("late")];
        let table = figure()
            .series(Series::new("one", Style::Points, one))
            .series(Series::new("other", Style::Points, other))
            .table_or_points();
        let labels: Vec<_> = table.columns.iter().map(|column| column.label.as_str()).collect();
        assert_eq!(labels, ["RTT", "one", "other", "other, from–to"]);
        let texts =
            |row: &Row| row.cells.iter().map(|cell| cell.text(&Unit::None.scale(1.0))).collect::<Vec<_>>();
        let rows: Vec<_> = table.rows.iter().map(|row| texts(row).join("|")).collect();
        assert_eq!(rows, ["1|10|× 5|4–6", "1|11||", "2|20||"]);
        assert_eq!(table.note, "×: not valid.");
    }

    #[test]
    fn what_has_a_name_is_told_by_it() {
        let axis = Axis::named("who", vec!["one".to_owned(), "two".to_owned()]);
        let bars = Series::new("s", Style::Bars, [Point::new(1.0, 4.0), Point::new(0.0, 3.0)]);
        let table = Figure::new("t", axis, Axis::default()).series(bars).table_or_points();
        let names: Vec<_> = table.rows.iter().map(|row| row.cells[0].clone()).collect();
        assert_eq!(names, [Cell::from("one"), Cell::from("two")]);
    }

    #[test]
    fn theory_is_told_where_something_was_measured() {
        let theory = Series::new("theory", Style::Dashed, (0..9).map(|x| Point::new(x.into(), 2.0)));
        let measured = Series::new("measured", Style::Line, [Point::new(3.0, 1.0)]);
        let rows = |figure: Figure| figure.table_or_points().rows.len();
        assert_eq!(rows(figure().series(theory.clone())), 9);
        assert_eq!(rows(figure().series(theory).series(measured)), 1);
    }

    #[test]
    fn a_long_table_says_that_it_ends_early() {
        let points = (0..1000).map(|x| Point::new(x.into(), 1.0));
        let table = figure().series(Series::new("s", Style::Line, points)).table_or_points();
        assert_eq!((table.rows.len(), table.note.as_str()), (ROWS_MAX, "The first 200 of 1000 rows."));
    }

    #[test]
    fn a_reason_is_told_once() {
        let points = [
            Point::new(1.0, 1.0).invalid("late"),
            Point::new(2.0, 1.0),
            Point::new(3.0, 1.0).invalid("late"),
        ];
        assert_eq!(figure().series(Series::new("s", Style::Line, points)).invalid_reasons(), ["late"]);
    }

    #[test]
    fn a_figure_with_a_break_in_its_line_is_read_back_as_it_was_stored() {
        let points = [Point::new(1.0, 2.0).between(1.5, 2.5), Point::new(2.0, f64::NAN)];
        let stored = serde_json::to_string(&figure().series(Series::new("s", Style::Steps, points))).unwrap();
        let read: Figure = serde_json::from_str(&stored).unwrap();
        assert!(read.series[0].points[1].y.is_nan());
        assert_eq!(serde_json::to_string(&read).unwrap(), stored);
    }
}
