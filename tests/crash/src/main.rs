//! ```text
//! make crash ROUNDS=100
//! cargo run --release -p ropewalk-crash -- --rounds 4 --seed 7 --filesystem xfs
//! ```
//!
//! Each round makes a filesystem on an attached disk whose target forgets what it was not told to keep, and lets writers
//! work on it. At a moment that the seed chooses, something is killed. Then the disk is attached anew, the filesystem must
//! be consistent after its log was replayed, and everything must be there that had been fsynced.

#![forbid(unsafe_code)]

mod disk;
mod history;
mod kill;
mod round;
mod writer;

use anyhow::Result;
use clap::{Parser, ValueEnum};
use comfy_table::{CellAlignment, Table, presets};
use kill::Kill;
use round::{Outcome, Round};
use std::process::ExitCode;

/// Filesystems on attached disks, whose targets, connections and servers are killed
#[derive(Parser)]
struct Arguments {
    /// Rounds; they take the kinds of kills in turn
    #[arg(long, value_name = "N", default_value_t = 16)]
    rounds: u64,

    /// Where what is random begins
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Only this filesystem, instead of both in turn
    #[arg(long)]
    filesystem: Option<Filesystem>,

    /// Only this kind
    #[arg(long)]
    kill: Option<Kill>,
}

/// What is made on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Filesystem {
    Ext4,
    Xfs,
}

const FILESYSTEMS: [Filesystem; 2] = [Filesystem::Ext4, Filesystem::Xfs];

fn main() -> Result<ExitCode> {
    let arguments = Arguments::parse();
    let mut outcomes: Vec<(Kill, Outcome)> = Vec::new();
    for number in 0..arguments.rounds {
        let turn = usize::try_from(number)?;
        let round = Round {
            seed: arguments.seed + number,
            kill: arguments.kill.unwrap_or(Kill::ALL[turn % Kill::ALL.len()]),
            filesystem: arguments
                .filesystem
                .unwrap_or(FILESYSTEMS[turn / Kill::ALL.len() % FILESYSTEMS.len()]),
        };
        let outcome = round.run()?;
        eprintln!("{}/{} {round}: {outcome}", number + 1, arguments.rounds);
        outcome.complaints.iter().for_each(|complaint| eprintln!("  {complaint}"));
        outcomes.push((round.kill, outcome));
    }
    println!("{}", table(&outcomes));
    let complaints: usize = outcomes.iter().map(|(_, outcome)| outcome.complaints.len()).sum();
    Ok(if complaints == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn table(outcomes: &[(Kill, Outcome)]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header([
        "KILLED",
        "ROUNDS",
        "WRITERS STOPPED BY ERRORS",
        "FILES CHECKED",
        "MIB CHECKED",
        "LOST",
    ]);
    for kill in Kill::ALL {
        let of_kind: Vec<_> =
            outcomes.iter().filter(|(kind, _)| *kind == kill).map(|(_, outcome)| outcome).collect();
        let sum = |count: fn(&Outcome) -> u64| of_kind.iter().map(|outcome| count(outcome)).sum::<u64>();
        table.add_row([
            kill.to_string(),
            of_kind.len().to_string(),
            sum(|outcome| outcome.stopped_writers).to_string(),
            sum(|outcome| outcome.checked_files).to_string(),
            (sum(|outcome| outcome.checked_pages) / 256).to_string(),
            sum(|outcome| outcome.complaints.len() as u64).to_string(),
        ]);
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}
