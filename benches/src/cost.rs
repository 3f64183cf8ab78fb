//! Measures the cost of many connections for the target.

use crate::Effort;
use crate::contender::Contender;
use crate::initiator_speed::ropewalk;
use crate::measure::rounds;
use std::fmt::Write;

const CONNECTIONS: [usize; 4] = [1, 4, 16, 64];

pub fn measure(effort: Effort) -> anyhow::Result<String> {
    let contender = Contender::ropewalk_ram()?;
    let mut text = String::from(
        "## The cost of many connections\n\n\
         The processor seconds per GiB of ropewalk as target, which serves `ram:`, under `ropewalk bench` with requests of 1 MiB, 32 outstanding.\n\n\
         | way | connections | MB/s | s/GiB | relative to one connection |\n|---|---:|---:|---:|---:|\n",
    );
    for way in ["read", "write"] {
        let mut of_one = None;
        for connections in CONNECTIONS {
            eprintln!("{way} over {connections} connections");
            let runs: anyhow::Result<Vec<_>> =
                (0..effort.rounds).map(|_| ropewalk(&contender, way, connections, effort.duration)).collect();
            let runs = runs?;
            let speed = rounds(runs.iter().map(|run| run.bytes_per_second))?.median() / 1e6;
            let cost = rounds(runs.iter().map(|run| run.target_seconds_per_gib))?.median();
            let ratio = cost / *of_one.get_or_insert(cost);
            writeln!(text, "| {way} | {connections} | {speed:.0} | {cost:.3} | {ratio:.2} |")?;
        }
    }
    Ok(text)
}
