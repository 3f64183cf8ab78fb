//! One plot of an experiment, drawn from the measurements.

use super::{measured, shares};
use crate::experiment::{Experiment, Plan, Plot, Quantity, Theory, each_once, positions};
use crate::results::Folder;
use observe::report::{Axis, Figure, Point, Series, Style};

/// The runs of one point: those of one cell.
struct Place<'a> {
    cell: usize,
    series: String,
    /// The text of x, and its position.
    label: &'a str,
    x: f64,
}

/// Draws a plot. Omits cells without runs, and marks those without a VALID run.
pub(super) fn draw(plot: &Plot, experiment: &Experiment, plan: &Plan, folder: &Folder) -> Figure {
    let (places, x) = places(plot, plan);
    let title = plot.title.clone().unwrap_or_else(|| experiment.title().to_owned());
    let y = Axis::new(plot.y.label(), plot.y.unit());
    let mut figure = Figure::new(title, x, y).caption(
        "Each point is the mean of the valid runs; its bar, if there are several, reaches from the smallest to the \
         largest.",
    );
    for name in names(&places) {
        let places = places.iter().filter(|place| place.series == name);
        let points = places.filter_map(|place| measured::point(place.x, place.cell, plot.y, plan, folder));
        let style = if plot.bars { Style::Bars } else { Style::Line };
        figure = figure.series(Series::new(&name, style, points));
    }
    for theory in &plot.theory {
        let curves = theoretical(*theory, plot.y, &places, plan, folder);
        if curves.is_empty() {
            figure.caption += &format!(" {}", without(*theory));
        }
        figure = curves.into_iter().fold(figure, Figure::series);
    }
    if let Some(base) = &plot.share_of {
        let x = places.iter().find(|place| place.label == *base).map(|place| place.x);
        figure.table = x.map(|x| shares::table(&figure, x, base));
    }
    figure
}

/// The positions of a plot's cells, and their axis.
fn places<'a>(plot: &Plot, plan: &'a Plan) -> (Vec<Place<'a>>, Axis) {
    let index = |name: &str| plan.variables.iter().position(|variable| variable == name);
    let cells: Vec<_> = plan.among(&plot.only).collect();
    // A variable with only one value needs no label.
    let differs =
        |index: &usize| cells.iter().any(|(_, cell)| cell.labels[*index] != cells[0].1.labels[*index]);
    let others: Vec<usize> =
        (0..plan.variables.len()).filter(|index| plan.variables[*index] != plot.x).filter(differs).collect();
    let x = index(&plot.x).unwrap_or(0);
    let labels: Vec<&str> = cells.iter().map(|(_, cell)| cell.labels[x].as_str()).collect();
    // The positions were checked when the experiment was parsed.
    let (positions, axis) = match plot.bars {
        true => named(&plot.x, &labels),
        false => {
            let (positions, unit) = positions(&labels).unwrap_or_default();
            (positions, Axis::new(&plot.x, unit))
        }
    };
    let places = cells.iter().zip(positions).map(|((number, cell), position)| {
        let names: Vec<String> =
            others.iter().map(|index| series_name(&plan.variables[*index], &cell.labels[*index])).collect();
        let series = if names.is_empty() { "measured".to_owned() } else { names.join(", ") };
        Place { cell: *number, series, label: &cell.labels[x], x: position }
    });
    (places.collect(), axis)
}

/// A position for each name.
fn named(x: &str, labels: &[&str]) -> (Vec<f64>, Axis) {
    let names = each_once(labels.iter().map(|label| (*label).to_owned()));
    let position = |label: &&str| names.iter().position(|name| name == label).unwrap_or_default() as f64;
    let positions = labels.iter().map(position).collect();
    (positions, Axis::named(x, names))
}

/// A word names itself; a number needs its variable.
fn series_name(variable: &str, label: &str) -> String {
    if label.starts_with(|first: char| first.is_ascii_digit()) {
        format!("{variable} {label}")
    } else {
        label.to_owned()
    }
}

/// The names, in order.
fn names(places: &[Place<'_>]) -> Vec<String> {
    each_once(places.iter().map(|place| place.series.clone()))
}

/// The reason why a curve is missing.
pub(super) fn without(theory: Theory) -> String {
    format!(
        "The curve \"{}\" is missing: it needs Tb + Tc, which valid runs at the shortest round trip tell, with one request \
         at a time.",
        theory.label()
    )
}

/// One curve for all series, if it is the same for all.
fn theoretical(
    theory: Theory,
    y: Quantity,
    places: &[Place<'_>],
    plan: &Plan,
    folder: &Folder,
) -> Vec<Series> {
    let of_series = |name: &String| -> Vec<Point> {
        let places = places.iter().filter(|place| place.series == *name);
        let points = places.filter_map(|place| {
            Some(Point::new(place.x, measured::theoretical(theory, y, place.cell, plan, folder)?))
        });
        points.collect()
    };
    let names = names(places);
    let curves = names.iter().map(|name| (name, of_series(name)));
    let curves: Vec<(&String, Vec<Point>)> = curves.filter(|(_, curve)| !curve.is_empty()).collect();
    let is_common = curves.windows(2).all(|pair| pair[0].1 == pair[1].1);
    let dashed = |name: String, curve: Vec<Point>| Series::new(name, Style::Dashed, curve);
    let label = theory.label();
    if is_common {
        curves.into_iter().take(1).map(|(_, curve)| dashed(label.to_owned(), curve)).collect()
    } else {
        curves.into_iter().map(|(name, curve)| dashed(format!("{label}, {name}"), curve)).collect()
    }
}
