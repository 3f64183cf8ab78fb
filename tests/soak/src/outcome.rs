//! What a run came to.

use crate::usage::{Sample, Usage};
use comfy_table::Table;
use serde::Serialize;
use std::fmt;
use std::time::Instant;

/// Everything that is reported.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// What was asked for.
    pub sessions: usize,
    /// Connections, of all sessions together.
    pub connections: usize,
    /// For how long there was load.
    pub seconds: f64,
    /// How long it took until all had logged in.
    pub login_seconds: f64,
    /// Commands that were answered under load.
    pub commands: u64,
    /// Times from a client's call to its answer, breaks included.
    pub latency: Latency,
    /// Connections that the relay broke.
    pub broken: u64,
    /// Of these, those whose commands all went on over others of their session.
    pub recovered: u64,
    /// Sessions that were lost and came back.
    pub reinstatements: u64,
    /// Commands that were sent again in a session that came back.
    pub retries: u64,
    /// Clients that were told of an error.
    pub errors: u64,
    /// Blocks that did not hold what they should.
    pub mismatches: u64,
    /// The first of errors and mismatches.
    pub first_errors: Vec<String>,
    /// Flushes that were told that the target had been started anew.
    pub restarts_told: u64,
    /// Workers that had no answer long after the load was over.
    pub stuck: usize,
    /// Sessions that did not have all their connections again in the end.
    pub broken_sessions: usize,
    /// The memory of the target's process.
    pub target: Memory,
    /// That of all clients, and the relay.
    pub clients: Memory,
    /// Processor time of the target under load, since it was last started.
    pub target_cpu_seconds: f64,
    /// What it waited for a processor meanwhile: latency that says more of the machine than of the target.
    pub target_cpu_wait_seconds: f64,
    /// How the target stopped, each time.
    pub stops: Vec<Stop>,
    /// Errors that the target logged.
    pub target_log: Vec<String>,
}

/// Percentiles, in milliseconds.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Latency {
    /// Half of all.
    pub p50_ms: f64,
    /// All but one in a hundred.
    pub p99_ms: f64,
    /// The longest of all.
    pub max_ms: f64,
}

/// How a process's memory, threads and descriptors fared.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Memory {
    /// Before the first session.
    pub empty: Usage,
    /// All logged in, nothing asked for yet.
    pub idle: Usage,
    /// Median of the second quarter of the load.
    pub second_quarter_bytes: u64,
    /// Median of its last quarter.
    pub last_quarter_bytes: u64,
    /// The most of each.
    pub most: Usage,
}

/// How the target stopped.
#[derive(Clone, Debug, Serialize)]
pub struct Stop {
    /// How it was told to.
    pub order: &'static str,
    /// How long it took.
    pub seconds: f64,
    /// What it ended with.
    pub exit_status: Option<i32>,
    /// Success when it stopped in order; not, when it was made to stop at once.
    pub is_clean: bool,
    /// Sessions that did not leave when they were asked to.
    pub sessions_cut: usize,
}

/// What should not have been.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Complaint(String);

impl fmt::Display for Complaint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// A process may have this much more in the last quarter of the load than in the second: allocators are never quite at
/// rest.
const GROWTH_MAX: f64 = 0.10;

/// Growth that says nothing: the memory of a process that has hardly any.
const GROWTH_IGNORED_BYTES: u64 = 16 << 20;

impl Memory {
    /// What samples tell of the load, of which they were taken from `begin` to `end`.
    pub(crate) fn under_load(
        &mut self,
        samples: &[Sample],
        of: impl Fn(&Sample) -> Usage,
        begin: Instant,
        end: Instant,
    ) {
        let quarter = (end - begin) / 4;
        let within = |from: Instant, to: Instant| {
            samples.iter().filter(move |sample| (from..=to).contains(&sample.at)).map(&of)
        };
        self.second_quarter_bytes = median(within(begin + quarter, begin + 2 * quarter));
        self.last_quarter_bytes = median(within(begin + 3 * quarter, end));
        for usage in within(begin, end) {
            self.most.rss_bytes = self.most.rss_bytes.max(usage.rss_bytes);
            self.most.threads = self.most.threads.max(usage.threads);
            self.most.descriptors = self.most.descriptors.max(usage.descriptors);
        }
    }

    fn grows(&self) -> bool {
        let growth_bytes = self.last_quarter_bytes.saturating_sub(self.second_quarter_bytes);
        growth_bytes > GROWTH_IGNORED_BYTES
            && growth_bytes as f64 > self.second_quarter_bytes as f64 * GROWTH_MAX
    }
}

fn median(usages: impl Iterator<Item = Usage>) -> u64 {
    let mut bytes: Vec<u64> = usages.map(|usage| usage.rss_bytes).collect();
    bytes.sort_unstable();
    bytes.get(bytes.len() / 2).copied().unwrap_or(0)
}

impl Outcome {
    /// What should not have been; nothing, if all is well.
    #[must_use]
    pub fn complaints(&self) -> Vec<Complaint> {
        let restarts = self.stops.len().saturating_sub(1);
        let grows = |memory: &Memory| restarts == 0 && memory.grows();
        let found = [
            (self.commands == 0, "no command was answered".to_owned()),
            (self.errors > 0, format!("clients were told of {} errors", self.errors)),
            (self.mismatches > 0, format!("{} blocks held what they should not", self.mismatches)),
            (restarts == 0 && self.restarts_told > 0, format!("{} flushes failed", self.restarts_told)),
            (self.stuck > 0, format!("{} commands were not answered", self.stuck)),
            (self.broken_sessions > 0, format!("{} sessions did not recover", self.broken_sessions)),
            (grows(&self.target), format!("the target's memory grows: {}", growth(&self.target))),
            (grows(&self.clients), format!("the clients' memory grows: {}", growth(&self.clients))),
            (!self.target_log.is_empty(), "the target logged errors".to_owned()),
        ];
        let found = found.into_iter().filter(|(is_so, _)| *is_so).map(|(_, text)| Complaint(text));
        let unclean = self.stops.iter().filter(|stop| !stop.is_clean);
        let unclean = unclean.map(|stop| Complaint(format!("{} was not obeyed as it should be", stop.order)));
        let details = self.first_errors.iter().chain(&self.target_log).cloned().map(Complaint);
        found.chain(unclean).chain(details).collect()
    }

    /// The outcome as a table for people.
    #[must_use]
    pub fn table(&self) -> String {
        let mut table = Table::new();
        table.load_style(comfy_table::presets::NOTHING);
        let mut row = |name: &str, value: String| {
            table.add_row([name.to_owned(), value]);
        };
        row("sessions, connections", format!("{}, {}", self.sessions, self.connections));
        row("logged in after", format!("{:.1} s", self.login_seconds));
        row("commands", format!("{} in {:.0} s", self.commands, self.seconds));
        let Latency { p50_ms, p99_ms, max_ms } = self.latency;
        row("latency p50, p99, max", format!("{p50_ms:.1}, {p99_ms:.1}, {max_ms:.0} ms"));
        row("connections broken, recovered", format!("{}, {}", self.broken, self.recovered));
        row("sessions reinstated", self.reinstatements.to_string());
        row("errors, mismatches", format!("{}, {}", self.errors, self.mismatches));
        for (name, memory) in [("target", &self.target), ("clients and relay", &self.clients)] {
            row(&format!("{name}: RSS empty, idle"), rss(&[memory.empty.rss_bytes, memory.idle.rss_bytes]));
            let loaded = [memory.second_quarter_bytes, memory.last_quarter_bytes, memory.most.rss_bytes];
            row(&format!("{name}: RSS 2nd, 4th quarter, most"), rss(&loaded));
            let Usage { threads, descriptors, .. } = memory.most;
            row(&format!("{name}: threads, descriptors"), format!("{threads}, {descriptors}"));
        }
        let (took, waited) = (self.target_cpu_seconds, self.target_cpu_wait_seconds);
        row("target: processor time, waits for it", format!("{took:.1}, {waited:.1} s"));
        for Stop { order, seconds, exit_status, sessions_cut, .. } in &self.stops {
            let status = exit_status.map_or("a signal".to_owned(), |status| status.to_string());
            row(order, format!("{seconds:.2} s, exit status {status}, {sessions_cut} sessions cut off"));
        }
        table.to_string()
    }
}

fn growth(memory: &Memory) -> String {
    rss(&[memory.second_quarter_bytes, memory.last_quarter_bytes])
}

fn rss(bytes: &[u64]) -> String {
    let mebibytes: Vec<String> = bytes.iter().map(|bytes| (bytes >> 20).to_string()).collect();
    format!("{} MiB", mebibytes.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// What is seen of a process that takes so many MiB, one after the other, a second each.
    fn memory(mebibytes: impl IntoIterator<Item = u64>) -> Memory {
        let begin = Instant::now();
        let sample = |(at, mebibytes): (u32, u64)| {
            let usage = Usage { rss_bytes: mebibytes << 20, ..Usage::default() };
            Sample { at: begin + Duration::from_secs(1) * at, target: usage, clients: usage }
        };
        let samples: Vec<Sample> = (0..).zip(mebibytes).map(sample).collect();
        let end = begin + Duration::from_secs(samples.len() as u64);
        let mut memory = Memory::default();
        memory.under_load(&samples, |sample| sample.target, begin, end);
        memory
    }

    #[test]
    fn memory_that_grows_all_the_time_grows() {
        assert!(memory((0..40).map(|second| 300 + 4 * second)).grows());
    }

    #[test]
    fn memory_that_grows_only_at_first_or_for_a_moment_does_not() {
        let warm = (0..40).map(|second| 300 + 10 * second.min(9));
        assert!(!memory(warm).grows());
        assert!(!memory((0..40).map(|second| if second == 35 { 900 } else { 300 })).grows());
    }
}
