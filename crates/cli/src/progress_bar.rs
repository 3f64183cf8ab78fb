//! The progress bar.

use indicatif::{HumanDuration, ProgressBar, ProgressStyle};
use std::time::Duration;
use transfer::{Phase, Snapshot};

/// The redraw interval: smooth, at no measurable cost.
pub(crate) const REDRAW: Duration = Duration::from_millis(200);

const KNOWN: &str = "{prefix:9} [{bar:28}] {percent:>3}%  {binary_bytes} of {binary_total_bytes}  \
                     {binary_bytes_per_sec}  {msg}";
const UNKNOWN: &str = "{prefix:9} {spinner}  {binary_bytes}  {binary_bytes_per_sec}  {msg}";

/// A bar on standard error; invisible if that is not a terminal.
pub(crate) struct Bar {
    bar: ProgressBar,
    phase: Option<Phase>,
    was_lost: bool,
}

impl Bar {
    pub(crate) fn new() -> Self {
        Self { bar: ProgressBar::no_length(), phase: None, was_lost: false }
    }

    /// `note` stands beside the rate. During an `outage` its length stands in the place of the time that is left.
    pub(crate) fn show(&mut self, snapshot: &Snapshot, note: &str, outage: Option<Duration>) {
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
        if let Some(total_bytes) = total_bytes {
            self.bar.set_length(total_bytes);
        }
        if self.was_lost && outage.is_none() {
            // The rate of an outage says nothing of what comes after it.
            self.bar.reset_eta();
        }
        self.was_lost = outage.is_some();
        self.bar.set_position(done_bytes);
        let left = total_bytes.map(|_| self.bar.eta());
        self.bar.set_message(format!("{note}{}", expectation(outage, left)));
        self.bar.tick();
    }

    /// Writes something else to the terminal.
    pub(crate) fn suspend(&self, write: impl FnOnce()) {
        self.bar.suspend(write);
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

/// When it will be done.
fn expectation(outage: Option<Duration>, left: Option<Duration>) -> String {
    match (outage, left) {
        (Some(outage), _) => {
            let seconds = outage.as_secs();
            format!("reconnecting for {:02}:{:02}", seconds / 60, seconds % 60)
        }
        (None, Some(left)) => format!("{:#} left", HumanDuration(left)),
        (None, None) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outage_is_told_instead_of_the_time_that_is_left() {
        let years = Some(Duration::from_secs(1 << 30));
        assert_eq!(expectation(Some(Duration::from_secs(83)), years), "reconnecting for 01:23");
        assert_eq!(expectation(None, Some(Duration::from_secs(42))), "42s left");
        assert_eq!(expectation(None, None), "");
    }
}
