//! What a person reads of an experiment or a capture: text, figures and tables, as plain values that can be stored, and
//! ways to show them.
//!
//! [`Report::html`] is one file for a browser; [`Figure::png`] and [`Figure::svg`] are pictures.
//!
//! Every number is in the base of its [`Unit`] (seconds, bytes, bits per second); what shows it chooses the prefix.

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

/// A document, in the order in which it is read.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// What it is about.
    pub title: String,
    /// What to know before anything else, such as that the measurement is not valid.
    #[serde(default)]
    pub verdicts: Vec<Verdict>,
    /// The result in words.
    #[serde(default)]
    pub summary: Vec<String>,
    /// Figures and tables.
    #[serde(default)]
    pub sections: Vec<Section>,
    /// With what it was made: programs, kernel, settings, date. What somebody needs who wants to repeat it.
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
    /// Then tables.
    #[serde(default)]
    pub tables: Vec<Table>,
    /// And figures.
    #[serde(default)]
    pub figures: Vec<Figure>,
}

/// One finding in a few words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// Whether it is good.
    pub standing: Standing,
    /// In words: `VALID`, `INVALID: the relay was busy`, `limited by: send buffer`.
    pub text: String,
}

/// Whether something is as it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// It is.
    Good,
    /// Neither good nor bad.
    Neutral,
    /// It is not.
    Bad,
}

/// A name and its value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fact {
    /// `kernel`.
    pub name: String,
    /// `6.18.5`.
    pub value: String,
}

impl Fact {
    /// A fact.
    pub fn new(name: impl Into<String>, value: impl Into<String>) -> Self {
        Self { name: name.into(), value: value.into() }
    }
}
