//! `ropewalk copy` from standard input and to standard output.

use crate::world::{Folder, MIB, Outcome, Server, noise, ropewalk};
use std::fs::{File, OpenOptions};
use std::process::{Command, Stdio};

/// Runs `ropewalk copy` in a shell that makes these redirections.
fn copy_with(redirections: &str, arguments: &[&str]) -> Outcome {
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("exec \"$0\" copy \"$@\" {redirections}"), env!("CARGO_BIN_EXE_ropewalk")]);
    Outcome(shell.args(arguments).output().unwrap())
}

#[track_caller]
fn refused(outcome: Outcome, words: &str) {
    let said = outcome.expect(5).stderr();
    assert!(said.contains(words) && said.contains("nothing was written"), "{said}");
}

#[test]
fn an_input_that_is_the_destination_is_refused() {
    let folder = Folder::new();
    let disk = folder.write("disk", &noise(MIB));
    let arguments = ["copy", "--overwrite", "-", &disk];
    let copy = ropewalk(&arguments).stdin(File::open(&disk).unwrap()).output().unwrap();
    refused(Outcome(copy), "source and destination are the same");
    assert!(folder.read("disk") == noise(MIB));
}

#[test]
fn an_output_that_is_the_source_is_refused() {
    let folder = Folder::new();
    let disk = folder.write("disk", &noise(MIB));
    let output = OpenOptions::new().append(true).open(&disk).unwrap();
    let copy = ropewalk(&["copy", &disk, "-"]).stdout(output).stderr(Stdio::piped()).spawn().unwrap();
    refused(Outcome(copy.wait_with_output().unwrap()), "source and destination are the same");
    assert!(folder.read("disk") == noise(MIB));
}

#[test]
fn a_closed_or_write_only_standard_input_is_refused() {
    let server = Server::with_luns(&["0=ram:1MiB"]);
    refused(copy_with("<&-", &["-", &server.url(0)]), "standard input is closed");
    refused(copy_with("0>/dev/null", &["-", &server.url(0)]), "standard input is open for writing only");
}

#[test]
fn a_closed_or_read_only_standard_output_is_refused() {
    let folder = Folder::new();
    let disk = folder.write("disk", &noise(MIB));
    refused(copy_with(">&-", &[&disk, "-"]), "standard output is closed");
    refused(copy_with("1</dev/null", &[&disk, "-"]), "standard output is not open for writing");
    copy_with(">/dev/null", &[&disk, "-"]).expect(0);
}

#[test]
fn an_output_without_room_is_a_failure() {
    let folder = Folder::new();
    let disk = folder.write("disk", &noise(MIB));
    let said = copy_with(">/dev/full", &[&disk, "-"]).expect(1).stderr();
    assert!(said.contains("cannot write to -"), "{said}");
}

#[test]
fn an_empty_input_is_a_failure() {
    let server = Server::with_luns(&["0=ram:1MiB"]);
    let said = copy_with("</dev/null", &["-", &server.url(0)]).expect(1).stderr();
    assert!(said.contains("the input is empty") && said.contains("nothing was written"), "{said}");
}

#[test]
fn an_input_of_another_length_than_expected_is_a_failure() {
    let (folder, server) = (Folder::new(), Server::with_luns(&["0=ram:4MiB"]));
    let image = folder.write("image", &noise(MIB));
    let input = format!("<'{image}'");
    let said = copy_with(&input, &["--source-size=2M", "-", &server.url(0)]).expect(1).stderr();
    assert!(said.contains("ended after 1048576 bytes"), "{said}");
    copy_with(&input, &["--source-size=1M", "-", &server.url(0)]).expect(0);
}

#[test]
fn a_packed_image_is_copied_with_a_warning() {
    let (folder, server) = (Folder::new(), Server::with_luns(&["0=ram:4MiB"]));
    let packed = folder.write("packed", &[b"\x28\xb5\x2f\xfd", &noise(MIB)[..]].concat());
    let said = copy_with("", &[&packed, &server.url(0)]).expect(0).stderr();
    assert!(said.contains("zstd -dc"), "{said}");
    let input = format!("<'{packed}'");
    let outcome = copy_with(&input, &["--json", "-", &server.url(0)]).expect(0);
    assert!(outcome.stderr().contains("zstd -dc"), "{}", outcome.stderr());
    assert_eq!(outcome.json_lines().last().unwrap()["source_format"], "zstd");
    let plan = copy_with("", &["--dry-run", "--json", &packed, &server.url(0)]).expect(0).json_lines();
    assert_eq!(plan[0]["source_format"], "zstd");
}
