//! fio, and what it measures.

use anyhow::{Context, ensure};
use serde_json::Value;
use std::fmt;
use std::process::Command;
use std::time::Duration;

/// What fio does.
#[derive(Clone, Copy, Debug)]
pub struct Job {
    /// Its name for the pattern.
    pub rw: &'static str,
    pub block_bytes: u32,
    pub depth: u32,
}

impl Job {
    /// So many operations per second in the unit of reports: megabytes or thousands of operations.
    pub fn describe(self, per_second: f64) -> String {
        if self.block_bytes >= 128 << 10 {
            format!("{:.0}", per_second * f64::from(self.block_bytes) / 1e6)
        } else {
            format!("{:.1}", per_second / 1e3)
        }
    }
}

impl fmt::Display for Job {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {} KiB, depth {}", self.rw, self.block_bytes >> 10, self.depth)
    }
}

/// Runs a job on a target, which fio's own options describe. Returns the operations per second.
pub fn run(job: Job, target: &[String], duration: Duration) -> anyhow::Result<f64> {
    let seconds = duration.as_secs();
    let output = Command::new("fio")
        .args(["--name=job", "--output-format=json", "--time_based", "--randrepeat=0", "--norandommap"])
        .args(target)
        .arg(format!("--rw={}", job.rw))
        .arg(format!("--bs={}", job.block_bytes))
        .arg(format!("--iodepth={}", job.depth))
        .arg(format!("--runtime={seconds}"))
        .output()
        .context("cannot start fio: install Debian's package fio")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "fio failed: {said}");
    // Its engine for NBD says something first.
    let begin = output.stdout.iter().position(|byte| *byte == b'{').context("fio made no report")?;
    let report: Value = serde_json::from_slice(&output.stdout[begin..]).context("fio's report")?;
    let direction = if job.rw.ends_with("read") { "read" } else { "write" };
    report["jobs"][0][direction]["iops"].as_f64().context("fio's report has no rate")
}
