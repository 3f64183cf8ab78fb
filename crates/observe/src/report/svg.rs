//! A figure as a picture in SVG.

mod frame;
mod header;
mod legend;
mod marks;
mod wrap;

use super::axis_range::{Axes, AxisRange};
use super::escape;
use super::figure::Figure;
use std::fmt::Write;

/// Colours of series, one after the other, chosen for colour vision deficiencies (Okabe and Ito, 2008).
const COLOURS: [&str; 8] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b8860b", "#56b4e9", "#7a5195", "#666666"];
const WIDTH: f64 = 860.0;
const PLOT_HEIGHT: f64 = 380.0;
/// The height of ticks and label of the axis below.
const BELOW: f64 = 56.0;
/// A name at that axis: the height of its lines, and the average width of a letter with some space.
const NAME_LINE_HEIGHT: f64 = 15.0;
const NAME_LETTER_WIDTH: f64 = 7.0;
const LEFT: f64 = 74.0;
const RIGHT: f64 = 24.0;
/// The page's own fonts, if the picture is part of a page.
const FONT: &str = "Roboto, system-ui, sans-serif";

/// The layout of a picture.
struct Layout {
    axes: Axes,
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
    /// The names at the ticks of the axis below, in lines, if they are not numbers.
    names: Vec<Vec<String>>,
}

impl Layout {
    fn below(figure: &Figure, top: f64) -> Self {
        let right = WIDTH - if figure.right.is_some() { LEFT } else { RIGHT };
        let axes = Axes::of(figure);
        let letters = (right - LEFT) / axes.x.names.len().max(1) as f64 / NAME_LETTER_WIDTH;
        let names = axes.x.names.iter().map(|name| wrap::lines(name, letters)).collect();
        Self { axes, left: LEFT, right, top, bottom: top + PLOT_HEIGHT, names }
    }

    /// The lower end of the ticks and label of the axis below.
    fn below_axis(&self) -> f64 {
        let lines = self.names.iter().map(Vec::len).max().unwrap_or(1).max(1);
        self.bottom + BELOW + (lines - 1) as f64 * NAME_LINE_HEIGHT
    }

    fn x(&self, shown: f64) -> Option<f64> {
        Some(self.left + self.axes.x.position(shown)? * (self.right - self.left))
    }

    fn y(&self, axis: &AxisRange, shown: f64) -> Option<f64> {
        Some(self.bottom - axis.position(shown)? * (self.bottom - self.top))
    }
}

fn colour(series: usize) -> &'static str {
    COLOURS[series % COLOURS.len()]
}

impl Figure {
    /// The picture, light, with texts as texts: for a page, or a program with fonts. [`Figure::png`] looks the same
    /// everywhere.
    #[must_use]
    pub fn svg(&self) -> String {
        let header = header::draw(self);
        let layout = Layout::below(self, header.bottom);
        let legend = legend::draw(self, layout.below_axis());
        let height = legend.bottom;
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" \
             height=\"{height}\" font-family=\"{FONT}\" font-size=\"13\" fill=\"#222\" role=\"img\">\
             <title>{title}</title><rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>{header}",
            title = escape::text(&self.title),
            header = header.svg,
        );
        frame::draw(&mut svg, self, &layout);
        marks::draw(&mut svg, self, &layout);
        frame::annotations(&mut svg, self, &layout);
        svg.push_str(&legend.svg);
        svg.push_str("</svg>");
        svg
    }
}

fn put(svg: &mut String, what: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = svg.write_fmt(what);
}
