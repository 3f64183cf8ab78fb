//! One run over its time, drawn from its samples.

use crate::experiment::{Experiment, Observed, Plan, Trace};
use crate::results::{Folder, FolderError, RunRecord};
use crate::sample::Sample;
use observe::SocketSample;
use observe::report::{Axis, Figure, Point, Series, Style, Unit};

/// Connections of which each has a series; more cannot be told apart.
const CONNECTIONS_MAX: usize = 8;
/// Points of a series; more cannot be told apart either, and make a page slow.
const POINTS_MAX: usize = 4000;

/// Draws a trace, once for each combination of values that it asks for and that was run.
pub(super) fn draw(
    trace: &Trace,
    experiment: &Experiment,
    plan: &Plan,
    folder: &Folder,
) -> Result<Vec<Figure>, FolderError> {
    let cells = (0..plan.cells.len()).filter(|cell| plan.is_among(*cell, &trace.only));
    let runs = cells.filter_map(|cell| run_to_draw(cell, plan, folder));
    runs.map(|(cell, record)| {
        let title = trace.title.as_deref().unwrap_or(experiment.title());
        let title = match plan.variables.is_empty() {
            true => title.to_owned(),
            false => format!("{title} ({})", plan.describe(cell)),
        };
        Ok(of_run(trace, title, record, &folder.samples(record)?))
    })
    .collect()
}

/// The first valid run of a cell; if there is none, the last that was tried.
fn run_to_draw<'a>(cell: usize, plan: &Plan, folder: &'a Folder) -> Option<(usize, &'a RunRecord)> {
    let of_cell = |record: &&RunRecord| plan.cell_of_run(record.run) == Some(cell);
    let mut records = folder.records.iter().filter(of_cell);
    let valid = records.clone().find(|record| record.valid);
    Some((cell, valid.or_else(|| records.next_back())?))
}

fn of_run(trace: &Trace, title: String, record: &RunRecord, samples: &[Sample]) -> Figure {
    let axis = |observed: &[Observed]| {
        let labels: Vec<&str> = observed.iter().map(|observed| observed.label()).collect();
        Axis::new(labels.join(", "), observed.first().map_or(Unit::None, |observed| observed.unit()))
    };
    let mut figure = Figure::new(title, Axis::new("time", Unit::Seconds), axis(&trace.y));
    if !trace.right.is_empty() {
        figure.right = Some(axis(&trace.right));
    }
    if !record.valid {
        figure.warnings.push(format!("INVALID: {}", record.reasons.join("; ")));
    }
    let begun_ns = samples.iter().map(Sample::at_ns).min().unwrap_or(0);
    let connections = connections(samples);
    let is_single = connections.len() == 1;
    for (number, samples) in connections.iter().enumerate() {
        for (observed, right) in
            trace.y.iter().map(|y| (y, false)).chain(trace.right.iter().map(|right| (right, true)))
        {
            let name = match is_single {
                true => observed.label().to_owned(),
                false => format!("{}, connection {}", observed.label(), number + 1),
            };
            let series = Series::new(name, Style::Steps, points(trace, *observed, samples, begun_ns));
            figure = figure.series(if right { series.right() } else { series });
        }
    }
    figure
}

/// The samples of each, in the order in which they were found.
fn connections(samples: &[Sample]) -> Vec<Vec<&SocketSample>> {
    let mut connections: Vec<Vec<&SocketSample>> = Vec::new();
    for sample in samples {
        if let Sample::Socket(sample) = sample
            && sample.connection < CONNECTIONS_MAX
        {
            connections.resize_with(connections.len().max(sample.connection + 1), Vec::new);
            connections[sample.connection].push(&sample.socket);
        }
    }
    connections
}

fn points(trace: &Trace, observed: Observed, samples: &[&SocketSample], begun_ns: u64) -> Vec<Point> {
    let since_s = |sample: &SocketSample| sample.at_ns.saturating_sub(begun_ns) as f64 / 1e9;
    let (from_s, to_s) =
        (trace.from.0.as_secs_f64(), trace.to.map_or(f64::INFINITY, |to| to.0.as_secs_f64()));
    let points = samples.iter().enumerate().filter_map(|(index, sample)| {
        let before = index.checked_sub(1).map(|index| samples[index]);
        Some(Point::new(since_s(sample), observed.value(before, sample)?))
    });
    let points: Vec<Point> = points.filter(|point| (from_s..=to_s).contains(&point.x)).collect();
    let every = points.len().div_ceil(POINTS_MAX).max(1);
    points.into_iter().step_by(every).collect()
}
