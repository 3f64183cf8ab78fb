//! Axes, grid and annotations.

use super::{Layout, NAME_LINE_HEIGHT, put};
use crate::report::axis_range::AxisRange;
use crate::report::escape;
use crate::report::figure::{Figure, Place};
use crate::report::unit::number;

/// Draws the grid, the border, and the texts at the axes.
pub(super) fn draw(svg: &mut String, figure: &Figure, layout: &Layout) {
    let Layout { axes, left, right, top, bottom, .. } = layout;
    names(svg, layout);
    for tick in axes.x.ticks().into_iter().filter(|_| layout.names.is_empty()) {
        let Some(x) = layout.x(tick) else { continue };
        let text = number(tick);
        put(
            svg,
            format_args!(
                "<path d=\"M{x:.1} {top}V{bottom}\" stroke=\"#e4e4e4\"/>\
                 <text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{text}</text>",
                bottom + 18.0,
            ),
        );
    }
    for tick in axes.y.ticks() {
        let Some(y) = layout.y(&axes.y, tick) else { continue };
        put(svg, format_args!("<path d=\"M{left} {y:.1}H{right}\" stroke=\"#e4e4e4\"/>"));
        number_beside(svg, tick, left - 8.0, y, "end");
    }
    if let Some(axis) = &axes.right {
        for tick in axis.ticks() {
            let Some(y) = layout.y(axis, tick) else { continue };
            number_beside(svg, tick, right + 8.0, y, "start");
        }
        label_beside(svg, axis, right + 62.0, layout);
    }
    label_beside(svg, &axes.y, 18.0, layout);
    let label = escape::text(&axes.x.label);
    put(
        svg,
        format_args!(
            "<path d=\"M{left} {top}V{bottom}H{right}\" fill=\"none\" stroke=\"#888\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{label}</text>",
            f64::midpoint(*left, *right),
            layout.below_axis() - 16.0,
        ),
    );
    if figure.series.iter().all(|series| series.points.is_empty()) {
        let (x, y) = (f64::midpoint(*left, *right), f64::midpoint(*top, *bottom));
        put(
            svg,
            format_args!("<text x=\"{x}\" y=\"{y}\" text-anchor=\"middle\" fill=\"#777\">no data</text>"),
        );
    }
}

/// Draws the names below their places.
fn names(svg: &mut String, layout: &Layout) {
    for (index, lines) in layout.names.iter().enumerate() {
        let Some(x) = layout.x(index as f64) else { continue };
        for (number, line) in lines.iter().enumerate() {
            let (y, line) = (layout.bottom + 18.0 + number as f64 * NAME_LINE_HEIGHT, escape::text(line));
            put(svg, format_args!("<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"middle\">{line}</text>"));
        }
    }
}

fn number_beside(svg: &mut String, tick: f64, x: f64, y: f64, anchor: &str) {
    let (text, y) = (number(tick), y + 4.5);
    put(svg, format_args!("<text x=\"{x}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{text}</text>"));
}

fn label_beside(svg: &mut String, axis: &AxisRange, x: f64, layout: &Layout) {
    let (label, y) = (escape::text(&axis.label), f64::midpoint(layout.top, layout.bottom));
    put(
        svg,
        format_args!(
            "<text transform=\"translate({x} {y}) rotate(-90)\" text-anchor=\"middle\">{label}</text>"
        ),
    );
}

/// Draws annotated lines and ranges with their texts.
pub(super) fn annotations(svg: &mut String, figure: &Figure, layout: &Layout) {
    let Layout { axes, left, right, top, bottom, .. } = layout;
    let x_of = |x: f64| layout.x(x / axes.x.scale.factor);
    for annotation in &figure.annotations {
        let text = escape::text(&annotation.text);
        match annotation.place {
            Place::X(at) => {
                let Some(x) = x_of(at) else { continue };
                put(
                    svg,
                    format_args!(
                        "<path d=\"M{x:.1} {top}V{bottom}\" stroke=\"#555\" stroke-dasharray=\"2 3\"/>\
                         <text x=\"{:.1}\" y=\"{:.1}\" font-size=\"12\">{text}</text>",
                        x + 5.0,
                        top + 14.0,
                    ),
                );
            }
            Place::Y(at) => {
                let Some(y) = layout.y(&axes.y, at / axes.y.scale.factor) else { continue };
                put(
                    svg,
                    format_args!(
                        "<path d=\"M{left} {y:.1}H{right}\" stroke=\"#555\" stroke-dasharray=\"2 3\"/>\
                         <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\" font-size=\"12\">{text}</text>",
                        right - 4.0,
                        y - 5.0,
                    ),
                );
            }
            Place::Span { from, to } => {
                let (Some(from), Some(to)) = (x_of(from), x_of(to)) else { continue };
                put(
                    svg,
                    format_args!(
                        "<rect x=\"{from:.1}\" y=\"{top}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"#555\" \
                         fill-opacity=\"0.12\"/><text x=\"{:.1}\" y=\"{:.1}\" font-size=\"12\">{text}</text>",
                        (to - from).max(0.0),
                        bottom - top,
                        from + 5.0,
                        top + 14.0,
                    ),
                );
            }
        }
    }
}
