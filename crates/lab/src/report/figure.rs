//! One plot of an experiment, drawn from what was measured.

use crate::experiment::{Experiment, Plan, Plot, Quantity, Setup, Theory, positions};
use crate::results::{Folder, RunRecord};
use observe::report::{Axis, Figure, Point, Series, Style, Unit};
use observe::statistics::Sample;

/// Runs that make one point: those of one cell.
struct Place<'a> {
    cell: usize,
    series: String,
    x: f64,
    setup: &'a Setup,
}

/// Draws a plot. What has not been run is left out; what was run and never valid is shown as such.
pub(super) fn draw(plot: &Plot, experiment: &Experiment, plan: &Plan, folder: &Folder) -> Figure {
    let (places, unit) = places(plot, plan);
    let title = plot.title.clone().unwrap_or_else(|| experiment.title().to_owned());
    let y = Axis::new(plot.y.label(), plot.y.unit());
    let mut figure = Figure::new(title, Axis::new(&plot.x, unit), y).caption(
        "Each point is the mean of the valid runs; its bar, if there are several, reaches from the smallest to the \
         largest.",
    );
    for name in names(&places) {
        let places = places.iter().filter(|place| place.series == name);
        let points = places.filter_map(|place| point(plot, place, plan, folder));
        figure = figure.series(Series::new(&name, Style::Line, points));
    }
    for theory in &plot.theory {
        let curves = theoretical(*theory, plot.y, &places, plan, folder);
        if curves.is_empty() {
            figure.caption += &format!(" {}", without(*theory));
        }
        figure = curves.into_iter().fold(figure, Figure::series);
    }
    figure
}

fn places<'a>(plot: &Plot, plan: &'a Plan) -> (Vec<Place<'a>>, Unit) {
    let index = |name: &str| plan.variables.iter().position(|variable| variable == name);
    let cells: Vec<_> =
        plan.cells.iter().enumerate().filter(|(number, _)| plan.is_among(*number, &plot.only)).collect();
    // What always has the same value needs no telling.
    let differs =
        |index: &usize| cells.iter().any(|(_, cell)| cell.labels[*index] != cells[0].1.labels[*index]);
    let others: Vec<usize> =
        (0..plan.variables.len()).filter(|index| plan.variables[*index] != plot.x).filter(differs).collect();
    let x = index(&plot.x).unwrap_or(0);
    let labels: Vec<&str> = cells.iter().map(|(_, cell)| cell.labels[x].as_str()).collect();
    // That they have a place was checked when the experiment was read.
    let (positions, unit) = positions(&labels).unwrap_or_default();
    let places = cells.iter().zip(positions).map(|((number, cell), x)| {
        let names: Vec<String> =
            others.iter().map(|index| series_name(&plan.variables[*index], &cell.labels[*index])).collect();
        let series = if names.is_empty() { "measured".to_owned() } else { names.join(", ") };
        Place { cell: *number, series, x, setup: &cell.setup }
    });
    (places.collect(), unit)
}

/// A word tells of what it is, a number does not.
fn series_name(variable: &str, label: &str) -> String {
    if label.starts_with(|first: char| first.is_ascii_digit()) {
        format!("{variable} {label}")
    } else {
        label.to_owned()
    }
}

/// In their order.
fn names(places: &[Place<'_>]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for place in places {
        if !names.contains(&place.series) {
            names.push(place.series.clone());
        }
    }
    names
}

fn point(plot: &Plot, place: &Place<'_>, plan: &Plan, folder: &Folder) -> Option<Point> {
    let is_of_place = |record: &&RunRecord| plan.cell_of_run(record.run) == Some(place.cell);
    let records: Vec<&RunRecord> = folder.records.iter().filter(is_of_place).collect();
    let values = |valid: bool| {
        let records = records.iter().filter(move |record| record.valid == valid);
        Sample::of(records.filter_map(|record| record.measured.get(&plot.y).copied()))
    };
    let drawn = |sample: &Sample| {
        let point = Point::new(place.x, sample.mean());
        if sample.count() > 1 { point.between(sample.min(), sample.max()) } else { point }
    };
    match values(true) {
        Some(valid) => Some(drawn(&valid)),
        None => {
            let reasons = records.last()?.reasons.join("; ");
            let invalid = values(false);
            // A run of which nothing was measured has a place too: at the bottom.
            Some(invalid.as_ref().map_or_else(|| Point::new(place.x, 0.0), drawn).invalid(reasons))
        }
    }
}

/// Why a curve is missing.
fn without(theory: Theory) -> String {
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
            let host_time_s = host_time_s(place.cell, plan, folder);
            Some(Point::new(place.x, theory.value(place.setup, y, host_time_s)?))
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

/// Tb + Tc of the runs that differ from a cell's in nothing but the round trip, where that is shortest: what the hosts
/// take does not depend on the distance, and is seen best without.
fn host_time_s(cell: usize, plan: &Plan, folder: &Folder) -> Option<f64> {
    let elsewhere = |cell: usize| {
        let mut table = plan.cells[cell].table.clone();
        table.remove("rtt");
        table
    };
    let here = elsewhere(cell);
    let alike: Vec<usize> = (0..plan.cells.len()).filter(|cell| elsewhere(*cell) == here).collect();
    let nearest = alike.into_iter().min_by_key(|cell| plan.cells[*cell].setup.rtt)?;
    let records =
        folder.records.iter().filter(|record| record.valid && plan.cell_of_run(record.run) == Some(nearest));
    let measured = records.filter_map(|record| record.measured.get(&Quantity::HostTime).copied());
    Some(Sample::of(measured)?.mean())
}
