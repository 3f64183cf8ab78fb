//! One run of a client against a target, with the processor time of both.

use anyhow::{Context, ensure};
use observe::statistics::Sample;
use ropewalk_interop::{Line, PATIENCE, Program, summary};
use rustix::process::Pid;
use rustix::thread::CpuSet;
use std::fs;
use std::process::Command;
use std::time::Instant;

/// The result of one run.
#[derive(Clone, Copy, Debug)]
pub struct Measurement {
    /// Payload moved per second, in bytes.
    pub bytes_per_second: f64,
    /// Processor seconds of the target for each GiB moved.
    pub target_seconds_per_gib: f64,
    /// The cores that the client kept busy.
    pub client_load: f64,
}

pub const GIB: f64 = (1u64 << 30) as f64;

/// Runs a pinned client to its end. `bytes` parses the client's output for the number of bytes moved and of seconds.
pub fn run(
    target: &Program,
    cores: &[usize],
    client: &Command,
    bytes: impl Fn(&[Line]) -> Option<(f64, f64)>,
) -> anyhow::Result<Measurement> {
    let cores: Vec<String> = cores.iter().map(usize::to_string).collect();
    let mut pinned = Command::new("taskset");
    pinned.arg("-c").arg(cores.join(",")).arg(client.get_program()).args(client.get_args());
    let (before, started) = (target.cpu_seconds()?, Instant::now());
    let mut client = Program::start(&mut pinned)?;
    let status = client.finish(PATIENCE)?;
    let (after, elapsed) = (target.cpu_seconds()?, started.elapsed().as_secs_f64());
    let lines = client.lines();
    ensure!(status.success(), "{pinned:?}: {status}: {lines:#?}");
    let (bytes, seconds) = bytes(&lines).with_context(|| format!("no result in {lines:#?}"))?;
    Ok(Measurement {
        bytes_per_second: bytes / seconds,
        target_seconds_per_gib: (after - before) / (bytes / GIB),
        client_load: client.cpu_seconds()? / elapsed,
    })
}

/// The bytes moved and the seconds that `ropewalk bench --json` reports.
pub fn moved(lines: &[Line]) -> Option<(f64, f64)> {
    let summary = summary(lines).ok()?;
    Some((summary["bytes"].as_f64()?, summary["seconds"].as_f64()?))
}

/// The numbers of all rounds, as a sample.
pub fn rounds(numbers: impl IntoIterator<Item = f64>) -> anyhow::Result<Sample> {
    Sample::of(numbers).context("no round gave a finite number")
}

/// A sample of ratios for the report: the median, and in brackets the smallest and the largest.
pub fn with_spread(ratios: &Sample) -> String {
    format!("{:.2} ({:.2}–{:.2})", ratios.median(), ratios.min(), ratios.max())
}

/// Confines every thread of a process, and those that it starts later, to these cores.
pub fn pin(program: &Program, cores: &[usize]) -> anyhow::Result<()> {
    for thread in fs::read_dir(format!("/proc/{}/task", program.pid()))? {
        let id = thread?.file_name().to_string_lossy().parse()?;
        pin_thread(Pid::from_raw(id), cores)?;
    }
    Ok(())
}

/// Confines a thread, without a number the calling one.
pub fn pin_thread(thread: Option<Pid>, cores: &[usize]) -> anyhow::Result<()> {
    let mut set = CpuSet::new();
    cores.iter().for_each(|core| set.set(*core));
    Ok(rustix::thread::sched_setaffinity(thread, &set)?)
}
