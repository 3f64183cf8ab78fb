//! Watching a copy: the bar, the status lines, the summary.

use super::Arguments;
use super::end::End;
use super::plan::verify_name;
use crate::exit::chain;
use crate::output::{self, outln};
use crate::progress_bar::{Bar, REDRAW};
use crate::remote::{Usage, ceilings, decisions, explanation, limit, limit_object};
use crate::sizes;
use initiator::Target;
use serde_json::{Map, Value, json};
use std::cell::Cell;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use transfer::{Failure, ImageFormat, Phase, Progress, Report, Snapshot};

/// How often a status line is printed.
const STATUS_INTERVAL: Duration = Duration::from_secs(1);

pub(super) struct Monitor<'a> {
    progress: Arc<Progress>,
    targets: &'a [Target],
    json: bool,
    /// Tell what was decided over the connections.
    explain: bool,
    /// Standard output belongs to the data.
    to_stdout: bool,
    begun: Instant,
    /// Since when a remote disk has had no connection.
    lost: Cell<Option<Instant>>,
    format_told: Cell<bool>,
}

impl<'a> Monitor<'a> {
    pub(super) fn new(progress: Arc<Progress>, targets: &'a [Target], arguments: &Arguments) -> Self {
        Self {
            progress,
            targets,
            json: arguments.json,
            explain: arguments.connecting.explain,
            to_stdout: arguments.destination == End::Stream,
            begun: Instant::now(),
            lost: Cell::new(None),
            format_told: Cell::new(false),
        }
    }

    /// Shows how the copy goes, until it ends.
    pub(super) async fn watch<T>(&self, copy: impl Future<Output = T>) -> T {
        let mut bar = (!self.json).then(Bar::new);
        let mut ticks = tokio::time::interval(if self.json { STATUS_INTERVAL } else { REDRAW });
        let mut copy = std::pin::pin!(copy);
        let outcome = loop {
            tokio::select! {
                outcome = &mut copy => break outcome,
                _ = ticks.tick() => {
                    self.tell_format(bar.as_ref());
                    match &mut bar {
                        Some(bar) => bar.show(&self.progress.snapshot(), &self.note(), self.outage()),
                        None => output::json(&Value::Object(self.numbers("status"))),
                    }
                }
            }
        };
        if let Some(bar) = bar {
            bar.clear();
        }
        self.tell_format(None);
        outcome
    }

    /// For how long no path has led to one of the remote disks.
    fn outage(&self) -> Option<Duration> {
        let is_lost = self.targets.iter().any(|target| target.report().connections() == 0);
        let lost = is_lost.then(|| self.lost.get().unwrap_or_else(Instant::now));
        self.lost.set(lost);
        lost.map(|since| since.elapsed())
    }

    /// Warns, once, of an image that is copied with its wrapping.
    fn tell_format(&self, bar: Option<&Bar>) {
        let format = self.progress.snapshot().source_format.filter(|_| !self.format_told.get());
        if let Some(format) = format {
            self.format_told.set(true);
            let warn = || output::tell(format_args!("warning: {}", format_warning(format)));
            bar.map_or_else(warn, |bar| bar.suspend(warn));
        }
    }

    /// What is worth knowing beside the rate, with a space after it.
    fn note(&self) -> String {
        let usage = Usage::of(self.targets);
        let losses = self.progress.snapshot().losses;
        let mut note = String::new();
        if !self.targets.is_empty() {
            note = format!("{}  ", sizes::count(usage.connections, "connection"));
        }
        if losses > 0 {
            note += &format!("{losses} loss{}  ", if losses == 1 { "" } else { "es" });
        }
        note
    }

    fn numbers(&self, message_type: &str) -> Map<String, Value> {
        let snapshot = self.progress.snapshot();
        let usage = Usage::of(self.targets);
        let time = self.begun.elapsed();
        let numbers = json!({
            "message_type": message_type,
            "phase": phase_name(snapshot.phase),
            "bytes": snapshot.done_bytes,
            "bytes_total": snapshot.total_bytes,
            "seconds": time.as_secs_f64(),
            "bytes_per_second": sizes::rate(snapshot.done_bytes, time),
            "data_bytes": snapshot.data_bytes,
            "zeroed_bytes": snapshot.zeroed_bytes,
            "skipped_bytes": snapshot.skipped_bytes,
            "rewritten_bytes": snapshot.rewritten_bytes,
            "verified_bytes": snapshot.verified_bytes,
            "losses": snapshot.losses,
            "source_format": snapshot.source_format.map(ImageFormat::name),
            "reconnecting_seconds": self.outage().map(|outage| outage.as_secs_f64()),
        });
        let mut numbers = match numbers {
            Value::Object(numbers) => numbers,
            _ => Map::new(),
        };
        usage.describe(&mut numbers);
        numbers
    }

    /// The last words, on success; failures are told by whoever ends the process, and in JSON here.
    ///
    /// `capacity_bytes` is that of the destination, unless it grows as needed.
    pub(super) fn sum_up(&self, outcome: &Result<Report, Failure>, capacity_bytes: Option<u64>) {
        if self.json {
            output::json(&Value::Object(self.summary(outcome)));
        } else if let Ok(report) = outcome {
            let text = self.sentences(report, capacity_bytes);
            if self.to_stdout { output::tell(format_args!("{text}")) } else { outln!("{text}") }
        }
    }

    fn summary(&self, outcome: &Result<Report, Failure>) -> Map<String, Value> {
        let mut numbers = self.numbers("summary");
        let (verified, error, consequence) = match outcome {
            Ok(report) => (verify_name(report.verified), None, None),
            Err(failure) => (None, Some(chain(&failure.error)), Some(failure.consequence())),
        };
        // One for each remote end, the source first.
        let reports: Vec<_> = self.targets.iter().map(Target::report).collect();
        numbers.insert("limited_by".into(), reports.iter().map(limit_object).collect());
        numbers.insert("decisions".into(), reports.iter().map(decisions).collect());
        numbers.insert("verified".into(), verified.into());
        numbers.insert("done".into(), outcome.is_ok().into());
        numbers.insert("error".into(), error.into());
        numbers.insert("destination_state".into(), consequence.into());
        numbers
    }

    fn sentences(&self, report: &Report, capacity_bytes: Option<u64>) -> String {
        let snapshot = self.progress.snapshot();
        let time = self.begun.elapsed();
        let mut lines = vec![format!(
            "Copied {} in {} ({}/s): {}. {}.",
            sizes::bytes(report.bytes),
            sizes::time(time),
            sizes::bytes(sizes::rate(report.bytes, time)),
            parts(&snapshot),
            match verify_name(report.verified) {
                Some(_) => format!("Read back and compared {}", sizes::bytes(snapshot.verified_bytes)),
                None => "Not verified".to_owned(),
            }
        )];
        let usage = Usage::of(self.targets);
        if usage.connections > 0 {
            lines.push(format!("{}{}.", usage.describe_connections(), usage.repairs()));
        }
        let reports: Vec<_> = self.targets.iter().map(Target::report).collect();
        let places = match reports.len() {
            1 => [""; 2],
            _ => ["Reading: ", "Writing: "],
        };
        let limits = places.iter().zip(&reports);
        lines.extend(limits.filter_map(|(place, report)| Some(format!("{place}{}", limit(report)?))));
        if self.explain {
            let explanations = places.iter().zip(&reports);
            lines.extend(explanations.map(|(place, report)| format!("{place}{}", explanation(report))));
        }
        lines.extend(reports.iter().flat_map(ceilings).map(|why| format!("No more connections: {why}")));
        if snapshot.losses > 0 {
            let bytes = sizes::bytes(snapshot.rewritten_bytes);
            lines.push(format!("The destination was lost on the way; wrote {bytes} again."));
        }
        let untouched_bytes = capacity_bytes.unwrap_or(0).saturating_sub(report.bytes);
        if untouched_bytes > 0 {
            let untouched = sizes::bytes(untouched_bytes);
            lines.push(format!("The last {untouched} of the destination keep what they held."));
        }
        lines.join("\n")
    }
}

/// How to copy the disk that is inside.
pub(super) fn format_warning(format: ImageFormat) -> String {
    let name = format.name();
    let advice = match format.decompressor() {
        Some(program) => format!("unpack it with `{program} -dc SRC | ropewalk copy - DST`"),
        None => "unpack it with `qemu-img convert -O raw SRC RAW`, and copy RAW".to_owned(),
    };
    format!("the source is a {name} image, which is copied as it is; for the disk inside it, {advice}")
}

fn parts(snapshot: &Snapshot) -> String {
    let parts = [
        (snapshot.data_bytes, "data"),
        (snapshot.zeroed_bytes, "zeroed"),
        (snapshot.skipped_bytes, "zero already"),
    ];
    let parts = parts.into_iter().filter(|(bytes, _)| *bytes > 0);
    let parts: Vec<_> = parts.map(|(bytes, name)| format!("{} {name}", sizes::bytes(bytes))).collect();
    if parts.is_empty() { "nothing to do".to_owned() } else { parts.join(", ") }
}

fn phase_name(phase: Phase) -> &'static str {
    match phase {
        Phase::Preparing => "preparing",
        Phase::Copying => "copying",
        Phase::Flushing => "flushing",
        Phase::Verifying => "verifying",
    }
}
