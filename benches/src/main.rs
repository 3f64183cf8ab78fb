//! Measures speed and memory, without a verdict: our target beside `tgt` and `istgt`, our initiator beside plain
//! sockets, memory of idle connections, and the cost of many connections.
//!
//! Started by `benches/run`, which sets the congestion control. Target on core 0, client on core 1.

#![forbid(unsafe_code)]

mod contender;
mod cost;
mod effort;
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
use effort::{Asked, Effort};
use std::fmt::Write;
use std::fs;
use std::time::Instant;

/// Measure speed and memory; write a report.
#[derive(Debug, Parser)]
struct Options {
    #[command(flatten)]
    asked: Asked,
}

/// The core on which the target runs.
const TARGET_CORE: usize = 0;

/// The core on which the client runs.
const CLIENT_CORE: usize = 1;

/// The size of the disk: more than any cache of today's processors, so that both ends work on memory.
const WORKING_SET_MIB: u64 = 512;

fn main() -> anyhow::Result<()> {
    let Options { asked } = Options::parse();
    let effort = asked.effort(5);
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
    let file = asked.report.unwrap_or_else(|| "benches/RESULTS.md".into());
    fs::write(&file, report).with_context(|| format!("writing {}", file.display()))
}
