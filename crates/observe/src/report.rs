//! Reports of experiments and captures for people: text, figures and tables, as plain values that can be stored, and
//! their renderings.
//!
//! [`Report::html`] is one file for a browser; [`Figure::png`] and [`Figure::svg`] are pictures.
//!
//! Every number is in the base of its [`Unit`] (seconds, bytes, bits per second); the rendering chooses the prefix.

mod axis_range;
mod date;
mod distribution;
mod escape;
mod figure;
mod html;
mod png;
mod svg;
mod table;
mod unit;

pub use date::rfc3339;
pub use figure::{Annotation, Axis, Figure, Place, Point, Series, Style};
pub use png::DrawError;
pub use table::{Cell, Column, Row, Table};
pub use unit::{Scale, Unit};

use serde::{Deserialize, Serialize};

/// A document, in reading order.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The subject, at the top of the document.
    pub title: String,
    /// Findings to know first, such as an invalid measurement.
    #[serde(default)]
    pub verdicts: Vec<Verdict>,
    /// The result in words.
    #[serde(default)]
    pub summary: Vec<String>,
    /// Figures and tables.
    #[serde(default)]
    pub sections: Vec<Section>,
    /// The conditions that a repetition needs: programs, kernel, settings, date.
    #[serde(default)]
    pub description: Vec<Fact>,
}

/// A part of a report.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Section {
    /// Its heading, or empty.
    #[serde(default)]
    pub heading: String,
    /// Text before its figures.
    #[serde(default)]
    pub paragraphs: Vec<String>,
    /// The tables after the text.
    #[serde(default)]
    pub tables: Vec<Table>,
    /// The figures after the tables.
    #[serde(default)]
    pub figures: Vec<Figure>,
}

/// One finding in a few words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// Whether the finding is good.
    pub standing: Standing,
    /// Its words: `VALID`, `INVALID: the relay was busy`, `limited by: send buffer`.
    pub text: String,
}

/// The standing of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// As it should be.
    Good,
    /// Neither good nor bad.
    Neutral,
    /// Not as it should be.
    Bad,
}

/// A name and its value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fact {
    /// A name, such as `kernel`.
    pub name: String,
    /// The value for people, such as `6.18.5`.
    pub value: String,
}

impl Fact {
    /// Makes a fact of a name and its value.
    pub fn new(name: impl Into<String>, value: impl Into<String>) -> Self {
        Self { name: name.into(), value: value.into() }
    }
}
