//! Progress of a series of runs: a bar, and a line for each finished run.

use crate::output::{self, outln};
use crate::sizes;
use ::lab::{Plan, Quantity, RunRecord, SeriesEvent};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

const TEMPLATE: &str = "[{bar:28}] {msg}";

/// Shared by the thread that runs and the thread that redraws.
#[derive(Clone)]
pub(super) struct RunProgress {
    bar: ProgressBar,
    plan: Arc<Plan>,
    json: bool,
    state: Arc<Mutex<State>>,
}

#[derive(Clone, Copy)]
struct State {
    /// The estimated time left, including the current run.
    remaining: Duration,
    /// The current run, its attempt, its start and its estimated time.
    current: Option<(usize, u32, Instant, Duration)>,
}

impl RunProgress {
    pub(super) fn new(plan: Arc<Plan>, remaining: Duration, json: bool) -> Self {
        let bar = ProgressBar::new(milliseconds(remaining));
        if let Ok(style) = ProgressStyle::with_template(TEMPLATE) {
            bar.set_style(style.progress_chars("=> "));
        }
        Self { bar, plan, json, state: Arc::new(Mutex::new(State { remaining, current: None })) }
    }

    pub(super) fn tell(&self, event: SeriesEvent<'_>) {
        match event {
            SeriesEvent::Begins { run, attempt, estimate } => {
                self.change(|state| {
                    // The estimate did not include another attempt.
                    if attempt > 1 {
                        state.remaining += estimate;
                    }
                    state.current = Some((run, attempt, Instant::now(), estimate));
                });
            }
            SeriesEvent::Ended(record) => {
                self.change(|state| {
                    let estimate = state.current.take().map_or(Duration::ZERO, |(.., estimate)| estimate);
                    state.remaining = state.remaining.saturating_sub(estimate);
                });
                self.bar.suspend(|| self.print(record));
            }
        }
    }

    /// Draws the bar in its current state.
    pub(super) fn draw(&self) {
        let State { remaining, current } = self.change(|state| *state);
        let Some((run, attempt, since, estimate)) = current else { return };
        let left = remaining.saturating_sub(since.elapsed().min(estimate));
        let all = self.bar.length().unwrap_or(0).max(milliseconds(remaining));
        self.bar.set_length(all);
        self.bar.set_position(all.saturating_sub(milliseconds(left)));
        let again = if attempt > 1 { format!(", attempt {attempt}") } else { String::new() };
        let description = self.plan.describe(self.plan.runs[run - 1].cell);
        let left = Duration::from_secs(left.as_secs());
        self.bar.set_message(format!(
            "run {run} of {}{again}  {} left  {description}",
            self.plan.runs.len(),
            sizes::time(left),
        ));
        self.bar.tick();
    }

    pub(super) fn clear(&self) {
        self.bar.finish_and_clear();
    }

    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn print(&self, record: &RunRecord) {
        if self.json {
            let RunRecord {
                run, attempt, values, repetition, valid, reasons, measured, kernel_trace, ..
            } = record;
            return output::json(&json!({
                "message_type": "run", "run": run, "attempt": attempt, "values": values, "repetition": repetition,
                "valid": valid, "reasons": reasons, "measured": measured, "kernel_trace": kernel_trace,
            }));
        }
        let description = self.plan.describe(self.plan.runs[record.run - 1].cell);
        let verdict =
            if record.valid { String::new() } else { format!("  INVALID: {}", record.reasons.join("; ")) };
        let throughput = record.measured.get(&Quantity::Throughput);
        let throughput = throughput.map_or(String::new(), |value| Quantity::Throughput.unit().format(*value));
        outln!("{}/{}  {description}  {throughput}{verdict}", record.run, self.plan.runs.len());
    }
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
