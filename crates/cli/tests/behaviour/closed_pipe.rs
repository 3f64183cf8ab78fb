//! Output that nobody reads, as of `ropewalk lab list | head -1`, or that cannot be written.

use crate::world::{Outcome, Server, ropewalk};
use std::fs::{File, OpenOptions};
use std::process::Stdio;

/// What a shell reports of a process that ended by SIGPIPE.
const NOBODY_READS: i32 = 141;
const EXPERIMENTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../experiments");

fn run_into(arguments: &[&str], output: impl Into<Stdio>) -> Outcome {
    let command = ropewalk(arguments).stdout(output).stderr(Stdio::piped()).spawn().unwrap();
    Outcome(command.wait_with_output().unwrap())
}

fn closed_pipe() -> Stdio {
    let (_, writer) = std::io::pipe().unwrap();
    writer.into()
}

#[test]
fn a_command_whose_reader_has_seen_enough_ends_without_a_word() {
    let server = Server::with_luns(&["0=ram:1MiB"]);
    for arguments in [
        &["lab", "list", EXPERIMENTS][..],
        &["lab", "list", EXPERIMENTS, "--json"],
        &["lab", "clean", EXPERIMENTS],
        &["ls", &server.address],
        &["info", &server.url(0)],
    ] {
        let outcome = run_into(arguments, closed_pipe()).expect(NOBODY_READS);
        assert_eq!(outcome.stderr(), "", "{arguments:?}");
    }
}

#[test]
fn output_that_finds_no_room_is_a_failure_with_a_reason() {
    let full: File = OpenOptions::new().write(true).open("/dev/full").unwrap();
    let outcome = run_into(&["lab", "list", EXPERIMENTS], full).expect(1);
    assert!(outcome.stderr().contains("cannot write to standard output"), "{}", outcome.stderr());
}
