//! Runs libiscsi's conformance tests, writes what became of them into `RESULTS.md`, and compares it with `EXPECTED.md`.
//!
//! ```text
//! cargo run -p ropewalk-conformance                                   everything, as `make test-conformance` does
//! cargo run -p ropewalk-conformance -- --test 'Read10.*' --configuration thin    some of it
//! cargo run -p ropewalk-conformance -- --peer tgt                     the column of another target
//! ```

#![forbid(unsafe_code)]

mod expected;
mod peer;
mod results;
mod run;
mod subject;
mod test_name;
mod verdict;

use anyhow::{Context, Result, ensure};
use clap::Parser;
use indicatif::{ProgressBar, ProgressStyle};
use peer::Peer;
use results::Results;
use ropewalk_interop::{Requirement, require};
use std::fs;
use std::path::Path;
use std::process::ExitCode;
use subject::{Configuration, Subject};
use test_name::{ISCSI_TEST_CU, TestName};

/// libiscsi's conformance tests, every one on every kind of disk
#[derive(Parser)]
struct Arguments {
    /// Test another target, and keep its verdicts for the table
    #[arg(long, value_name = "NAME", default_value = "ropewalk")]
    peer: Subject,

    /// Only this test, or a suite as Read10.*; repeatable. Writes and compares nothing
    #[arg(long = "test", value_name = "SUITE.TEST")]
    tests: Vec<String>,

    /// Only this kind of disk; repeatable. Writes and compares nothing
    #[arg(long = "configuration", value_name = "NAME")]
    configurations: Vec<String>,
}

/// Where the tables are.
const FOLDER: &str = env!("CARGO_MANIFEST_DIR");

fn main() -> Result<ExitCode> {
    let arguments = Arguments::parse();
    let needed = [Requirement::Peers(&[ISCSI_TEST_CU]), Requirement::Peers(arguments.peer.programs())];
    if !require(&needed) {
        return Ok(ExitCode::SUCCESS);
    }
    let results = run(&arguments)?;
    if !arguments.tests.is_empty() || !arguments.configurations.is_empty() {
        print(&results);
        return Ok(ExitCode::SUCCESS);
    }
    match arguments.peer {
        Subject::Ropewalk => judge(&results),
        peer @ (Subject::Tgt | Subject::Istgt) => {
            Peer::save(Path::new(FOLDER), peer, &results)?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn run(arguments: &Arguments) -> Result<Results> {
    let mut tests = test_name::every_test()?;
    if !arguments.tests.is_empty() {
        tests.retain(|test| arguments.tests.iter().any(|pattern| test.is_named_by(pattern)));
    }
    let all = arguments.peer.configurations().iter();
    let wanted = &arguments.configurations;
    let configurations: Vec<_> =
        all.filter(|one| wanted.is_empty() || wanted.iter().any(|name| name == one.name)).collect();
    ensure!(!tests.is_empty() && !configurations.is_empty(), "no such test or configuration");
    let progress = progress_bar(&tests, &configurations);
    let cases = run::run(&tests, &configurations, &progress)?;
    progress.finish_and_clear();
    Ok(Results::new(configurations, cases))
}

fn progress_bar(tests: &[TestName], configurations: &[&Configuration]) -> ProgressBar {
    let runs =
        |configuration: &&Configuration| tests.iter().filter(|test| configuration.can_run(test)).count();
    let progress = ProgressBar::new(configurations.iter().map(runs).sum::<usize>() as u64);
    // A template that does not parse would show the default bar.
    if let Ok(style) = ProgressStyle::with_template("{wide_bar} {pos}/{len} tests, {eta} left") {
        progress.set_style(style);
    }
    progress
}

fn print(results: &Results) {
    for (test, row) in results.tests() {
        for (configuration, verdict) in row {
            println!("{test} {verdict}, on {configuration}");
        }
    }
}

/// Writes the table, and says what is not as expected.
fn judge(results: &Results) -> Result<ExitCode> {
    let folder = Path::new(FOLDER);
    let mut peers = Vec::new();
    for subject in [Subject::Tgt, Subject::Istgt] {
        peers.extend(Peer::load(folder, subject)?);
    }
    fs::write(folder.join("RESULTS.md"), results.markdown(&peers)?).context("cannot write RESULTS.md")?;
    let expected = fs::read_to_string(folder.join("EXPECTED.md")).context("cannot read EXPECTED.md")?;
    let complaints = expected::compare(results, &expected::parse(&expected)?);
    for complaint in &complaints {
        eprintln!("{complaint}");
    }
    let (passing, all) = results.passing_somewhere();
    println!("{passing} of {all} tests pass; see {}", folder.join("RESULTS.md").display());
    Ok(if complaints.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
