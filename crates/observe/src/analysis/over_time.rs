//! Figures of one connection over time, in TCP's terms.

use super::report::seconds;
use super::{Analysis, ConnectionReport};
use crate::report::{Axis, Figure, Point, Series, Style, Unit};
use crate::timeline::{self, Flow, Timeline};

/// Selects the direction of a point.
type Way = fn(&timeline::Point) -> &Flow;
const TO_TARGET: Way = |point| &point.to_target;
const TO_INITIATOR: Way = |point| &point.to_initiator;

/// The data sent on every connection, which shows how they share the path.
pub(super) fn all_connections(analysis: &Analysis) -> Figure {
    let zero_ns = analysis.capture.first_ns;
    let series = analysis.connections.iter().map(|connection| {
        let bytes = |point: &timeline::Point| point.to_target.bytes + point.to_initiator.bytes;
        Series::new(
            format!("connection {}", connection.number),
            Style::Line,
            sum(&connection.timeline, zero_ns, bytes),
        )
    });
    let mut figure =
        Figure::new("Bytes of all connections, both directions", time(), Axis::new("bytes", Unit::Bytes));
    figure.series = series.collect();
    figure
}

/// The figures of a connection with any data.
pub(super) fn figures(connection: &ConnectionReport, zero_ns: u64) -> Vec<Figure> {
    let timeline = &connection.timeline;
    let figures = [sequence(timeline, zero_ns), flight(timeline, zero_ns), round_trip(timeline, zero_ns)];
    figures.into_iter().filter(|figure| !figure.series.is_empty()).collect()
}

fn time() -> Axis {
    Axis::new("time", Unit::Seconds)
}

/// The offset in each stream against time: flat is silence, steep is a burst.
fn sequence(timeline: &Timeline, zero_ns: u64) -> Figure {
    let offsets = |way: Way| sum(timeline, zero_ns, move |point| way(point).bytes);
    let again = |way: Way| {
        let mut offset = 0;
        let points = timeline.points.iter().enumerate().filter_map(move |(index, point)| {
            offset += way(point).bytes;
            (way(point).sent_again_bytes > 0)
                .then(|| Point::new(begin(timeline, zero_ns, index), offset as f64))
        });
        points.collect::<Vec<_>>()
    };
    let mut figure =
        Figure::new("Bytes sent against time", time(), Axis::new("offset in the stream", Unit::Bytes))
            .caption(
                "New payload of each direction, added up. A flat stretch is a silence, a steep one a burst.",
            );
    figure.series = [
        ("to the target", Style::Line, offsets(TO_TARGET)),
        ("to the initiator", Style::Line, offsets(TO_INITIATOR)),
        ("to the target, sent again", Style::Points, again(TO_TARGET)),
        ("to the initiator, sent again", Style::Points, again(TO_INITIATOR)),
    ]
    .into_iter()
    .filter(|(_, _, points)| !points.is_empty())
    .map(|(name, style, points)| Series::new(name, style, points))
    .collect();
    figure
}

/// The data in flight, and the peer's window.
fn flight(timeline: &Timeline, zero_ns: u64) -> Figure {
    let series = |name: &str, style: Style, value: fn(&timeline::Point) -> Option<u64>| {
        let points = timeline.points.iter().enumerate().filter(|(_, point)| point.segments > 0);
        let points = points.filter_map(|(index, point)| {
            Some(Point::new(begin(timeline, zero_ns, index), value(point)? as f64))
        });
        Series::new(name, style, points)
    };
    let figure = Figure::new("In flight", time(), Axis::new("bytes", Unit::Bytes)).caption(
        "The most that was sent and not acknowledged in each stretch of time, and the window that the receiver \
         offered. Less in flight than the window while there is data to send speaks for the congestion window or the \
         send buffer.",
    );
    let all = [
        series("to the target", Style::Steps, |point| Some(point.to_target.in_flight_bytes_max)),
        series("window of the target", Style::Dashed, |point| point.to_target.window_bytes_min),
        series("to the initiator", Style::Steps, |point| Some(point.to_initiator.in_flight_bytes_max)),
        series("window of the initiator", Style::Dashed, |point| point.to_initiator.window_bytes_min),
    ];
    let is_seen = |series: &Series| series.points.iter().any(|point| point.y > 0.0);
    Figure { series: all.into_iter().filter(is_seen).collect(), ..figure }
}

fn round_trip(timeline: &Timeline, zero_ns: u64) -> Figure {
    let measured = |name: &str, way: Way| {
        let points = timeline.points.iter().enumerate().filter_map(|(index, point)| {
            let (min, max) = (seconds(way(point).rtt_ns_min?), seconds(way(point).rtt_ns_max?));
            let shown = Point::new(begin(timeline, zero_ns, index), min);
            Some(if max > min { shown.between(min, max) } else { shown })
        });
        Series::new(name, Style::Points, points)
    };
    let figure = Figure::new("Round trips", time(), Axis::new("round trip", Unit::Seconds)).caption(
        "From the point of capture to the target or the initiator and back, from data and its acknowledgement, which \
         the receiver may delay. The shortest of each stretch of time; bars reach to the longest.",
    );
    let all = [measured("to the target", TO_TARGET), measured("to the initiator", TO_INITIATOR)];
    Figure { series: all.into_iter().filter(|series| !series.points.is_empty()).collect(), ..figure }
}

/// A sum that grows within points with an increment, and is flat between them. Empty if it is always zero.
fn sum(timeline: &Timeline, zero_ns: u64, value: impl Fn(&timeline::Point) -> u64) -> Vec<Point> {
    let mut points: Vec<Point> = Vec::new();
    let mut total = 0;
    for (index, point) in timeline.points.iter().enumerate().filter(|(_, point)| value(point) > 0) {
        let start = begin(timeline, zero_ns, index);
        if points.last().is_none_or(|last| last.x < start) {
            points.push(Point::new(start, total as f64));
        }
        total += value(point);
        points.push(Point::new(begin(timeline, zero_ns, index + 1), total as f64));
    }
    points
}

/// The start of a point, in seconds of the capture.
fn begin(timeline: &Timeline, zero_ns: u64, index: usize) -> f64 {
    let since_start_ns = timeline.width_ns.saturating_mul(index as u64);
    seconds(timeline.start_ns.saturating_sub(zero_ns).saturating_add(since_start_ns))
}
