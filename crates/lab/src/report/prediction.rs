//! A model's prediction for each combination of values, beside the measurement.

use super::{figure, measured};
use crate::experiment::{Experiment, Plan, Prediction};
use crate::results::Folder;
use observe::report::{Axis, Cell, Figure, Point, Row, Series, Style, Table, Unit};
use observe::statistics::Sample;

/// A cell with both: x is the prediction, y the measurement.
struct Compared {
    cell: usize,
    point: Point,
}

impl Compared {
    /// The excess of the measurement over the prediction, as a share of the prediction.
    fn error(&self) -> f64 {
        self.point.y / self.point.x - 1.0
    }
}

/// Draws a prediction. Omits cells without runs or predictions.
pub(super) fn draw(prediction: &Prediction, experiment: &Experiment, plan: &Plan, folder: &Folder) -> Figure {
    let compared = compare(prediction, plan, folder);
    let title = prediction.title.clone().unwrap_or_else(|| experiment.title().to_owned());
    let axis = |what: &str| {
        let label = format!("{}, {what}", prediction.of.label());
        Axis::new(label, prediction.of.unit()).logarithmic()
    };
    let mut figure = Figure::new(title, axis("predicted"), axis("measured")).caption(format!(
        "On the dashed line the model is right; above it, more was measured than predicted. Tb + Tc, which the model does not \
         know, are those that were measured with one request at a time at the shortest round trip: there it can only be \
         wrong about the transfer. {}",
        errors(&compared)
    ));
    for (name, points) in series(prediction, plan, &compared) {
        figure = figure.series(Series::new(name, Style::Points, points));
    }
    if compared.is_empty() {
        figure.caption += &format!(" {}", figure::without(prediction.by));
    } else {
        figure = figure.series(Series::new("as predicted", Style::Dashed, diagonal(&compared)));
    }
    figure.table = Some(table(plan, prediction, &compared));
    figure
}

fn compare(prediction: &Prediction, plan: &Plan, folder: &Folder) -> Vec<Compared> {
    let compared = plan.among(&prediction.only).filter_map(|(cell, _)| {
        let predicted = measured::theoretical(prediction.by, prediction.of, cell, plan, folder)?;
        let point = measured::point(predicted, cell, prediction.of, plan, folder)?;
        Some(Compared { cell, point })
    });
    compared.collect()
}

fn series(prediction: &Prediction, plan: &Plan, compared: &[Compared]) -> Vec<(String, Vec<Point>)> {
    let points = |cells: &dyn Fn(usize) -> bool| {
        compared.iter().filter(|one| cells(one.cell)).map(|one| one.point.clone()).collect::<Vec<_>>()
    };
    let variable = prediction.series.as_ref();
    let Some((name, index)) = variable.and_then(|name| {
        let index = plan.variables.iter().position(|variable| variable == name)?;
        Some((name, index))
    }) else {
        return vec![("measured".to_owned(), points(&|_| true))];
    };
    let of_label = |label: &&str| points(&|cell| plan.cells[cell].labels[index] == *label);
    let series = plan.labels(name).into_iter().map(|label| (format!("{name} {label}"), of_label(&label)));
    series.filter(|(_, points)| !points.is_empty()).collect()
}

/// From the smallest to the largest number.
fn diagonal(compared: &[Compared]) -> [Point; 2] {
    let numbers = Sample::of(compared.iter().flat_map(|one| [one.point.x, one.point.y]));
    let (low, high) = numbers.map_or((1.0, 1.0), |numbers| (numbers.min(), numbers.max()));
    [low, high].map(|number| Point::new(number, number))
}

/// A summary of the model's errors.
fn errors(compared: &[Compared]) -> String {
    let valid = compared.iter().filter(|one| one.point.invalid.is_none());
    let Some(errors) = Sample::of(valid.map(|one| one.error().abs())) else {
        return "No valid run can be compared.".to_owned();
    };
    let format = |share| Unit::Share.format(share);
    format!(
        "Its error, as a share of what was predicted, has a size of {} in the median and of {} at the most \
         (combinations with valid runs: {}).",
        format(errors.median()),
        format(errors.max()),
        errors.count()
    )
}

fn table(plan: &Plan, prediction: &Prediction, compared: &[Compared]) -> Table {
    let unit = prediction.of.unit();
    let varied = varied(plan, compared);
    let columns = varied.iter().map(|index| (plan.variables[*index].as_str(), Unit::None));
    let numbers = [("predicted", unit.clone()), ("measured", unit), ("error", Unit::Share)];
    let mut table = Table::new(columns.chain(numbers));
    table.rows = compared.iter().map(|one| row(plan, &varied, one)).collect();
    table.note = errors(compared);
    table
}

/// The variables with several values; others need no label.
fn varied(plan: &Plan, compared: &[Compared]) -> Vec<usize> {
    let label = |one: &Compared, index: usize| &plan.cells[one.cell].labels[index];
    let differs =
        |index: &usize| compared.windows(2).any(|pair| label(&pair[0], *index) != label(&pair[1], *index));
    (0..plan.variables.len()).filter(differs).collect()
}

fn row(plan: &Plan, varied: &[usize], one: &Compared) -> Row {
    let Compared { cell, point } = one;
    let labels = varied.iter().map(|index| Cell::from(plan.cells[*cell].labels[*index].as_str()));
    let is_valid = point.invalid.is_none();
    let numbers = [(point.x, true), (point.y, is_valid), (one.error(), is_valid)];
    let numbers = numbers.map(|(number, is_valid)| Cell::number(Some(number), is_valid));
    Row { cells: labels.chain(numbers).collect(), invalid: point.invalid.clone() }
}
