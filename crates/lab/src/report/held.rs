//! The times that held sessions up, beside a run's other curves.

use super::run_over_time::RunOverTime;
use crate::sample::{HeldKind, HeldSample};
use observe::report::{Point, Series, Style};
use std::ops::RangeInclusive;

/// The most times drawn of each kind: the longest.
const DRAWN_MAX: usize = 1000;

/// Each time as a line at this height, which has no meaning.
pub(super) fn series(
    kind: HeldKind,
    height: f64,
    run: &RunOverTime<'_>,
    window: &RangeInclusive<f64>,
) -> Series {
    let mut held: Vec<&HeldSample> = run.held(kind).collect();
    held.sort_by_key(|held| std::cmp::Reverse(held.interval.duration_ns));
    let ends = held.into_iter().map(|held| {
        let HeldSample { interval, .. } = held;
        [interval.begun_ns, interval.begun_ns.saturating_add(interval.duration_ns)]
            .map(|at_ns| run.since_s(at_ns))
    });
    let seen = ends.filter(|[from, to]| from <= window.end() && to >= window.start());
    let mut seen: Vec<[f64; 2]> =
        seen.take(DRAWN_MAX).map(|ends| ends.map(|end| end.clamp(*window.start(), *window.end()))).collect();
    seen.sort_by(|one, other| one[0].total_cmp(&other[0]));
    // Times of several sessions or connections may overlap, and then become one line.
    let mut joined: Vec<[f64; 2]> = Vec::new();
    for [from, to] in seen {
        match joined.last_mut() {
            Some([_, end]) if from <= *end => *end = end.max(to),
            _ => joined.push([from, to]),
        }
    }
    let points = joined.iter().flat_map(|[from, to]| {
        [Point::new(*from, height), Point::new(*to, height), Point::new(*to, f64::NAN)]
    });
    Series::new(label(kind), Style::Line, points)
}

fn label(kind: HeldKind) -> &'static str {
    match kind {
        HeldKind::WindowClosed => "command window closed",
        HeldKind::CmdSnHole => "hole in the order of commands",
        HeldKind::Blocked => "a writer blocked",
    }
}
