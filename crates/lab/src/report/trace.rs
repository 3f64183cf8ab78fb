//! Figures of one run over its time.

use super::held;
use super::run_over_time::{RunOverTime, RunsOverTime};
use crate::experiment::{CommandEvent, Experiment, Observed, Plan, Trace, mark_label};
use crate::results::FolderError;
use observe::TcpEventKind;
use observe::report::{Annotation, Axis, Figure, Place, Point, Series, Style, Unit};
use std::ops::RangeInclusive;

/// The most connections with a series each; more would be indistinguishable.
const CONNECTIONS_MAX: usize = 8;
/// The most points of a series; more would be indistinguishable too, and slow a page.
const POINTS_MAX: usize = 4000;
/// The most marked gaps; more texts would overlap.
const GAPS_MAX: usize = 12;
/// The shortest period for a rate of packets, in seconds.
const RATE_STEP_S: f64 = 1e-3;
/// The margin before and after the drawn commands, as a share of their time.
const MARGIN: f64 = 0.04;

/// Draws a trace, once for each combination that it asks for and that was run.
pub(super) fn draw(
    trace: &Trace,
    experiment: &Experiment,
    plan: &Plan,
    runs: &mut RunsOverTime<'_>,
) -> Result<Vec<Figure>, FolderError> {
    let mut figures = Vec::new();
    for (cell, _) in plan.among(&trace.only) {
        let Some(run) = runs.of_cell(cell)? else { continue };
        let title = trace.title.as_deref().unwrap_or(experiment.title());
        let title = match plan.variables.is_empty() {
            true => title.to_owned(),
            false => format!("{title} ({})", plan.describe(cell)),
        };
        figures.push(of_run(trace, title, run));
    }
    Ok(figures)
}

fn of_run(trace: &Trace, title: String, run: &RunOverTime<'_>) -> Figure {
    let axis = |observed: &[Observed]| {
        let labels: Vec<&str> = observed.iter().map(|observed| observed.label()).collect();
        Axis::new(labels.join(", "), observed.first().map_or(Unit::None, |observed| observed.unit()))
    };
    let mut figure = Figure::new(title, Axis::new("time", Unit::Seconds), axis(&trace.y));
    if !trace.right.is_empty() {
        figure.right = Some(axis(&trace.right));
    }
    if !run.record.valid {
        figure.warnings.push(format!("INVALID: {}", run.record.reasons.join("; ")));
    }
    let window = window(trace, run);
    let connections = run.connections();
    let name = |label: &str, connection: usize| match connections {
        1 => label.to_owned(),
        _ => format!("{label}, connection {}", connection + 1),
    };
    for connection in 0..connections.min(CONNECTIONS_MAX) {
        for (observed, right) in
            trace.y.iter().map(|y| (y, false)).chain(trace.right.iter().map(|right| (right, true)))
        {
            let points = points(*observed, connection, run, &window);
            let series = Series::new(name(observed.label(), connection), Style::Steps, points);
            figure = figure.series(if right { series.right() } else { series });
        }
        for mark in &trace.marks {
            let points = thin(marked(*mark, trace, connection, run, &window));
            figure = figure.series(Series::new(name(mark_label(*mark), connection), Style::Points, points));
        }
    }
    if !trace.events.is_empty() || !trace.held.is_empty() {
        // The height of these is not a number.
        figure.table = Some(figure.table_or_points());
    }
    let left = figure.series.iter().filter(|series| !series.right).flat_map(|series| &series.points);
    let top = left.map(|point| point.y).fold(0.0, f64::max);
    figure = events(trace, run, &window, top, figure);
    figure = held(trace, run, &window, top, figure);
    if trace.gaps { gaps(run, &window, figure) } else { figure }
}

/// The drawn period, in seconds since the start of the run.
fn window(trace: &Trace, run: &RunOverTime<'_>) -> RangeInclusive<f64> {
    let from_s = trace.from.0.as_secs_f64();
    let to_s = trace.to.map_or(f64::INFINITY, |to| to.0.as_secs_f64());
    let Some(count) = trace.commands else { return from_s..=to_s };
    let all = run.commands();
    let wanted = all.iter().filter(|command| (from_s..=to_s).contains(&run.since_s(command.pulled_ns)));
    let wanted: Vec<_> = wanted.take(count.get()).collect();
    let ends = wanted.iter().map(|command| run.since_s(command.ended_ns));
    match (wanted.first(), ends.reduce(f64::max)) {
        (Some(first), Some(end_s)) => {
            let begin_s = run.since_s(first.pulled_ns);
            let margin_s = (end_s - begin_s) * MARGIN;
            begin_s - margin_s..=end_s + margin_s
        }
        _ => from_s..=to_s,
    }
}

fn points(
    observed: Observed,
    connection: usize,
    run: &RunOverTime<'_>,
    window: &RangeInclusive<f64>,
) -> Vec<Point> {
    let points = match observed {
        Observed::PacketsSent => packets_sent(connection, run, window),
        Observed::SendingRate => sending_rate(connection, run, window),
        _ => told_by_kernel(observed, connection, run, window),
    };
    thin(points)
}

/// Thins out points: keeps the lowest and the highest of each group of neighbours, so that peaks stay.
fn thin(points: Vec<Point>) -> Vec<Point> {
    if points.len() <= POINTS_MAX {
        return points;
    }
    let neighbours = points.len().div_ceil(POINTS_MAX / 2);
    let extremes = points.chunks(neighbours).flat_map(|neighbours| {
        let by_height = |one: &usize, other: &usize| neighbours[*one].y.total_cmp(&neighbours[*other].y);
        let lowest = (0..neighbours.len()).min_by(by_height);
        let highest = (0..neighbours.len()).max_by(by_height);
        let mut extremes: Vec<usize> = lowest.into_iter().chain(highest).collect();
        extremes.sort_unstable();
        extremes.dedup();
        extremes.into_iter().map(|index| neighbours[index].clone())
    });
    extremes.collect()
}

/// Draws events, if there are any, since they miss nothing; else samples.
fn told_by_kernel(
    observed: Observed,
    connection: usize,
    run: &RunOverTime<'_>,
    window: &RangeInclusive<f64>,
) -> Vec<Point> {
    let events = run.tcp_events(connection);
    if events.is_empty() || !observed.is_told_by_events() {
        return sampled(observed, connection, run, window);
    }
    let points = events
        .iter()
        .filter_map(|event| Some(Point::new(run.since_s(event.at_ns), observed.value_at(event)?)));
    points.filter(|point| window.contains(&point.x)).collect()
}

/// Marks events on the first curve of the left axis.
fn marked(
    kind: TcpEventKind,
    trace: &Trace,
    connection: usize,
    run: &RunOverTime<'_>,
    window: &RangeInclusive<f64>,
) -> Vec<Point> {
    let on = trace.y.first().copied();
    let events = run.tcp_events(connection).into_iter().filter(|event| event.kind == kind);
    let points = events.map(|event| {
        let value = on.and_then(|observed| observed.value_at(event)).unwrap_or(0.0);
        Point::new(run.since_s(event.at_ns), value)
    });
    points.filter(|point| window.contains(&point.x)).collect()
}

fn sampled(
    observed: Observed,
    connection: usize,
    run: &RunOverTime<'_>,
    window: &RangeInclusive<f64>,
) -> Vec<Point> {
    let samples = run.socket(connection);
    let points = samples.iter().enumerate().filter_map(|(index, sample)| {
        let before = index.checked_sub(1).map(|index| samples[index]);
        Some(Point::new(run.since_s(sample.at_ns), observed.value(before, sample)?))
    });
    points.filter(|point| window.contains(&point.x)).collect()
}

/// The count of packets after each.
fn packets_sent(connection: usize, run: &RunOverTime<'_>, window: &RangeInclusive<f64>) -> Vec<Point> {
    let mut sum = 0.0;
    let frames = run.sent(connection).map(|frame| (run.since_s(frame.at_ns), frame.packets));
    let points = frames.filter(|(at_s, _)| window.contains(at_s)).map(|(at_s, packets)| {
        sum += f64::from(packets);
        Point::new(at_s, sum)
    });
    points.collect()
}

/// The rate in each step of time, from the first frame to the last.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a few thousand steps")]
fn sending_rate(connection: usize, run: &RunOverTime<'_>, window: &RangeInclusive<f64>) -> Vec<Point> {
    let frames = run.sent(connection).map(|frame| (run.since_s(frame.at_ns), frame.payload_bytes));
    let frames: Vec<(f64, u32)> = frames.filter(|(at_s, _)| window.contains(at_s)).collect();
    let (Some((first_s, _)), Some((last_s, _))) = (frames.first(), frames.last()) else { return Vec::new() };
    let step_s = RATE_STEP_S.max((last_s - first_s) / POINTS_MAX as f64 * 2.0);
    let step = |at_s: f64| ((at_s - first_s) / step_s) as usize;
    let mut bytes = vec![0.0; step(*last_s) + 2];
    for (at_s, payload_bytes) in &frames {
        bytes[step(*at_s)] += f64::from(*payload_bytes);
    }
    let rates = bytes.iter().enumerate();
    rates.map(|(index, bytes)| Point::new(first_s + index as f64 * step_s, bytes * 8.0 / step_s)).collect()
}

/// The height of a row without a height of its own, above all curves, also if all of them are zero.
fn height(top: f64, row: usize) -> f64 {
    let scale = if top > 0.0 { top } else { 1.0 };
    scale * (1.05 + 0.05 * row as f64)
}

/// Draws the commands' moments of each requested kind as dots, a row for each kind.
fn events(
    trace: &Trace,
    run: &RunOverTime<'_>,
    window: &RangeInclusive<f64>,
    top: f64,
    figure: Figure,
) -> Figure {
    let commands = run.commands();
    let series = trace.events.iter().enumerate().map(|(row, event): (usize, &CommandEvent)| {
        let y = height(top, row);
        let moments = commands.iter().filter_map(|command| event.at_ns(command));
        let moments = moments.map(|at_ns| run.since_s(at_ns)).filter(|at_s| window.contains(at_s));
        Series::new(event.label(), Style::Points, moments.map(|at_s| Point::new(at_s, y)))
    });
    let series: Vec<Series> = series.collect();
    let is_marked = series.iter().any(|series| !series.points.is_empty());
    let figure = series.into_iter().fold(figure, Figure::series);
    if is_marked { tell(figure, "Dots are moments of commands; their height means nothing.") } else { figure }
}

/// Draws the times in which something held.
fn held(
    trace: &Trace,
    run: &RunOverTime<'_>,
    window: &RangeInclusive<f64>,
    top: f64,
    figure: Figure,
) -> Figure {
    let rows = trace.events.len()..;
    let series =
        trace.held.iter().zip(rows).map(|(kind, row)| held::series(*kind, height(top, row), run, window));
    let series: Vec<Series> = series.filter(|series| !series.points.is_empty()).collect();
    let is_drawn = !series.is_empty();
    let figure = series.into_iter().fold(figure, Figure::series);
    match (is_drawn, trace.held.is_empty()) {
        (true, _) => tell(figure, "Lines at the top last as long as what they are named by."),
        (false, false) => tell(figure, "Nothing held the session up here."),
        (false, true) => figure,
    }
}

/// Marks the longest gaps, each with its length.
fn gaps(run: &RunOverTime<'_>, window: &RangeInclusive<f64>, mut figure: Figure) -> Figure {
    let gaps = run.captured().flat_map(|command| &command.gaps);
    let mut gaps: Vec<_> = gaps.filter(|gap| window.contains(&run.since_s(gap.at_ns))).collect();
    gaps.sort_by_key(|gap| std::cmp::Reverse(gap.duration_ns));
    let all = gaps.len();
    gaps.truncate(GAPS_MAX);
    gaps.sort_by_key(|gap| gap.at_ns);
    figure.annotations.extend(gaps.iter().map(|gap| {
        let (from, length_s) = (run.since_s(gap.at_ns), gap.duration_ns as f64 / 1e9);
        let text = format!("{:.1} ms", length_s * 1e3);
        Annotation { place: Place::Span { from, to: from + length_s }, text }
    }));
    let text = match all {
        0 => "There is no gap amid data here.".to_owned(),
        1..=GAPS_MAX => "Gaps amid data are grey, with their lengths.".to_owned(),
        _ => format!("The {GAPS_MAX} longest of {all} gaps amid data are grey, with their lengths."),
    };
    tell(figure, &text)
}

fn tell(figure: Figure, sentence: &str) -> Figure {
    let caption = format!("{} {sentence}", figure.caption).trim_start().to_owned();
    figure.caption(caption)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_above_each_other_and_above_the_curves() {
        for top in [0.0, 1e-9, 1e9] {
            assert!(top < height(top, 0) && height(top, 0) < height(top, 1));
        }
    }

    #[test]
    fn a_peak_among_many_points_is_drawn() {
        let points = (0..100_000_u32).map(|x| Point::new(x.into(), if x == 77_777 { 9.0 } else { 1.0 }));
        let drawn = thin(points.collect());
        assert!(drawn.len() <= POINTS_MAX, "{}", drawn.len());
        assert!(drawn.iter().any(|point| (point.x, point.y) == (77_777.0, 9.0)));
        assert!(drawn.windows(2).all(|pair| pair[0].x < pair[1].x));
    }
}
