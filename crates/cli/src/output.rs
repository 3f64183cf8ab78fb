//! What is printed, for people and for programs.

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use serde_json::Value;
use std::io::IsTerminal;
use tracing_subscriber::EnvFilter;

/// The environment variable that says what is logged, as in `RUST_LOG=ropewalk_initiator=debug`.
const LOG_VARIABLE: &str = "RUST_LOG";

/// Warnings on standard error, for commands that a person watches.
pub(crate) fn log_warnings() {
    let subscriber = tracing_subscriber::fmt().with_env_filter(filter("warn")).with_writer(std::io::stderr);
    subscriber.without_time().with_target(false).with_ansi(std::io::stderr().is_terminal()).compact().init();
}

/// What the environment asks for, or else this.
pub(crate) fn filter(default: &str) -> EnvFilter {
    EnvFilter::try_from_env(LOG_VARIABLE).unwrap_or_else(|_| EnvFilter::new(default))
}

/// One object on one line of standard output.
pub(crate) fn json(value: &Value) {
    println!("{value}");
}

/// An empty table with these columns, without lines.
pub(crate) fn table(columns: &[&str]) -> Table {
    let mut table = plain();
    table.set_header(columns.to_vec());
    table
}

/// Names and values, one pair per line.
pub(crate) fn pairs(rows: Vec<(&str, String)>) -> Table {
    let mut table = plain();
    for (name, value) in rows {
        table.add_row(vec![name.to_owned(), value]);
    }
    table
}

fn plain() -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table
}

/// Puts the numbers of a column below each other.
pub(crate) fn align_right(table: &mut Table, columns: impl IntoIterator<Item = usize>) {
    for column in columns {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
}

/// Without the spaces that pad the first and the last column.
pub(crate) fn print(table: &Table) {
    for line in table.to_string().lines() {
        println!("{}", line.strip_prefix(' ').unwrap_or(line).trim_end());
    }
}
