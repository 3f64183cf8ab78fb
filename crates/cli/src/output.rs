//! What is printed, for people and for programs.

use crate::exit::Status;
use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use serde_json::Value;
use std::fmt::Arguments;
use std::io::{self, ErrorKind, IsTerminal, Write};
use tracing_subscriber::EnvFilter;

/// A line on standard output, formatted as by `println!`: see [`line`].
macro_rules! outln {
    () => { $crate::output::line(format_args!("")) };
    ($($words:tt)*) => { $crate::output::line(format_args!($($words)*)) };
}
pub(crate) use outln;

/// What a shell reports of a process that ended because nobody read its output any more: 128 + SIGPIPE.
const NOBODY_READS: i32 = 141;

/// Everything that is written to standard output goes through here: a reader that has seen enough (`head`, `less`)
/// ends the command quietly, and a full disk with a message.
pub(crate) fn line(words: Arguments<'_>) {
    if let Err(error) = writeln!(io::stdout().lock(), "{words}") {
        std::process::exit(cannot_write(&error));
    }
}

/// The exit status.
fn cannot_write(error: &io::Error) -> i32 {
    if error.kind() == ErrorKind::BrokenPipe {
        return NOBODY_READS;
    }
    // If that cannot be said either, the status says it.
    let _ = writeln!(io::stderr(), "error: cannot write to standard output: {error}");
    Status::Failed as i32
}

/// The environment variable that says what is logged, as in `RUST_LOG=ropewalk_initiator=debug`.
const LOG_VARIABLE: &str = "RUST_LOG";

/// Warnings on standard error, for commands that a person watches.
pub(crate) fn log_warnings() {
    let subscriber = tracing_subscriber::fmt().with_env_filter(filter("warn")).with_writer(io::stderr);
    // A terminal that has hung up takes no words, not even that it takes none.
    let subscriber = subscriber.log_internal_errors(false);
    subscriber.without_time().with_target(false).with_ansi(io::stderr().is_terminal()).compact().init();
}

/// What the environment asks for, or else this.
pub(crate) fn filter(default: &str) -> EnvFilter {
    EnvFilter::try_from_env(LOG_VARIABLE).unwrap_or_else(|_| EnvFilter::new(default))
}

/// One object on one line of standard output.
pub(crate) fn json(value: &Value) {
    outln!("{value}");
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
        outln!("{}", line.strip_prefix(' ').unwrap_or(line).trim_end());
    }
}
