//! Measures disks that `ropewalk attach` gives to programs of this machine, by fio: beside nbdkit's disk in memory, over
//! iSCSI, and across a path of ten milliseconds.
//!
//! Started by `benches/attach`.

#![forbid(unsafe_code)]

mod disk;
mod fio;
#[path = "../machine.rs"]
mod machine;
#[path = "../packages.rs"]
mod packages;

use anyhow::Context;
use clap::Parser;
use disk::{Disk, Far, Kind};
use fio::Job;
use observe::statistics::Sample;
use std::fmt::Write;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

/// Measure attached disks; write a report.
#[derive(Debug, Parser)]
struct Options {
    /// How often everything is measured; the report has medians.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// How long one measurement takes, in seconds.
    #[arg(long, default_value_t = 4)]
    seconds: u64,
    /// The report's file.
    #[arg(long, default_value = "benches/ATTACH.md")]
    report: PathBuf,
}

/// The disk's length: much more than the processor's caches.
const DISK_MIB: u64 = 512;

const JOBS: [Job; 7] = [
    Job { rw: "read", block_bytes: 1 << 20, depth: 8 },
    Job { rw: "write", block_bytes: 1 << 20, depth: 8 },
    Job { rw: "read", block_bytes: 128 << 10, depth: 8 },
    Job { rw: "randread", block_bytes: 4096, depth: 1 },
    Job { rw: "randread", block_bytes: 4096, depth: 16 },
    Job { rw: "randwrite", block_bytes: 4096, depth: 1 },
    Job { rw: "randwrite", block_bytes: 4096, depth: 16 },
];

/// What is measured across the path.
const FAR_JOBS: [Job; 3] = [
    Job { rw: "randread", block_bytes: 4096, depth: 1 },
    Job { rw: "randread", block_bytes: 4096, depth: 16 },
    Job { rw: "randwrite", block_bytes: 4096, depth: 16 },
];

/// The path's round trip.
const ROUND_TRIP: Duration = Duration::from_millis(10);

fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    let mut report = describe(&options)?;
    print!("{report}");
    for part in [near, far] {
        let text = part(&options)?;
        println!("{text}");
        write!(report, "\n{text}")?;
    }
    fs::write(&options.report, report).with_context(|| format!("writing {}", options.report.display()))
}

fn describe(options: &Options) -> anyhow::Result<String> {
    Ok(format!(
        "# Attached disks\n\n\
         Written by `benches/attach`, built from commit {commit}, on {date}: {machine}. Medians of {rounds} rounds of {seconds} s \
         by fio, in which all disks take turns. Others: {others}.\n",
        commit = machine::commit(),
        date = machine::today(),
        machine = machine::describe(),
        rounds = options.rounds,
        seconds = options.seconds,
        others = packages::installed(&["fio", "nbdkit", "util-linux"]).join(", "),
    ))
}

/// All ways on this machine, beside each other.
fn near(options: &Options) -> anyhow::Result<String> {
    let kinds = [Kind::Nbdkit, Kind::Nbd, Kind::Loop, Kind::NbdOverIscsi, Kind::LoopOverIscsi];
    let mut text = format!(
        "## On one machine\n\n\
         A disk of {DISK_MIB} MiB in memory, fully written. MB/s for blocks of 128 KiB and more, otherwise thousands of operations \
         per second. The last column is our NBD server's share of nbdkit's.\n\n\
         | requests | {} | NBD / nbdkit |\n|---|---:|---:|---:|---:|---:|---:|\n",
        kinds.map(Kind::name).join(" | ")
    );
    for job in JOBS {
        let mut measured = vec![Vec::new(); kinds.len()];
        for _ in 0..options.rounds {
            for (kind, rates) in kinds.into_iter().zip(&mut measured) {
                let disk = Disk::attach(kind)?;
                rates.push(fio::run(job, &disk.target(), Duration::from_secs(options.seconds))?);
            }
        }
        let share = measured[1].iter().zip(&measured[0]).map(|(ours, theirs)| ours / theirs);
        let share = median(share)?;
        let cells = measured.iter().map(|rates| Ok(job.describe(median(rates.iter().copied())?)));
        let cells: Vec<_> = cells.collect::<anyhow::Result<_>>()?;
        writeln!(text, "| {job} | {} | {:.0} % |", cells.join(" | "), share * 100.0)?;
    }
    Ok(text)
}

/// Over a path, beside what depth and round trip allow.
fn far(options: &Options) -> anyhow::Result<String> {
    let mut text = format!(
        "## Across {} ms\n\n\
         The same disk across an emulated path of 1 Gbit/s, by its default number of connections: operations per second, and \
         their share of depth / round trip.\n\n\
         | requests | depth / round trip | {} | {} |\n|---|---:|---:|---:|\n",
        ROUND_TRIP.as_millis(),
        Kind::NbdOverIscsi.name(),
        Kind::LoopOverIscsi.name(),
    );
    for job in FAR_JOBS {
        let limit = f64::from(job.depth) / ROUND_TRIP.as_secs_f64();
        let mut cells = Vec::new();
        for kind in [Kind::NbdOverIscsi, Kind::LoopOverIscsi] {
            let mut rates = Vec::new();
            for _ in 0..options.rounds {
                let far = Far::build(ROUND_TRIP)?;
                let disk = far.attach(kind)?;
                rates.push(fio::run(job, &disk.target(), Duration::from_secs(options.seconds))?);
            }
            let rate = median(rates)?;
            cells.push(format!("{rate:.0} ({:.0} %)", rate / limit * 100.0));
        }
        writeln!(text, "| {job} | {limit:.0} | {} |", cells.join(" | "))?;
    }
    Ok(text)
}

fn median(rounds: impl IntoIterator<Item = f64>) -> anyhow::Result<f64> {
    Ok(Sample::of(rounds).context("no rounds were asked for: --rounds must be at least 1")?.median())
}
