//! Many seeds on several threads.

use indicatif::{ProgressBar, ProgressStyle};
use ropewalk_sim::fault::FaultCounts;
use ropewalk_sim::reached::Reached;
use ropewalk_sim::{CONNECTIONS_MIN, OPERATIONS, Outcome, Reduction, Scenario, run};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Faults of one seed, at least.
const FAULTS_MIN: u64 = 5;

/// A campaign of this many seeds must take every way through the protocol ([`Reached`]); a shorter one need not.
const CAMPAIGN_SEEDS_MIN: u64 = 1000;

/// Lines of progress that a log gets in place of a progress bar.
const LOG_LINES: u64 = 20;

/// What came of all seeds.
#[derive(Debug, Default)]
pub struct Summary {
    /// Seeds that were run.
    pub seeds: u64,
    /// Operations that the hosts began.
    pub operations: u64,
    /// SCSI commands that the hosts sent, those sent again included.
    pub commands: u64,
    /// PDUs of both sides.
    pub pdus: u64,
    /// Blocks that hosts read, each compared with its history.
    pub blocks_read: u64,
    /// Commands sent again.
    pub retries: u64,
    /// Task management functions.
    pub functions: u64,
    /// What went wrong, by kind.
    pub faults: FaultCounts,
    /// Ways that were taken.
    pub reached: Reached,
    /// Seeds that failed, in the order of their numbers.
    pub failures: Vec<Outcome>,
    /// Seeds that passed but were too easy.
    pub weak: Vec<u64>,
    /// How long the seeds took on their own clocks.
    pub virtual_time: Duration,
    /// How long it took on the clock on the wall.
    pub elapsed: Duration,
    /// The time that processors spent on it, on all threads.
    pub processor_time: Duration,
    /// Threads that ran seeds at the same time.
    pub threads: usize,
}

impl Summary {
    /// Whether no seed was too easy, and a whole campaign took every way.
    pub fn proves_enough(&self, reduction: &Reduction) -> bool {
        let is_campaign = self.seeds >= CAMPAIGN_SEEDS_MIN && *reduction == Reduction::default();
        self.weak.is_empty() && !(is_campaign && self.reached.never().next().is_some())
    }

    fn add(&mut self, outcome: Outcome, whole: bool) {
        self.seeds += 1;
        self.operations += outcome.tally.operations;
        self.commands += outcome.commands;
        self.pdus += outcome.pdus;
        self.blocks_read += outcome.tally.blocks_read;
        self.retries += outcome.tally.retries;
        self.functions += outcome.tally.functions;
        self.faults.add(&outcome.faults);
        self.reached.add(&outcome.reached);
        self.virtual_time += outcome.virtual_time;
        let is_weak = outcome.tally.operations < OPERATIONS.into()
            || outcome.connections_wanted < CONNECTIONS_MIN.into()
            || outcome.faults.total() < FAULTS_MIN;
        if outcome.violation.is_some() {
            self.failures.push(outcome);
        } else if whole && is_weak {
            self.weak.push(outcome.seed);
        }
    }
}

/// Runs `seeds`, each by itself; all of them, or until one fails.
pub fn run_all(seeds: Range<u64>, threads: usize, reduction: &Reduction, until_failure: bool) -> Summary {
    let (started, processor_time) = (Instant::now(), processor_time());
    let progress = Progress::of(seeds.end - seeds.start);
    let next = AtomicU64::new(seeds.start);
    let summary = Mutex::new(Summary { threads, ..Summary::default() });
    let whole = *reduction == Reduction::default();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds.end {
                        return;
                    }
                    let outcome = run(Scenario::of(seed, reduction), false);
                    let mut summary = summary.lock().unwrap_or_else(PoisonError::into_inner);
                    let failed = outcome.violation.is_some();
                    summary.add(outcome, whole);
                    progress.tell(&summary, failed.then_some(seed));
                    if failed && until_failure {
                        next.store(seeds.end, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    progress.0.finish_and_clear();
    let mut summary = summary.into_inner().unwrap_or_else(PoisonError::into_inner);
    summary.failures.sort_by_key(|outcome| outcome.seed);
    summary.weak.sort_unstable();
    summary.elapsed = started.elapsed();
    summary.processor_time = self::processor_time().saturating_sub(processor_time);
    summary
}

/// The time that processors have spent on this process; nothing where the system does not say.
fn processor_time() -> Duration {
    /// The unit of the file, whatever the kernel's own clock is (proc(5)).
    const TICK: Duration = Duration::from_millis(10);
    /// The user's time and the system's, counted from the name, which ends with the last parenthesis.
    const FIELDS: Range<usize> = 11..13;
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields).split_whitespace();
    let ticks = fields.skip(FIELDS.start).take(FIELDS.len()).filter_map(|field| field.parse::<u32>().ok());
    TICK * ticks.sum()
}

/// How far a campaign has come: a bar on a terminal, a line now and then elsewhere.
struct Progress(ProgressBar);

impl Progress {
    fn of(seeds: u64) -> Self {
        let bar = ProgressBar::new(seeds);
        let style = ProgressStyle::with_template("{bar:40} {pos}/{len} seeds, {per_sec}, {eta} left {msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        Self(bar)
    }

    fn tell(&self, summary: &Summary, failed: Option<u64>) {
        let Self(bar) = self;
        bar.inc(1);
        if !bar.is_hidden() {
            if failed.is_some() {
                bar.set_message(format!("{} failed", summary.failures.len()));
            }
            return;
        }
        let all = bar.length().unwrap_or_default();
        if let Some(seed) = failed {
            eprintln!("seed {seed} failed");
        }
        if all >= LOG_LINES && summary.seeds.is_multiple_of(all / LOG_LINES) {
            eprintln!("{}/{all} seeds, {} failed", summary.seeds, summary.failures.len());
        }
    }
}
