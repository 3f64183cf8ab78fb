//! Measures split sessions, and threads for each direction, beside ordinary connections where the processor is the limit
//! (paper 001, figures 5 to 7): both ends on this machine's loopback interface, each on one core.
//!
//! Started by `benches/lanes`.

#![forbid(unsafe_code)]

mod effort;
mod machine;
mod measure;

use anyhow::{Context, ensure};
use clap::Parser;
use effort::{Asked, Effort};
use lab::Namespace;
use measure::{GIB, Measurement, moved, pin, with_spread};
use observe::statistics::Sample;
use ropewalk_interop::{Ropewalk, binary};
use std::fmt::Write;
use std::fs;
use std::process::Command;

/// Measure lanes and threads; write a report.
#[derive(Debug, Parser)]
struct Options {
    #[command(flatten)]
    asked: Asked,
}

/// A way to connect.
struct Arm {
    name: &'static str,
    connections: u16,
    lanes: &'static str,
    threads: &'static str,
}

const fn arm(name: &'static str, connections: u16, lanes: &'static str, threads: &'static str) -> Arm {
    Arm { name, connections, lanes, threads }
}

/// The first is what the others are compared with. Paper 001 compared it with the fourth.
const ARMS: [Arm; 7] = [
    arm("one connection", 1, "whole", "shared"),
    arm("one connection, threads", 1, "whole", "per-lane"),
    arm("split", 1, "split", "shared"),
    arm("split, threads", 1, "split", "per-lane"),
    arm("split3", 1, "split3", "shared"),
    arm("two connections", 2, "whole", "shared"),
    arm("two connections, threads", 2, "whole", "per-lane"),
];

/// The cores of the target and of the client.
#[derive(Clone, Copy)]
struct Cores {
    target: &'static [usize],
    client: &'static [usize],
}

const ONE_EACH: Cores = Cores { target: &[0], client: &[1] };
const BOTH: Cores = Cores { target: &[0, 1], client: &[0, 1] };

/// What the client does.
#[derive(Clone, Copy)]
struct Work {
    way: &'static str,
    request_bytes: u32,
    depth: u32,
    seconds: u64,
}

/// The MTUs of the paper's frames.
const MTUS: [u32; 3] = [1500, 3000, 9000];
/// The paper's effective queue.
const DEPTH: u32 = 8;
const DEPTHS: [u32; 6] = [1, 2, 4, 8, 16, 32];
const BULK_BYTES: u32 = 128 << 10;
const SMALL_BYTES: u32 = 1 << 10;
const DISK: &str = "0=ram:256M";
const CONGESTION: &str = "cubic";

fn main() -> anyhow::Result<()> {
    let Options { asked } = Options::parse();
    let effort = asked.effort(2);
    // Its children are inside, too.
    let report = Namespace::new()?.run(|| measure(effort))??;
    let file = asked.report.unwrap_or_else(|| "benches/LANES.md".into());
    fs::write(&file, report).with_context(|| format!("writing {}", file.display()))
}

fn measure(effort: Effort) -> anyhow::Result<String> {
    let mut report = format!(
        "# Lanes and threads where the processor is the limit\n\n\
         Written by `benches/lanes`, built from commit {}, on {}: {}. Medians of {} rounds of {} s. In each round the arms \
         take turns, and each round begins with another one. Ratios are to one connection in the same round, in brackets \
         the smallest and the largest. Both ends are on the loopback interface of a network namespace, {CONGESTION}, target \
         `ram:`. On loopback the sender's core also does the kernel's work for the receiver. The shares of cores include \
         the login.\n",
        machine::commit(),
        machine::today(),
        machine::describe(),
        effort.rounds,
        effort.duration.as_secs(),
    );
    for mtu in MTUS {
        set_mtu(mtu, Offloads::Off)?;
        report += &bulk(
            effort,
            ONE_EACH,
            &format!("Frames of {mtu} bytes without offloads, each end on a core of its own"),
        )?;
    }
    report += &small(effort)?;
    set_mtu(65_536, Offloads::On)?;
    report += &bulk(effort, BOTH, "Frames of 64 KiB with segmentation offloads, both ends on both cores")?;
    Ok(report)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Offloads {
    On,
    Off,
}

fn set_mtu(mtu: u32, offloads: Offloads) -> anyhow::Result<()> {
    let segments = if offloads == Offloads::On { "65535" } else { "1" };
    let mut command = Command::new("ip");
    command.args(["link", "set", "lo", "up", "mtu", &mtu.to_string(), "gso_max_segs", segments]);
    ensure!(command.status().context("no ip(8): install iproute2")?.success(), "{command:?} failed");
    Ok(())
}

/// Requests of 128 KiB, reading and writing (figures 5 and 6).
fn bulk(effort: Effort, cores: Cores, title: &str) -> anyhow::Result<String> {
    let mut text = format!(
        "\n## {title}\n\nSequential requests of 128 KiB, {DEPTH} at a time.\n\n\
         | I/O | connections | MB/s | ratio | target's cores | client's cores |\n|---|---|---:|---:|---:|---:|\n"
    );
    for way in ["read", "write"] {
        let work = Work { way, request_bytes: BULK_BYTES, depth: DEPTH, seconds: effort.duration.as_secs() };
        let all = rounds(effort.rounds, work, cores)?;
        for (arm, runs) in ARMS.iter().zip(&all) {
            let median = |of: fn(&Measurement) -> f64| Ok::<_, anyhow::Error>(rounds_of(runs, of)?.median());
            let ratios =
                runs.iter().zip(&all[0]).map(|(run, one)| run.bytes_per_second / one.bytes_per_second);
            writeln!(
                text,
                "| {way} | {} | {:.0} | {} | {:.2} | {:.2} |",
                arm.name,
                median(|run| run.bytes_per_second / 1e6)?,
                with_spread(&measure::rounds(ratios)?),
                median(|run| run.target_seconds_per_gib * run.bytes_per_second / GIB)?,
                median(|run| run.client_load)?,
            )?;
        }
    }
    println!("{text}");
    Ok(text)
}

/// Requests of 1 KiB (figure 7).
fn small(effort: Effort) -> anyhow::Result<String> {
    set_mtu(1500, Offloads::Off)?;
    let mut text = String::from(
        "\n## Small requests, each end on a core of its own\n\nReads of 1 KiB, thousands per second, frames of 1500 bytes. The \
         columns are requests outstanding.\n\n| connections |",
    );
    DEPTHS.iter().try_for_each(|depth| write!(text, " {depth} |"))?;
    writeln!(text, "\n|---|{}", "---:|".repeat(DEPTHS.len()))?;
    let by_depth: Vec<Vec<Vec<Measurement>>> = DEPTHS
        .iter()
        .map(|depth| {
            let work = Work {
                way: "read",
                request_bytes: SMALL_BYTES,
                depth: *depth,
                seconds: effort.duration.as_secs(),
            };
            rounds(effort.rounds, work, ONE_EACH)
        })
        .collect::<anyhow::Result<_>>()?;
    for (at, arm) in ARMS.iter().enumerate() {
        write!(text, "| {} |", arm.name)?;
        for runs in &by_depth {
            let rates = rounds_of(&runs[at], |run| run.bytes_per_second / f64::from(SMALL_BYTES) / 1e3)?;
            write!(text, " {:.1} ({:.1}–{:.1}) |", rates.median(), rates.min(), rates.max())?;
        }
        writeln!(text)?;
    }
    println!("{text}");
    Ok(text)
}

fn rounds_of(runs: &[Measurement], of: impl Fn(&Measurement) -> f64) -> anyhow::Result<Sample> {
    measure::rounds(runs.iter().map(of))
}

/// The runs of each arm.
fn rounds(rounds: usize, work: Work, cores: Cores) -> anyhow::Result<Vec<Vec<Measurement>>> {
    let serve = |threads: &str| {
        let server = Ropewalk::serve_with(&[DISK], 1, &["--threads", threads, "--congestion", CONGESTION])?;
        pin(&server.program, cores.target)?;
        anyhow::Ok(server)
    };
    let servers = [("shared", serve("shared")?), ("per-lane", serve("per-lane")?)];
    let mut all: Vec<Vec<Measurement>> = ARMS.iter().map(|_| Vec::new()).collect();
    for round in 0..rounds {
        for at in (0..ARMS.len()).map(|turn| (round + turn) % ARMS.len()) {
            let (arm, runs) = (&ARMS[at], &mut all[at]);
            let server = servers.iter().find(|(threads, _)| *threads == arm.threads);
            let (_, server) = server.context("no such threads")?;
            runs.push(run(arm, server, work, cores.client)?);
        }
    }
    Ok(all)
}

fn run(arm: &Arm, server: &Ropewalk, work: Work, cores: &[usize]) -> anyhow::Result<Measurement> {
    let mut command = Command::new(binary()?);
    command.args(["bench", &server.url(0), "--json", "--rw", work.way]);
    command.args(["--request-size", &work.request_bytes.to_string(), "--requests", &work.depth.to_string()]);
    command.args(["--runtime", &format!("{}s", work.seconds), "--congestion", CONGESTION]);
    command.args(["--connections", &arm.connections.to_string(), "--lanes", arm.lanes]);
    command.args(["--threads", arm.threads, "--destroy-data"]);
    measure::run(&server.program, cores, &command, moved)
}
