//! The legend of colours and crosses.

use super::marks::{cross, is_marked};
use super::wrap::lines;
use super::{LEFT, RIGHT, WIDTH, colour, put};
use crate::report::escape;
use crate::report::figure::{Figure, Series, Style};

const LINE_HEIGHT: f64 = 22.0;
/// The width of a sample line and the space after it.
const SAMPLE: f64 = 34.0;
const GAP: f64 = 24.0;
/// The average width of a letter at the size of the legend.
const LETTER_WIDTH: f64 = 6.8;

pub(super) struct Legend {
    pub(super) svg: String,
    /// Its lower end.
    pub(super) bottom: f64,
}

/// Draws the legend below `top`, in as many lines as it needs.
pub(super) fn draw(figure: &Figure, top: f64) -> Legend {
    let mut svg = String::new();
    let (mut x, mut y) = (LEFT, top + 4.0);
    for (index, series) in figure.series.iter().enumerate() {
        let name = name(figure, series);
        let width = SAMPLE + name.chars().count() as f64 * LETTER_WIDTH + GAP;
        if x > LEFT && x + width > WIDTH - RIGHT {
            (x, y) = (LEFT, y + LINE_HEIGHT);
        }
        sample(&mut svg, series, colour(index), x, y);
        let name = escape::text(&name);
        put(&mut svg, format_args!("<text x=\"{:.1}\" y=\"{:.1}\">{name}</text>", x + SAMPLE, y + 4.5));
        x += width;
    }
    for reason in figure.invalid_reasons() {
        svg.push_str("<g stroke=\"#b00020\">");
        cross(&mut svg, LEFT + 13.0, y + LINE_HEIGHT);
        svg.push_str("</g>");
        let letters = (WIDTH - LEFT - SAMPLE - RIGHT) / LETTER_WIDTH;
        for line in lines(&format!("not valid: {reason}"), letters) {
            y += LINE_HEIGHT;
            let (x, y, line) = (LEFT + SAMPLE, y + 4.5, escape::text(&line));
            put(&mut svg, format_args!("<text x=\"{x:.1}\" y=\"{y:.1}\" fill=\"#b00020\">{line}</text>"));
        }
    }
    Legend { svg, bottom: y + LINE_HEIGHT }
}

/// The name, with the side of its axis if there are two.
fn name(figure: &Figure, series: &Series) -> String {
    match (&figure.right, series.right) {
        (Some(_), true) => format!("{} (right)", series.name),
        (Some(_), false) => format!("{} (left)", series.name),
        (None, _) => series.name.clone(),
    }
}

fn sample(svg: &mut String, series: &Series, colour: &str, x: f64, y: f64) {
    let dashes = if series.style == Style::Dashed { " stroke-dasharray=\"7 5\"" } else { "" };
    if series.style == Style::Bars {
        put(
            svg,
            format_args!("<rect x=\"{x}\" y=\"{}\" width=\"26\" height=\"10\" fill=\"{colour}\"/>", y - 5.0),
        );
    }
    if series.is_joined() {
        put(svg, format_args!("<path d=\"M{x} {y}h26\" stroke=\"{colour}\" stroke-width=\"2\"{dashes}/>"));
    }
    if is_marked(series) {
        put(svg, format_args!("<circle cx=\"{}\" cy=\"{y}\" r=\"3.5\" fill=\"{colour}\"/>", x + 13.0));
    }
}
