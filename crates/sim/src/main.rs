//! `ropewalk-sim`: runs seeds, and shrinks those that fail.

#![forbid(unsafe_code)]

mod campaign;
mod report;

use clap::Parser;
use policy::PlacementPolicy;
use ropewalk_sim::{OPERATIONS, Outcome, Reduction, Scenario, run, shrink};
use std::process::ExitCode;

/// A seed has broken a promise. (2 is clap's, for arguments that it does not understand.)
const VIOLATION: u8 = 1;

/// No seed has, but some were too easy, or a whole campaign did not come to everything that it is to test.
const TOO_EASY: u8 = 3;

/// Runs the real protocol, both ends, in a virtual world with faults, and checks every promise.
///
/// Exits with 0 if all promises were kept, 1 if a seed broke one, 2 if it does not understand its arguments, 3 if none
/// was broken but some seeds were too easy, or a thousand of them or more never came to something that they are to test.
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    /// How many seeds to run.
    #[arg(long, default_value_t = 1)]
    seeds: u64,
    /// The first of them.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Threads; the default is one for each processor.
    #[arg(long)]
    threads: Option<usize>,
    /// Print the history of the (only) seed.
    #[arg(long)]
    trace: bool,
    /// Stop at the first seed that fails.
    #[arg(long)]
    until_failure: bool,
    /// Do not look for a smaller failure.
    #[arg(long)]
    no_shrink: bool,
    /// Begin only this many operations.
    #[arg(long, default_value_t = OPERATIONS)]
    operations: u32,
    /// Leave out these faults, by their places in the seed's list.
    #[arg(long, value_delimiter = ',')]
    without_faults: Vec<usize>,
    /// Let no session have more connections than this.
    #[arg(long, default_value_t = u16::MAX)]
    connections: u16,
    /// Have no more hosts than this.
    #[arg(long, default_value_t = usize::MAX)]
    hosts: usize,
    /// The highest ErrorRecoveryLevel that a seed may draw.
    #[arg(long)]
    recovery_level: Option<u8>,
    /// Let all hosts place commands by this policy: "earliest delivery", "round robin", "least outstanding" or
    /// "lowest RTT".
    #[arg(long)]
    placement: Option<PlacementPolicy>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let reduction = Reduction {
        operations: arguments.operations,
        faults_left_out: arguments.without_faults.clone(),
        connections_max: arguments.connections,
        hosts_max: arguments.hosts,
        recovery_level_max: arguments.recovery_level.unwrap_or(Reduction::default().recovery_level_max),
        placement: arguments.placement,
    };
    if arguments.trace {
        return trace(arguments.seed, &reduction);
    }
    let threads = arguments.threads.or_else(|| std::thread::available_parallelism().ok().map(usize::from));
    let seeds = arguments.seed..arguments.seed.saturating_add(arguments.seeds);
    let summary = campaign::run_all(seeds, threads.unwrap_or(1).max(1), &reduction, arguments.until_failure);
    report::print(&summary);
    summary.failures.iter().for_each(|failure| report::print_failure(failure, &reduction));
    if !arguments.no_shrink && reduction == Reduction::default() {
        for failure in summary.failures.iter().take(report::SHRUNK_MAX) {
            let (smaller, outcome) = shrink(failure.seed, failure.clone());
            report::print_shrunk(&outcome, &smaller);
        }
    }
    match (summary.failures.is_empty(), summary.proves_enough(&reduction)) {
        (false, _) => ExitCode::from(VIOLATION),
        (true, false) => ExitCode::from(TOO_EASY),
        (true, true) => ExitCode::SUCCESS,
    }
}

/// Prints everything that happened with one seed.
fn trace(seed: u64, reduction: &Reduction) -> ExitCode {
    let outcome = run(Scenario::of(seed, reduction), true);
    outcome.trace.iter().flatten().for_each(|line| println!("{line}"));
    match &outcome {
        Outcome { violation: Some(violation), .. } => {
            println!("{}", violation.0);
            ExitCode::from(VIOLATION)
        }
        _ => ExitCode::SUCCESS,
    }
}
