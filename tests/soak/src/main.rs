//! ```text
//! make soak SECONDS=300
//! cargo run --release -p ropewalk-soak -- --sessions 100 --seconds 30 --breaks-per-second 50 --restarts 2
//! ```

#![forbid(unsafe_code)]

use anyhow::Result;
use clap::Parser;
use ropewalk_soak::{Plan, run};
use std::process::ExitCode;
use std::time::Duration;

/// Many sessions on one target for a long time, while connections break at random
#[derive(Parser)]
struct Arguments {
    /// iSCSI sessions that are open at a time
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u16).range(1..))]
    sessions: u16,

    /// Connections of each session, and commands at a time
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=64))]
    connections: u16,

    /// For how long there is load
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    seconds: u64,

    /// Commands that all clients together ask for
    #[arg(long, value_name = "RATE", default_value_t = 4000.0)]
    commands_per_second: f64,

    /// Connections that are broken
    #[arg(long, value_name = "RATE", default_value_t = 10.0)]
    breaks_per_second: f64,

    /// Stop the target so often under load, and start it again at once on the same port
    #[arg(long, value_name = "N", default_value_t = 0)]
    restarts: u32,

    /// Where what is random begins
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Print one JSON object instead of a table
    #[arg(long)]
    json: bool,
}

fn main() -> Result<ExitCode> {
    let arguments = Arguments::parse();
    let plan = Plan {
        sessions: arguments.sessions.into(),
        connections: arguments.connections,
        duration: Duration::from_secs(arguments.seconds),
        commands_per_second: arguments.commands_per_second,
        breaks_per_second: arguments.breaks_per_second,
        restarts: arguments.restarts,
        seed: arguments.seed,
    };
    let outcome = run(&plan, |doing| eprintln!("{doing}"))?;
    if arguments.json {
        println!("{}", serde_json::to_string(&outcome)?);
    } else {
        println!("{}", outcome.table());
    }
    let complaints = outcome.complaints();
    for complaint in &complaints {
        eprintln!("{complaint}");
    }
    Ok(if complaints.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
