//! `ropewalk lab report`: makes figures and tables of the results.

use crate::exit::Failed;
use crate::output::{self, outln};
use ::lab::{Folder, REPORT, Summary, report};
use anyhow::Context;
use observe::report::{Figure, Report, Table};
use serde_json::json;
use std::path::PathBuf;

/// A figure with more points is drawn, but not printed as a table.
const PRINTED_ROWS_MAX: usize = 100;

#[derive(clap::Args)]
#[command(after_help = "Example: ropewalk lab report results/004/figure06/quick")]
pub(crate) struct Arguments {
    /// The folder of the results
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,

    /// Print one JSON object, and write nothing
    #[arg(long)]
    json: bool,

    /// Only write medians and spreads to FILE, in JSON: a small summary to keep with a document that quotes them
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    summary: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failed> {
    let folder = Folder::open(&arguments.folder)?;
    if let Some(file) = &arguments.summary {
        let written = std::fs::write(file, Summary::of(&folder)?.json()?);
        return Ok(written.with_context(|| format!("cannot write {}", file.display()))?);
    }
    let report = report(&folder)?;
    if arguments.json {
        output::json(&json!(report));
    } else {
        print(&report);
        let figures = report.sections.iter().flat_map(|section| &section.figures);
        let pictures = figures.map(Figure::png).collect::<Result<Vec<_>, _>>()?;
        folder.write_report(&report.html(), &pictures)?;
        outln!("\n{}", arguments.folder.join(REPORT).display());
    }
    Ok(())
}

fn print(report: &Report) {
    outln!("{}", report.title);
    for verdict in &report.verdicts {
        outln!("{}", verdict.text);
    }
    for section in &report.sections {
        for figure in &section.figures {
            let table = figure.table_or_points();
            if table.rows.len() <= PRINTED_ROWS_MAX {
                print_table(&figure.title, &table);
            }
        }
        for table in &section.tables {
            let heading =
                [section.heading.as_str(), table.title.as_str()].into_iter().filter(|part| !part.is_empty());
            print_table(&heading.collect::<Vec<_>>().join(": "), table);
        }
    }
}

fn print_table(title: &str, table: &Table) {
    outln!("\n{title}\n");
    let scales: Vec<_> = (0..table.columns.len()).map(|column| table.scale(column)).collect();
    let labels = table.columns.iter().zip(&scales).map(|(column, scale)| scale.label(&column.label));
    let labels: Vec<String> = labels.collect();
    let mut printed = output::table(&labels.iter().map(String::as_str).collect::<Vec<_>>());
    for row in &table.rows {
        let cells = row.cells.iter().zip(&scales).map(|(cell, scale)| cell.text(scale));
        printed.add_row(cells.collect::<Vec<_>>());
    }
    output::align_right(&mut printed, (0..table.columns.len()).filter(|column| table.is_numeric(*column)));
    output::print(&printed);
    if !table.note.is_empty() {
        outln!("{}", table.note);
    }
}
