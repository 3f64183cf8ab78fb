//! Figures of the commands of one connection: their durations, and their gaps.

use super::ConnectionReport;
use super::report::{kind, seconds};
use crate::command::{Gap, Kind};
use crate::report::{Axis, Cell, Figure, Point, Series, Style, Table, Unit};
use crate::statistics::Sample;
use crate::timing::CommandReport;

/// The most commands of one kind that are drawn one by one.
const DRAWN_MAX: usize = 4000;
/// The most steps of a distribution.
const STEPS_MAX: usize = 400;
/// The most gaps in the table: the longest.
const LISTED_GAPS_MAX: usize = 20;

/// The figures with any data.
pub(super) fn figures(connection: &ConnectionReport, zero_ns: u64) -> Vec<Figure> {
    let mut figures: Vec<_> =
        [Kind::Write, Kind::Read].into_iter().filter_map(|kind| latency(connection, kind, zero_ns)).collect();
    figures.extend(distribution(connection));
    figures.extend(gaps(connection, zero_ns));
    figures
}

fn whole(connection: &ConnectionReport, kind: Kind) -> Vec<&CommandReport> {
    connection.commands.iter().filter(|command| command.kind == kind && command.whole).collect()
}

/// The duration of each command, and its parts.
fn latency(connection: &ConnectionReport, which: Kind, zero_ns: u64) -> Option<Figure> {
    let commands = whole(connection, which);
    let bunch = commands.len().div_ceil(DRAWN_MAX).max(1);
    let slowest =
        |bunch: &[&CommandReport]| bunch.iter().max_by_key(|command| command.turnaround_ns).copied().cloned();
    let drawn: Vec<CommandReport> = commands.chunks(bunch).filter_map(slowest).collect();
    if drawn.is_empty() {
        return None;
    }
    let series = |name: &str, time: fn(&CommandReport) -> Option<u64>| {
        let points = drawn.iter().filter_map(|command| {
            Some(Point::new(seconds(command.begun_ns.saturating_sub(zero_ns)), seconds(time(command)?)))
        });
        Series::new(name, Style::Points, points)
    };
    let thinned =
        if bunch > 1 { format!(" Of every {bunch} commands the slowest is shown.") } else { String::new() };
    let name = kind(which);
    let figure = Figure::new(
        format!("How long {name} took"),
        Axis::new("time", Unit::Seconds),
        Axis::new("duration", Unit::Seconds),
    )
    .caption(format!("Each of the {name} that were captured whole, by when it began.{thinned}"))
    .series(series("turnaround", |command| Some(command.turnaround_ns)))
    .series(series("Ta", |command| Some(command.ta_ns)))
    .series(series("Tb", |command| Some(command.tb_ns)))
    .series(series("Tc", |command| command.tc_ns));
    Some(figure)
}

/// The share of the commands that took at most this long.
fn distribution(connection: &ConnectionReport) -> Option<Figure> {
    let axis = Axis::new("turnaround", Unit::Seconds).logarithmic();
    let mut figure =
        Figure::new("Distribution of turnaround", axis, Axis::new("share of commands", Unit::Share))
            .caption("The share of commands that took not longer, by kind.");
    for which in [Kind::Write, Kind::Read, Kind::NoData] {
        let times = whole(connection, which).into_iter().map(|command| seconds(command.turnaround_ns));
        let Some(sample) = Sample::of(times).filter(|sample| sample.count() > 1) else { continue };
        figure.series.push(Series::new(kind(which), Style::Steps, steps(&sample)));
    }
    (!figure.series.is_empty()).then_some(figure)
}

/// The share of values that are at most this large, at every value, or at some of many.
fn steps(sample: &Sample) -> Vec<Point> {
    let count = sample.count();
    let bunch = count.div_ceil(STEPS_MAX);
    let ranked = sample.values().iter().enumerate().map(|(index, value)| (index + 1, *value));
    let chosen = ranked.filter(|(rank, _)| rank % bunch == 0 || *rank == count);
    let mut points = vec![Point::new(sample.min(), 0.0)];
    points.extend(chosen.map(|(rank, value)| Point::new(value, rank as f64 / count as f64)));
    points
}

/// The pauses of all commands over the time of the capture, the longest in a table.
fn gaps(connection: &ConnectionReport, zero_ns: u64) -> Option<Figure> {
    let mut gaps: Vec<&Gap> = connection.commands.iter().flat_map(|command| &command.gaps).collect();
    if gaps.is_empty() {
        return None;
    }
    // The longest first.
    gaps.sort_by_key(|gap| std::cmp::Reverse(gap.duration_ns));
    let drawn = &gaps[..gaps.len().min(DRAWN_MAX)];
    let begun = |gap: &Gap| seconds(gap.at_ns.saturating_sub(zero_ns));
    let series = |name: &str, waiting: bool| {
        let those = drawn.iter().filter(move |gap| gap.waiting_for_r2t == waiting);
        Series::new(name, Style::Points, those.map(|gap| Point::new(begun(gap), seconds(gap.duration_ns))))
    };
    let mut table = Table::new([
        ("at", Unit::Seconds),
        ("duration", Unit::Seconds),
        ("in flight", Unit::Bytes),
        ("window", Unit::Bytes),
        ("waiting for R2T", Unit::None),
    ]);
    for gap in gaps.iter().take(LISTED_GAPS_MAX) {
        table.row([
            begun(gap).into(),
            seconds(gap.duration_ns).into(),
            Cell::Number(gap.in_flight_bytes as f64),
            gap.window_bytes.map(|bytes| bytes as f64).into(),
            if gap.waiting_for_r2t { "yes" } else { "no" }.into(),
        ]);
    }
    table.title = "The longest gaps".to_owned();
    let all = [series("data could have been sent", false), series("waiting for an R2T", true)];
    let figure = Figure::new("Gaps amid data", Axis::new("time", Unit::Seconds), Axis::new("length", Unit::Seconds))
        .caption(
            "Silences in the middle of a command's data. A gap as long as the round trip, with less in flight than the \
             window, is what a small send buffer makes.",
        );
    let series = all.into_iter().filter(|series| !series.points.is_empty()).collect();
    Some(Figure { series, table: Some(table), ..figure })
}
