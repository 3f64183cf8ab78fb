//! What a process takes of the machine.

use anyhow::{Context, Result};
use serde::Serialize;
use std::fs;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A sample of one process.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Usage {
    /// The memory that is in RAM (`VmRSS`).
    pub rss_bytes: u64,
    pub threads: u64,
    pub descriptors: u64,
}

impl Usage {
    /// Of the process of this id.
    ///
    /// # Errors
    /// It has ended.
    pub fn of(process: u32) -> Result<Self> {
        let status = fs::read_to_string(format!("/proc/{process}/status"))?;
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            let number = line.and_then(|line| line.split_ascii_whitespace().next()?.parse::<u64>().ok());
            number.with_context(|| format!("/proc/{process}/status has no {name}"))
        };
        Ok(Self {
            rss_bytes: field("VmRSS:")? << 10,
            threads: field("Threads:")?,
            descriptors: fs::read_dir(format!("/proc/{process}/fd"))?.count() as u64,
        })
    }
}

/// What all threads of a process together have waited for a processor, while they had something to do.
///
/// # Errors
/// It has ended.
pub fn processor_wait(process: u32) -> Result<Duration> {
    let mut waited = Duration::ZERO;
    for thread in fs::read_dir(format!("/proc/{process}/task"))? {
        // A thread may have ended; a kernel without these counters says nothing.
        let times = fs::read_to_string(thread?.path().join("schedstat")).unwrap_or_default();
        let nanoseconds = times.split_ascii_whitespace().nth(1).and_then(|wait| wait.parse().ok());
        waited += Duration::from_nanos(nanoseconds.unwrap_or(0));
    }
    Ok(waited)
}

/// Both processes at one moment.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    pub at: Instant,
    pub target: Usage,
    pub clients: Usage,
}

/// Takes a sample each second until it is asked for them.
pub struct Sampler {
    over: mpsc::Sender<()>,
    samples: JoinHandle<Vec<Sample>>,
}

const INTERVAL: Duration = Duration::from_secs(1);

impl Sampler {
    /// Begins to watch this process, and the target of the given one.
    pub fn start(target: u32) -> Self {
        let (over, told) = mpsc::channel::<()>();
        let samples = std::thread::spawn(move || {
            let mut samples = Vec::new();
            loop {
                // A target that ends is noticed by whoever stopped it.
                if let (Ok(target), Ok(clients)) = (Usage::of(target), Usage::of(std::process::id())) {
                    samples.push(Sample { at: Instant::now(), target, clients });
                }
                match told.recv_timeout(INTERVAL) {
                    Err(RecvTimeoutError::Timeout) => {}
                    Ok(()) | Err(RecvTimeoutError::Disconnected) => return samples,
                }
            }
        });
        Self { over, samples }
    }

    /// Ends the sampling and returns every sample.
    pub fn finish(self) -> Vec<Sample> {
        drop(self.over);
        self.samples.join().unwrap_or_default()
    }
}
