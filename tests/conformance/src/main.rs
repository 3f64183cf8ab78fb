//! Runs libiscsi's conformance tests, and compares every verdict with the table in `RESULTS.md` and the reasons in
//! `EXPECTED.md`.
//!
//! ```text
//! cargo run -p ropewalk-conformance                                   everything, as `make test-conformance` does
//! cargo run -p ropewalk-conformance -- --update                       also writes the table, as `make conformance-table`
//! cargo run -p ropewalk-conformance -- --test 'Read10.*' --configuration thin    some of it
//! cargo run -p ropewalk-conformance -- --peer tgt                     the column of another target
//! ```

#![forbid(unsafe_code)]

mod expected;
mod peer;
mod recorded;
mod results;
mod run;
mod subject;
mod test_name;
mod verdict;

use anyhow::{Context, Result, ensure};
use clap::Parser;
use expected::Entry;
use indicatif::{ProgressBar, ProgressStyle};
use peer::Peer;
use recorded::{Extent, Recorded};
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

    /// Only this test, or a suite as Read10.*; repeatable
    #[arg(long = "test", value_name = "SUITE.TEST")]
    tests: Vec<String>,

    /// Only this kind of disk; repeatable
    #[arg(long = "configuration", value_name = "NAME")]
    configurations: Vec<String>,

    /// Show how the verdicts differ from the table, and write them into it
    #[arg(long, conflicts_with_all = ["tests", "configurations", "peer"])]
    update: bool,
}

/// Where the tables are.
const FOLDER: &str = env!("CARGO_MANIFEST_DIR");

fn main() -> Result<ExitCode> {
    let arguments = Arguments::parse();
    let needed = [Requirement::Peers(&[ISCSI_TEST_CU]), Requirement::Peers(arguments.peer.programs())];
    if !require(&needed) {
        return Ok(ExitCode::SUCCESS);
    }
    let text =
        fs::read_to_string(Path::new(FOLDER).join("EXPECTED.md")).context("cannot read EXPECTED.md")?;
    let entries = expected::parse(&text).context("EXPECTED.md")?;
    let results = run(&arguments)?;
    match arguments.peer {
        Subject::Ropewalk => judge(&results, &entries, &arguments),
        _ if arguments.is_of_a_part() => {
            print(&results);
            Ok(ExitCode::SUCCESS)
        }
        peer @ (Subject::Tgt | Subject::Istgt) => {
            Peer::save(Path::new(FOLDER), peer, &results)?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

impl Arguments {
    fn is_of_a_part(&self) -> bool {
        !self.tests.is_empty() || !self.configurations.is_empty()
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

/// Compares the verdicts with the table, which `--update` replaces, and with the reasons.
fn judge(results: &Results, entries: &[Entry], arguments: &Arguments) -> Result<ExitCode> {
    let table = Path::new(FOLDER).join("RESULTS.md");
    let text = fs::read_to_string(&table).context("cannot read RESULTS.md")?;
    let recorded = Recorded::parse(&text).context("RESULTS.md")?;
    if arguments.is_of_a_part() {
        print(results);
        return Ok(verdict_of(&recorded.differences(results, &Extent::Part)));
    }
    let mut complaints = recorded.differences(results, &Extent::Everything);
    let renewed = results.markdown(&peers()?)?;
    if arguments.update {
        complaints.drain(..).for_each(|difference| println!("{difference}"));
        fs::write(&table, renewed).context("cannot write RESULTS.md")?;
    } else if complaints.is_empty() && renewed != text {
        complaints.push("the words of RESULTS.md differ".to_owned());
    }
    if !complaints.is_empty() {
        complaints
            .push("RESULTS.md says otherwise (-); if the run is right (+), --update writes it".to_owned());
    }
    complaints.extend(expected::compare(results, entries));
    let (passing, all) = results.passing_somewhere();
    println!("{passing} of {all} tests pass; see {}", table.display());
    Ok(verdict_of(&complaints))
}

fn peers() -> Result<Vec<Peer>> {
    let mut peers = Vec::new();
    for subject in [Subject::Tgt, Subject::Istgt] {
        peers.extend(Peer::load(Path::new(FOLDER), subject)?);
    }
    Ok(peers)
}

fn verdict_of(complaints: &[String]) -> ExitCode {
    complaints.iter().for_each(|complaint| eprintln!("{complaint}"));
    if complaints.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
