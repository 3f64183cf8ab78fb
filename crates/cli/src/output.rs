//! Output for people and for programs.

use crate::exit::Status;
use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use serde_json::Value;
use std::fmt::Arguments;
use std::io::{self, ErrorKind, IsTerminal, Write};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::SubscriberBuilder;
use tracing_subscriber::fmt::format::{DefaultFields, Format};

/// Prints a line on standard output, formatted as by `println!`: see [`line`].
macro_rules! outln {
    () => { $crate::output::line(format_args!("")) };
    ($($words:tt)*) => { $crate::output::line(format_args!($($words)*)) };
}
pub(crate) use outln;

/// A shell reports this status for a process that SIGPIPE ended: 128 + SIGPIPE.
const NOBODY_READS: i32 = 141;

/// Writes one line to standard output; all output goes through here. If the reader has gone (`head`, `less`), the
/// command ends quietly; if the disk is full, it ends with a message.
pub(crate) fn line(words: Arguments<'_>) {
    if let Err(error) = writeln!(io::stdout().lock(), "{words}") {
        std::process::exit(cannot_write(&error));
    }
}

/// Writes one line to standard error, which may be a terminal that has hung up. If nobody can be told, the exit status still
/// tells.
pub(crate) fn tell(words: Arguments<'_>) {
    let _ = writeln!(io::stderr(), "{words}");
}

/// Exits with this status when the output cannot be written.
fn cannot_write(error: &io::Error) -> i32 {
    if error.kind() == ErrorKind::BrokenPipe {
        return NOBODY_READS;
    }
    tell(format_args!("error: cannot write to standard output: {error}"));
    Status::Failed as i32
}

/// The environment variable that filters the log, as in `RUST_LOG=ropewalk_initiator=debug`.
const LOG_VARIABLE: &str = "RUST_LOG";

/// Logs warnings on standard error, for commands that a person watches.
pub(crate) fn log_warnings() {
    let subscriber = tracing_subscriber::fmt().with_env_filter(filter("warn")).with_writer(io::stderr);
    // A terminal that has hung up accepts no messages, not even this one.
    let subscriber = subscriber.log_internal_errors(false);
    subscriber.without_time().with_target(false).with_ansi(io::stderr().is_terminal()).compact().init();
}

/// Logs as a server does, for people.
pub(crate) fn log_as_server() {
    server_log().with_ansi(io::stderr().is_terminal()).compact().init();
}

/// A server's log on standard error: also what goes well, with the time.
pub(crate) fn server_log() -> SubscriberBuilder<DefaultFields, Format, EnvFilter, fn() -> io::Stderr> {
    // The library that mounts warns of each function that the file system does without, and of a mount that is gone
    // already when it is to be unmounted.
    let subscriber = tracing_subscriber::fmt().with_env_filter(filter("info,fuser=error"));
    // A terminal that has hung up accepts no messages, and the server must still stop in order. Our events have a field
    // of the target's name.
    subscriber.with_writer(io::stderr as fn() -> io::Stderr).log_internal_errors(false).with_target(false)
}

/// The filter of the environment variable, otherwise this default.
fn filter(default: &str) -> EnvFilter {
    EnvFilter::try_from_env(LOG_VARIABLE).unwrap_or_else(|_| EnvFilter::new(default))
}

/// Prints one object on one line of standard output.
pub(crate) fn json(value: &Value) {
    outln!("{value}");
}

/// A table with these columns and no rows.
pub(crate) fn table(columns: &[&str]) -> Table {
    let mut table = plain();
    table.set_header(columns.to_vec());
    table
}

/// Prints names and values, one pair per line.
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

/// Right-aligns the numbers of a column.
pub(crate) fn align_right(table: &mut Table, columns: impl IntoIterator<Item = usize>) {
    for column in columns {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
}

/// Removes the padding of the first and the last column.
pub(crate) fn print(table: &Table) {
    for line in table.to_string().lines() {
        outln!("{}", line.strip_prefix(' ').unwrap_or(line).trim_end());
    }
}
