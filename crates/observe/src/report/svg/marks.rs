//! Lines, points and error bars.

use super::{Layout, colour, put};
use crate::report::axis_range::AxisRange;
use crate::report::figure::{Figure, Point, Series, Style};
use crate::report::unit::number;
use std::fmt::Write;

/// The share of a place that its bars take.
const BARS_SHARE: f64 = 0.7;
/// The width of a bar above which a number with a decimal has room, and the font size that three digits need above a
/// narrower bar, in its widths.
const DECIMAL_WIDTH: f64 = 36.0;
const DIGITS_SIZE: f64 = 0.55;
const DIGITS_SIZE_MIN: f64 = 8.0;
/// The most points of a line with marks at its points.
const MARKED_POINTS_MAX: usize = 60;

pub(super) fn draw(svg: &mut String, figure: &Figure, layout: &Layout) {
    let is_bars = |series: &&Series| series.style == Style::Bars;
    let (all, mut place) = (figure.series.iter().filter(is_bars).count(), 0);
    for (index, series) in figure.series.iter().enumerate() {
        let marks = Marks { layout, axis: layout.axes.y_of(series), series };
        put(svg, format_args!("<g stroke=\"{0}\" fill=\"{0}\">", colour(index)));
        if series.is_joined() {
            marks.line(svg);
        }
        if is_bars(&series) {
            marks.bars(svg, place, all);
            place += 1;
        }
        marks.errors(svg);
        marks.points(svg);
        svg.push_str("</g>");
    }
}

/// The drawing of one series.
struct Marks<'a> {
    layout: &'a Layout,
    axis: &'a AxisRange,
    series: &'a Series,
}

impl Marks<'_> {
    /// The position of the height `y` above the x of a point.
    fn place(&self, point: &Point, y: f64) -> Option<(f64, f64)> {
        let x = self.layout.x(point.x / self.layout.axes.x.scale.factor)?;
        Some((x, self.layout.y(self.axis, y / self.axis.scale.factor)?))
    }

    /// Draws the line through all valid points.
    fn line(&self, svg: &mut String) {
        let mut path = String::new();
        let mut pen: Option<(f64, f64)> = None;
        for point in self.series.in_order().into_iter().filter(|point| point.invalid.is_none()) {
            let Some((x, y)) = self.place(point, point.y) else {
                pen = None;
                continue;
            };
            // To a tenth of a unit: points that fall on the previous one are not drawn again.
            let (x, y) = ((x * 10.0).round() / 10.0, (y * 10.0).round() / 10.0);
            let _ = match pen {
                None => write!(path, "M{x} {y}"),
                Some(same) if same == (x, y) => Ok(()),
                Some(_) if self.series.style == Style::Steps => write!(path, "H{x}V{y}"),
                Some(_) => write!(path, "L{x} {y}"),
            };
            pen = Some((x, y));
        }
        let dashes = if self.series.style == Style::Dashed { " stroke-dasharray=\"7 5\"" } else { "" };
        put(
            svg,
            format_args!(
                "<path d=\"{path}\" fill=\"none\" stroke-width=\"1.8\" stroke-linejoin=\"round\"{dashes}/>"
            ),
        );
    }

    /// Draws the bars of this series, at `place` among `all` series with bars. Invalid points have none.
    fn bars(&self, svg: &mut String, place: usize, all: usize) {
        let width = BARS_SHARE / all.max(1) as f64;
        for point in self.series.points.iter().filter(|point| point.invalid.is_none()) {
            let left = point.x - BARS_SHARE / 2.0 + place as f64 * width;
            let sides = (self.layout.x(left), self.layout.x(left + width * 0.96));
            let (Some(left), Some(right)) = sides else { continue };
            let (Some((_, top)), Some((_, bottom))) = (self.place(point, point.y), self.place(point, 0.0))
            else {
                continue;
            };
            let (text, size) = above_bar(point.y / self.axis.scale.factor, right - left);
            // Above the error bar, if there is one.
            let top_of_all =
                point.high.and_then(|high| self.place(point, high)).map_or(top, |(_, high)| high);
            put(
                svg,
                format_args!(
                    "<rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{:.1}\" stroke=\"none\"/>\
                     <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\" stroke=\"none\"{size}>{text}</text>",
                    right - left,
                    (bottom - top).max(0.0),
                    f64::midpoint(left, right),
                    top_of_all - 5.0,
                ),
            );
        }
    }

    fn errors(&self, svg: &mut String) {
        for point in self.series.points.iter().filter(|point| point.low.or(point.high).is_some()) {
            let Some((x, high)) = self.place(point, point.high.unwrap_or(point.y)) else { continue };
            // A bar beyond a logarithmic axis continues to its end.
            let low =
                self.place(point, point.low.unwrap_or(point.y)).map_or(self.layout.bottom, |(_, low)| low);
            let (left, right) = (x - 4.0, x + 4.0);
            put(
                svg,
                format_args!(
                    "<path d=\"M{left:.1} {high:.1}H{right:.1}M{x:.1} {high:.1}V{low:.1}M{left:.1} {low:.1}H{right:.1}\" \
                     fill=\"none\" stroke-width=\"1.2\"/>"
                ),
            );
        }
    }

    fn points(&self, svg: &mut String) {
        let radius = if self.series.points.len() <= MARKED_POINTS_MAX { 3.5 } else { 2.0 };
        for point in &self.series.points {
            let Some((x, y)) = self.place(point, point.y) else { continue };
            if point.invalid.is_some() {
                cross(svg, x, y);
            } else if is_marked(self.series) {
                put(
                    svg,
                    format_args!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius}\" stroke=\"none\"/>"),
                );
            }
        }
    }
}

/// The number above a bar, and its size if it is not that of other texts.
fn above_bar(shown: f64, width: f64) -> (String, String) {
    if width >= DECIMAL_WIDTH {
        return (number((shown * 10.0).round() / 10.0), String::new());
    }
    let size = (width * DIGITS_SIZE).max(DIGITS_SIZE_MIN);
    (number(shown.round()), format!(" font-size=\"{size:.1}\""))
}

/// Whether each of its points has a mark.
pub(super) fn is_marked(series: &Series) -> bool {
    match series.style {
        Style::Points => true,
        Style::Line | Style::Steps => series.points.len() <= MARKED_POINTS_MAX,
        Style::Dashed | Style::Bars => false,
    }
}

/// Draws the mark of an invalid point.
pub(super) fn cross(svg: &mut String, x: f64, y: f64) {
    put(
        svg,
        format_args!(
            "<path d=\"M{:.1} {:.1}l10 10m0 -10l-10 10\" fill=\"none\" stroke-width=\"2\"/>",
            x - 5.0,
            y - 5.0,
        ),
    );
}
