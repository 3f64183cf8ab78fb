//! A report as one file for a browser, which needs no network and makes no requests.

mod figure_data;

use super::escape;
use super::figure::Figure;
use super::table::{Cell, Row, Table};
use super::unit::Scale;
use super::{Fact, Report, Section, Standing, Verdict};
use std::fmt::{Arguments, Write};

const STYLE: &str = include_str!("html/page.css");
const SCRIPT: &str = include_str!("html/page.js");
const UPLOT_STYLE: &str = include_str!("../../vendor/uplot-1.6.32/uPlot.min.css");
const UPLOT_SCRIPT: &str = include_str!("../../vendor/uplot-1.6.32/uPlot.iife.min.js");
const UPLOT_LICENCE: &str = include_str!("../../vendor/uplot-1.6.32/LICENSE");
/// The page may use only its own contents. Nothing is fetched, whatever a report contains.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'";
/// The least number of headings that needs a table of contents.
const LISTED_SECTIONS_MIN: usize = 3;
/// The length of a table text that needs a column wider than its words.
const LONG_TEXT: usize = 40;
/// The most rows of an open table beside a figure; longer ones are folded.
const OPEN_ROWS_MAX: usize = 24;

impl Report {
    /// The page. Every figure can be zoomed, shows its values, and has its table below; without scripts, and in print,
    /// it is a picture.
    #[must_use]
    pub fn html(&self) -> String {
        let mut page = Page(String::new());
        page.head(&self.title);
        page.put(format_args!("<body>\n<h1>{}</h1>\n", escape::text(&self.title)));
        page.verdicts(&self.verdicts);
        page.paragraphs(&self.summary);
        page.contents(&self.sections);
        for (number, section) in self.sections.iter().enumerate() {
            page.section(number, section);
        }
        page.description(&self.description);
        page.put(format_args!(
            "<footer>Made by Ropewalk. Plots by uPlot 1.6.32 (MIT licence).</footer>\n\
             <script>\n/*\nuPlot\n\n{UPLOT_LICENCE}*/\n{UPLOT_SCRIPT}</script>\n<script>\n{SCRIPT}</script>\n\
             </body>\n</html>\n"
        ));
        page.0
    }
}

/// A page under construction.
struct Page(String);

impl Page {
    fn put(&mut self, what: Arguments<'_>) {
        // Writing to a string cannot fail.
        let _ = self.0.write_fmt(what);
    }

    fn head(&mut self, title: &str) {
        let title = escape::text(title);
        self.put(format_args!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\"/>\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
             <title>{title}</title>\n<style>\n{UPLOT_STYLE}\n{STYLE}</style>\n</head>\n"
        ));
    }

    fn verdicts(&mut self, verdicts: &[Verdict]) {
        if verdicts.is_empty() {
            return;
        }
        self.put(format_args!("<ul class=\"verdicts\">\n"));
        for verdict in verdicts {
            let (class, sign) = match verdict.standing {
                Standing::Good => ("good", "✓ "),
                Standing::Neutral => ("neutral", ""),
                Standing::Bad => ("bad", "✗ "),
            };
            self.put(format_args!("<li class=\"{class}\">{sign}{}</li>\n", escape::text(&verdict.text)));
        }
        self.put(format_args!("</ul>\n"));
    }

    fn paragraphs(&mut self, paragraphs: &[String]) {
        for paragraph in paragraphs {
            self.put(format_args!("<p>{}</p>\n", escape::text(paragraph)));
        }
    }

    /// The table of contents, for a long page.
    fn contents(&mut self, sections: &[Section]) {
        let headed = || sections.iter().enumerate().filter(|(_, section)| !section.heading.is_empty());
        if headed().count() < LISTED_SECTIONS_MIN {
            return;
        }
        self.put(format_args!("<nav><ul>\n"));
        for (number, section) in headed() {
            let heading = escape::text(&section.heading);
            self.put(format_args!("<li><a href=\"#section-{number}\">{heading}</a></li>\n"));
        }
        self.put(format_args!("</ul></nav>\n"));
    }

    fn section(&mut self, number: usize, section: &Section) {
        self.put(format_args!("<section id=\"section-{number}\">\n"));
        if !section.heading.is_empty() {
            self.put(format_args!("<h2>{}</h2>\n", escape::text(&section.heading)));
        }
        self.paragraphs(&section.paragraphs);
        for table in &section.tables {
            self.table(table);
        }
        for figure in &section.figures {
            self.figure(figure);
        }
        self.put(format_args!("</section>\n"));
    }

    fn figure(&mut self, figure: &Figure) {
        self.put(format_args!("<figure>\n<h3>{}</h3>\n", escape::text(&figure.title)));
        for warning in &figure.warnings {
            self.put(format_args!("<p class=\"warning\">{}</p>\n", escape::text(warning)));
        }
        self.put(format_args!(
            "<div class=\"plot\"></div>\n<div class=\"legend\"></div>\n<div class=\"tools\"></div>\n\
             <div class=\"still\">{}</div>\n<script type=\"application/json\">{}</script>\n",
            figure.svg(),
            figure_data::json(figure),
        ));
        if !figure.caption.is_empty() {
            self.put(format_args!("<figcaption>{}</figcaption>\n", escape::text(&figure.caption)));
        }
        let table = figure.table_or_points();
        let open = if table.rows.len() <= OPEN_ROWS_MAX { " open=\"\"" } else { "" };
        self.put(format_args!("<details{open}><summary>Table</summary>\n"));
        self.table(&table);
        self.put(format_args!("</details>\n</figure>\n"));
    }

    fn table(&mut self, table: &Table) {
        let columns: Vec<_> =
            (0..table.columns.len()).map(|at| (table.scale(at), table.is_numeric(at))).collect();
        self.put(format_args!("<div class=\"table\"><table>\n"));
        if !table.title.is_empty() {
            self.put(format_args!("<caption>{}</caption>\n", escape::text(&table.title)));
        }
        self.put(format_args!("<thead><tr>"));
        for (column, (scale, is_numeric)) in table.columns.iter().zip(&columns) {
            let label = escape::text(&scale.label(&column.label));
            self.put(format_args!("<th{}>{label}</th>", class(*is_numeric)));
        }
        self.put(format_args!("</tr></thead>\n<tbody>\n"));
        for row in &table.rows {
            self.row(row, &columns);
        }
        self.put(format_args!("</tbody></table></div>\n"));
        if !table.note.is_empty() {
            self.put(format_args!("<p class=\"note\">{}</p>\n", escape::text(&table.note)));
        }
    }

    fn row(&mut self, row: &Row, columns: &[(Scale, bool)]) {
        let invalid = if row.invalid.is_some() { " class=\"invalid\"" } else { "" };
        self.put(format_args!("<tr{invalid}>"));
        for (cell, (scale, is_numeric)) in row.cells.iter().zip(columns) {
            let text = cell.text(scale);
            let class = match cell {
                Cell::Invalid { .. } => " class=\"number invalid\"",
                Cell::Text(text) if text.len() > LONG_TEXT => " class=\"long\"",
                _ => class(*is_numeric),
            };
            self.put(format_args!("<td{class}>{}</td>", escape::text(&text)));
        }
        self.put(format_args!("</tr>\n"));
        if let Some(reason) = row.untold_reason() {
            let (width, reason) = (columns.len(), escape::text(reason));
            self.put(format_args!(
                "<tr class=\"reason\"><td colspan=\"{width}\">not valid: {reason}</td></tr>\n"
            ));
        }
    }

    fn description(&mut self, facts: &[Fact]) {
        if facts.is_empty() {
            return;
        }
        self.put(format_args!("<section>\n<h2>How this was made</h2>\n<dl>\n"));
        for Fact { name, value } in facts {
            let (name, value) = (escape::text(name), escape::text(value));
            self.put(format_args!("<dt>{name}</dt><dd>{value}</dd>\n"));
        }
        self.put(format_args!("</dl>\n</section>\n"));
    }
}

fn class(is_numeric: bool) -> &'static str {
    if is_numeric { " class=\"number\"" } else { "" }
}
