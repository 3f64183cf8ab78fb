//! Measures speed and memory, without a verdict: our target beside `tgt` and `istgt`, our initiator beside plain
//! sockets, memory of idle connections, and the cost of many connections.
//!
//! Started by `benches/run`, which sets the congestion control. Target on core 0, client on core 1.

#![forbid(unsafe_code)]

mod contender;
mod cost;
mod initiator_speed;
mod machine;
mod measure;
mod memory;
mod packages;
mod plain_stream;
mod setup;
mod target_speed;
mod workload;

use anyhow::Context;
use clap::Parser;
use std::fmt::Write;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Measure speed and memory; write a report.
#[derive(Debug, Parser)]
struct Options {
    /// Try every part once, briefly.
    #[arg(long)]
    quick: bool,
    /// How often everything is measured; the report has medians.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// How long one measurement takes, in seconds.
    #[arg(long, default_value_t = 5)]
    seconds: u64,
    /// The report's file.
    #[arg(long, default_value = "benches/RESULTS.md")]
    report: PathBuf,
}

/// How much is measured.
#[derive(Clone, Copy, Debug)]
struct Effort {
    rounds: usize,
    duration: Duration,
}

/// The core on which the target runs.
const TARGET_CORE: usize = 0;

/// The core on which the client runs.
const CLIENT_CORE: usize = 1;

/// The size of the disk: more than any cache of today's processors, so that both ends work on memory.
const WORKING_SET_MIB: u64 = 512;

fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    let effort = match options.quick {
        true => Effort { rounds: 1, duration: Duration::from_secs(1) },
        false => {
            Effort { rounds: options.rounds.max(1), duration: Duration::from_secs(options.seconds.max(1)) }
        }
    };
    let begun = Instant::now();
    let mut report = setup::describe(effort)?;
    print!("{report}");
    for part in [target_speed::measure, initiator_speed::measure, memory::measure, cost::measure] {
        let text = part(effort)?;
        println!("\n{text}");
        write!(report, "\n{text}")?;
    }
    writeln!(
        report,
        "\nAll measurements together took {:.0} minutes.",
        begun.elapsed().as_secs_f64() / 60.0
    )?;
    fs::write(&options.report, report).with_context(|| format!("writing {}", options.report.display()))
}
