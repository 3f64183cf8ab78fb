//! Measures the cost of many connections for the target.

use crate::Effort;
use crate::contender::Contender;
use crate::initiator_speed::ropewalk;
use crate::statistics::median;
use std::fmt::Write;

const CONNECTIONS: [usize; 4] = [1, 4, 16, 64];

pub fn measure(effort: Effort) -> anyhow::Result<String> {
    let contender = Contender::ropewalk()?;
    let mut text = String::from(
        "## The cost of many connections\n\n\
         The target's processor seconds per GiB under `ropewalk bench` with requests of 1 MiB, 32 outstanding.\n\n\
         | way | connections | MB/s | s/GiB | relative to one connection |\n|---|---:|---:|---:|---:|\n",
    );
    for way in ["read", "write"] {
        let mut of_one = None;
        for connections in CONNECTIONS {
            eprintln!("{way} over {connections} connections");
            let samples: anyhow::Result<Vec<_>> =
                (0..effort.rounds).map(|_| ropewalk(&contender, way, connections, effort.duration)).collect();
            let samples = samples?;
            let speed = median(samples.iter().map(|sample| sample.bytes_per_second)) / 1e6;
            let cost = median(samples.iter().map(|sample| sample.target_seconds_per_gib));
            let ratio = cost / *of_one.get_or_insert(cost);
            writeln!(text, "| {way} | {connections} | {speed:.0} | {cost:.3} | {ratio:.2} |")?;
        }
    }
    Ok(text)
}
