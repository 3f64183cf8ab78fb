//! The header above the plot: the title and the warnings.

use super::wrap::lines;
use super::{LEFT, RIGHT, WIDTH, put};
use crate::report::escape;
use crate::report::figure::Figure;

/// The average width of a letter in the title and in a warning.
const TITLE_LETTER_WIDTH: f64 = 8.6;
const WARNING_LETTER_WIDTH: f64 = 6.8;
const TITLE_HEIGHT: f64 = 22.0;
const WARNING_HEIGHT: f64 = 19.0;

pub(super) struct Header {
    pub(super) svg: String,
    /// Its lower end.
    pub(super) bottom: f64,
}

pub(super) fn draw(figure: &Figure) -> Header {
    let mut header = Header { svg: String::new(), bottom: 3.0 };
    let width = WIDTH - LEFT - RIGHT;
    for line in lines(&figure.title, width / TITLE_LETTER_WIDTH) {
        header.line(&line, TITLE_HEIGHT, "font-size=\"17\" font-weight=\"500\"");
    }
    for line in figure.warnings.iter().flat_map(|warning| lines(warning, width / WARNING_LETTER_WIDTH)) {
        header.line(&line, WARNING_HEIGHT, "font-weight=\"500\" fill=\"#b00020\"");
    }
    header.bottom += 15.0;
    header
}

impl Header {
    fn line(&mut self, text: &str, height: f64, style: &str) {
        self.bottom += height;
        let (y, text) = (self.bottom, escape::text(text));
        put(&mut self.svg, format_args!("<text x=\"{LEFT}\" y=\"{y}\" {style}>{text}</text>"));
    }
}
