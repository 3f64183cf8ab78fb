//! A figure for the page's script: numbers in the shown units, by columns.

use crate::report::axis_range::{Axes, AxisRange, can_be_drawn};
use crate::report::figure::{Annotation, Figure, Place, Point, Series, Style};
use serde::Serialize;
use std::collections::BTreeMap;

/// Significant digits: enough for a thousandth of a pixel after zooming in a thousand times.
const DIGITS: usize = 9;

#[derive(Serialize)]
struct FigureData<'a> {
    title: &'a str,
    x: AxisData<'a>,
    y: AxisData<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    right: Option<AxisData<'a>>,
    series: Vec<SeriesData<'a>>,
    annotations: Vec<AnnotationData<'a>>,
}

#[derive(Serialize)]
struct AxisData<'a> {
    label: &'a str,
    unit: &'a str,
    log: bool,
    low: f64,
    high: f64,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    names: &'a [String],
}

#[derive(Serialize)]
struct SeriesData<'a> {
    name: &'a str,
    style: Style,
    right: bool,
    x: Vec<f64>,
    y: Vec<Option<f64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    low: Option<Vec<Option<f64>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    high: Option<Vec<Option<f64>>>,
    /// By the number of the point.
    invalid: BTreeMap<usize, &'a str>,
}

#[derive(Serialize)]
struct AnnotationData<'a> {
    text: &'a str,
    #[serde(flatten)]
    place: PlaceData,
}

#[derive(Serialize)]
#[serde(untagged)]
enum PlaceData {
    X { x: f64 },
    Y { y: f64 },
    Span { from: f64, to: f64 },
}

/// JSON that may stand in a script element.
pub(super) fn json(figure: &Figure) -> String {
    let axes = Axes::of(figure);
    let data = FigureData {
        title: &figure.title,
        x: axis(&axes.x),
        y: axis(&axes.y),
        right: axes.right.as_ref().map(axis),
        series: figure.series.iter().map(|one| series(one, &axes)).collect(),
        annotations: figure.annotations.iter().filter_map(|one| annotation(one, &axes)).collect(),
    };
    let json = serde_json::to_string(&data).expect("numbers and texts have a form in JSON");
    // Only texts can contain the end of the element or the start of a comment.
    json.replace('<', "\\u003c")
}

fn axis(range: &AxisRange) -> AxisData<'_> {
    let AxisRange { label, scale, logarithmic, low, high, names, .. } = range;
    AxisData { label, unit: &scale.symbol, log: *logarithmic, low: *low, high: *high, names }
}

fn series<'a>(series: &'a Series, axes: &Axes) -> SeriesData<'a> {
    let y = axes.y_of(series);
    let points: Vec<&Point> =
        series.in_order().into_iter().filter(|point| shown(&axes.x, point.x).is_some()).collect();
    let column = |value: fn(&Point) -> Option<f64>| -> Vec<Option<f64>> {
        points.iter().map(|point| shown(y, value(point)?)).collect()
    };
    let errors = |value: fn(&Point) -> Option<f64>| series.has_errors().then(|| column(value));
    let reasons = points.iter().enumerate();
    SeriesData {
        name: &series.name,
        style: series.style,
        right: series.right && axes.right.is_some(),
        x: points.iter().filter_map(|point| shown(&axes.x, point.x)).collect(),
        y: column(|point| Some(point.y)),
        low: errors(|point| point.low),
        high: errors(|point| point.high),
        invalid: reasons.filter_map(|(index, point)| Some((index, point.invalid.as_deref()?))).collect(),
    }
}

fn annotation<'a>(annotation: &'a Annotation, axes: &Axes) -> Option<AnnotationData<'a>> {
    let place = match annotation.place {
        Place::X(x) => PlaceData::X { x: shown(&axes.x, x)? },
        Place::Y(y) => PlaceData::Y { y: shown(&axes.y, y)? },
        Place::Span { from, to } => PlaceData::Span { from: shown(&axes.x, from)?, to: shown(&axes.x, to)? },
    };
    Some(AnnotationData { text: &annotation.text, place })
}

/// A number in the shown unit, if it has a place.
fn shown(range: &AxisRange, value: f64) -> Option<f64> {
    let value = value / range.scale.factor;
    let rounded = || format!("{value:.DIGITS$e}").parse().ok();
    can_be_drawn(value, range.logarithmic).then(rounded).flatten()
}
