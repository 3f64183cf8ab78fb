//! Compares two builds of `ropewalk`: each is target and initiator at once, and they take turns in every round.
//!
//! Started by `benches/builds`, over loopback and over a link of 1 Gbit/s.

#![forbid(unsafe_code)]

mod machine;

use anyhow::{Context, ensure};
use clap::Parser;
use observe::statistics::Sample;
use ropewalk_interop::{IQN, PATIENCE, Program, free_port, summary};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Compare two builds of `ropewalk`; print a table.
#[derive(Debug, Parser)]
struct Options {
    /// The program before the change.
    old: PathBuf,
    /// The program after it.
    new: PathBuf,
    /// What the packets travel over, for the table's title.
    #[arg(long, default_value = "loopback")]
    network: String,
    /// How often each build does everything.
    #[arg(long, default_value_t = 30)]
    rounds: usize,
    /// How long one measurement takes, in seconds. Many short ones say more than a few long ones on a noisy machine.
    #[arg(long, default_value_t = 1)]
    seconds: u64,
}

/// A load on the target's disk.
struct Load {
    way: &'static str,
    request_size: &'static str,
    requests: &'static str,
    connections: &'static str,
}

const fn load(
    way: &'static str,
    request_size: &'static str,
    requests: &'static str,
    connections: &'static str,
) -> Load {
    Load { way, request_size, requests, connections }
}

const LOADS: [Load; 8] = [
    load("read", "1M", "32", "1"),
    load("write", "1M", "32", "1"),
    load("read", "1M", "32", "16"),
    load("write", "1M", "32", "16"),
    load("read", "64K", "64", "16"),
    load("write", "64K", "64", "16"),
    load("randread", "4K", "32", "1"),
    load("randwrite", "4K", "1", "1"),
];

/// The name that both builds present: clients must have one.
const INITIATOR: &str = "iqn.2026-11.example:builds";

/// A build whose target is running.
struct Build {
    program: PathBuf,
    url: String,
    /// Ends with this value.
    _target: Program,
}

impl Build {
    fn serve(program: &Path) -> anyhow::Result<Self> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()?));
        let mut command = Command::new(program);
        command.args(["serve", "--listen", &address.to_string(), "--target", IQN, "--lun", "0=ram:512M"]);
        let target = Program::start(command.args(["--congestion", "cubic"]))?;
        target.wait_until_listening(address, PATIENCE)?;
        let url = format!("iscsi://{address}/{IQN}/0");
        Ok(Self { program: program.to_owned(), url, _target: target })
    }

    /// One run of `ropewalk bench`: bytes per second.
    fn measure(&self, load: &Load, duration: Duration) -> anyhow::Result<f64> {
        let mut command = Command::new(&self.program);
        command.args(["bench", &self.url, "--json", "--congestion", "cubic", "--initiator-name", INITIATOR]);
        command.args(["--rw", load.way, "--request-size", load.request_size, "--requests", load.requests]);
        command.args(["--connections", load.connections, "--runtime", &format!("{}s", duration.as_secs())]);
        if load.way.ends_with("write") {
            command.arg("--destroy-data");
        }
        let (status, lines) = Program::run(&mut command, PATIENCE)?;
        ensure!(status.success(), "{command:?}: {status}: {lines:#?}");
        let summary = summary(&lines)?;
        let number = |name: &str| summary[name].as_f64().with_context(|| format!("no {name:?} in {summary}"));
        Ok(number("bytes")? / number("seconds")?)
    }
}

fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    let builds = [Build::serve(&options.old)?, Build::serve(&options.new)?];
    println!(
        "{network}, {machine}, {date}, measured by the bench of commit {commit}; {rounds} rounds of \
         {seconds} s, CUBIC. Medians in MB/s (10^6 bytes); the ratio of new to old is the median over the rounds, with its confidence interval of 95 %.\n\n\
         | load | old | new | ratio |\n|---|---:|---:|---:|",
        network = options.network,
        machine = machine::describe(),
        date = machine::today(),
        commit = machine::commit(),
        rounds = options.rounds,
        seconds = options.seconds,
    );
    for load in &LOADS {
        println!("{}", row(load, &builds, &options)?);
    }
    Ok(())
}

/// A row of the table. The builds take turns at being first.
fn row(load: &Load, builds: &[Build; 2], options: &Options) -> anyhow::Result<String> {
    let duration = Duration::from_secs(options.seconds);
    let [mut old, mut new] = [Vec::new(), Vec::new()];
    for round in 0..options.rounds {
        if round % 2 == 0 {
            old.push(builds[0].measure(load, duration)?);
            new.push(builds[1].measure(load, duration)?);
        } else {
            new.push(builds[1].measure(load, duration)?);
            old.push(builds[0].measure(load, duration)?);
        }
    }
    let ratios = sample(old.iter().zip(&new).map(|(old, new)| new / old))?;
    let interval = match ratios.median_interval() {
        Some((low, high)) => format!("{low:.2}–{high:.2}"),
        None => "too few rounds".to_owned(),
    };
    let Load { way, request_size, requests, connections } = load;
    let plural = if *connections == "1" { "" } else { "s" };
    Ok(format!(
        "| {way} {request_size} × {requests}, {connections} connection{plural} | {old:.0} | {new:.0} | {ratio:.2} ({interval}) |",
        old = sample(old)?.median() / 1e6,
        new = sample(new)?.median() / 1e6,
        ratio = ratios.median(),
    ))
}

fn sample(values: impl IntoIterator<Item = f64>) -> anyhow::Result<Sample> {
    Sample::of(values).context("no round gave a finite number")
}
