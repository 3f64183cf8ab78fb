//! The bar that a person watches.

use indicatif::{ProgressBar, ProgressStyle};
use std::time::Duration;
use transfer::{Phase, Snapshot};

/// Redrawn so often: smooth, at no cost.
pub(crate) const REDRAW: Duration = Duration::from_millis(200);

const KNOWN: &str = "{prefix:9} [{bar:28}] {percent:>3}%  {binary_bytes} of {binary_total_bytes}  \
                     {binary_bytes_per_sec}  {msg}{eta} left";
const UNKNOWN: &str = "{prefix:9} {spinner}  {binary_bytes}  {binary_bytes_per_sec}  {msg}";

/// A bar on standard error, invisible if that is no terminal.
pub(crate) struct Bar {
    bar: ProgressBar,
    phase: Option<Phase>,
}

impl Bar {
    pub(crate) fn new() -> Self {
        Self { bar: ProgressBar::no_length(), phase: None }
    }

    /// `note` stands beside the rate.
    pub(crate) fn show(&mut self, snapshot: &Snapshot, note: &str) {
        let (prefix, done_bytes, total_bytes) = match snapshot.phase {
            Phase::Preparing => return,
            Phase::Copying => ("copying", snapshot.done_bytes, snapshot.total_bytes),
            Phase::Flushing => ("flushing", snapshot.done_bytes, snapshot.total_bytes),
            Phase::Verifying => ("verifying", snapshot.verified_bytes, Some(snapshot.to_verify_bytes)),
        };
        if self.phase != Some(snapshot.phase) {
            self.begin(snapshot.phase, total_bytes);
        }
        self.bar.set_prefix(prefix);
        self.bar.set_message(note.to_owned());
        if let Some(total_bytes) = total_bytes {
            self.bar.set_length(total_bytes);
        }
        self.bar.set_position(done_bytes);
        self.bar.tick();
    }

    /// Every phase has its own rate.
    fn begin(&mut self, phase: Phase, total_bytes: Option<u64>) {
        let template = if total_bytes.is_some() { KNOWN } else { UNKNOWN };
        if let Ok(style) = ProgressStyle::with_template(template) {
            self.bar.set_style(style.progress_chars("=> "));
        }
        if self.phase != Some(Phase::Copying) || phase != Phase::Flushing {
            self.bar.reset();
        }
        self.phase = Some(phase);
    }

    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }
}
