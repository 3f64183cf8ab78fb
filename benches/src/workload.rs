//! The workloads: libiscsi's `iscsi-perf` reads, QEMU's `qemu-img bench` writes.

use crate::CLIENT_CORE;
use crate::contender::Contender;
use crate::measure::{Measurement, run};
use ropewalk_interop::Line;
use std::fmt;
use std::process::Command;
use std::time::Duration;

/// One cell of the table.
#[derive(Clone, Copy, Debug)]
pub struct Workload {
    /// Read or write.
    pub operation: Operation,
    /// Bytes of one request.
    pub request_bytes: u64,
    /// Requests that are outstanding at a time.
    pub requests: u64,
}

/// The direction of the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// From the target.
    Read,
    /// To the target.
    Write,
}

/// Request lengths in bytes and numbers of outstanding requests: small and large requests alone, where latency limits
/// the speed; small ones in a queue that `iscsi-perf` can just keep full; and bulk.
const SHAPES: [(u64, u64); 4] = [(4 << 10, 1), (4 << 10, 8), (1 << 20, 1), (1 << 20, 32)];

/// `iscsi-perf` counts requests in blocks of the disk.
const BLOCK_BYTES: u64 = 512;

/// The most bytes that a first run writes, in about a tenth of a second, to find how many fit the measurement's time.
const FIRST_BYTES: u64 = 128 << 20;
const FIRST_WRITES_MAX: u64 = 2000;

impl Workload {
    /// Every shape of requests, reading and writing.
    pub fn all() -> Vec<Self> {
        let cells = [Operation::Read, Operation::Write].into_iter().flat_map(|operation| {
            SHAPES.map(|(request_bytes, requests)| Self { operation, request_bytes, requests })
        });
        cells.collect()
    }

    /// Runs the workload once, for about `duration`.
    pub fn run(&self, contender: &Contender, duration: Duration) -> anyhow::Result<Measurement> {
        match self.operation {
            Operation::Read => self.read(contender, duration),
            Operation::Write => {
                let first_writes = (FIRST_BYTES / self.request_bytes).min(FIRST_WRITES_MAX);
                let first = self.write(contender, first_writes)?;
                let writes = first.bytes_per_second * duration.as_secs_f64() / self.request_bytes as f64;
                // The count is a whole number of at least one.
                self.write(contender, format!("{:.0}", writes.max(1.0)).parse()?)
            }
        }
    }

    fn read(&self, contender: &Contender, duration: Duration) -> anyhow::Result<Measurement> {
        let mut client = Command::new("iscsi-perf");
        client.arg("-t").arg(duration.as_secs().to_string());
        client.arg("-m").arg(self.requests.to_string());
        client.arg("-b").arg((self.request_bytes / BLOCK_BYTES).to_string());
        run(contender.program(), &[CLIENT_CORE], client.arg(&contender.url), |lines| {
            let per_second = last_number_after(lines, "iops average ")?;
            let seconds = duration.as_secs_f64();
            Some((per_second * self.request_bytes as f64 * seconds, seconds))
        })
    }

    fn write(&self, contender: &Contender, writes: u64) -> anyhow::Result<Measurement> {
        let mut client = Command::new("qemu-img");
        client.args(["bench", "-w", "-f", "raw", "-t", "none", "-c", &writes.to_string()]);
        client.args(["-d", &self.requests.to_string(), "-s", &self.request_bytes.to_string()]);
        run(contender.program(), &[CLIENT_CORE], client.arg(&contender.url), |lines| {
            let seconds = last_number_after(lines, "completed in ")?;
            Some(((writes * self.request_bytes) as f64, seconds))
        })
    }
}

/// The number after the last occurrence of a text. Programs rewrite their line with carriage returns.
fn last_number_after(lines: &[Line], label: &str) -> Option<f64> {
    let rest = lines.iter().rev().find_map(|line| line.text.rsplit_once(label))?.1;
    let end = rest.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(rest.len());
    rest[..end].trim_end_matches('.').parse().ok()
}

impl fmt::Display for Workload {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let operation = match self.operation {
            Operation::Read => "read",
            Operation::Write => "write",
        };
        let (amount, unit) = match self.request_bytes >> 20 {
            0 => (self.request_bytes >> 10, "K"),
            mebibytes => (mebibytes, "M"),
        };
        write!(formatter, "{operation} {amount}{unit} × {}", self.requests)
    }
}
