//! A report of measurements in a lab. Each measurement is repeated until the lab's relay reports that it did not
//! distort the result.

use crate::machine;
use anyhow::Context;
use clap::Args;
use lab::Verdict;
use std::fs;
use std::path::Path;
use std::time::Duration;

/// The place of the verdict in a text.
pub const VERDICT: &str = "@verdict";

/// How much is measured.
#[derive(Clone, Copy, Debug, Args)]
pub struct Effort {
    /// How long each measurement takes, in seconds, after a warm-up of the same length.
    #[arg(long, default_value_t = 3)]
    seconds: u64,
    /// How often a measurement that is invalid is repeated.
    #[arg(long, default_value_t = 4)]
    repetitions: u32,
}

impl Effort {
    pub fn duration(self) -> Duration {
        Duration::from_secs(self.seconds.max(1))
    }
}

/// A report under construction.
pub struct LabReport {
    text: String,
    repetitions: u32,
}

impl LabReport {
    /// Begins a report with title, program, commit, date and machine. `about` describes the measurement and ends with a
    /// table's head.
    pub fn begin(effort: Effort, title: &str, program: &str, about: &str) -> anyhow::Result<Self> {
        let (commit, date, machine) = (machine::commit(), machine::today(), machine::describe());
        let text = format!(
            "# {title}\n\nWritten by `{program}`, built from commit {commit}, on {date}: {machine}.\n\n{about}"
        );
        Ok(Self { text, repetitions: effort.repetitions })
    }

    /// Repeats a measurement until the relay calls it VALID, at most `repetitions` more times. Reports the number of
    /// INVALID ones.
    pub fn measure(
        &mut self,
        measure: impl FnMut() -> anyhow::Result<(String, Verdict)>,
    ) -> anyhow::Result<()> {
        let text = repeat(self.repetitions, measure)?;
        self.add(&text);
        Ok(())
    }

    /// Adds a text without a verdict.
    pub fn add(&mut self, text: &str) {
        println!("{text}");
        self.text += text;
        self.text.push('\n');
    }

    pub fn write(&self, path: &Path) -> anyhow::Result<()> {
        fs::write(path, &self.text).with_context(|| format!("writing {}", path.display()))
    }
}

fn repeat(
    repetitions: u32,
    mut measure: impl FnMut() -> anyhow::Result<(String, Verdict)>,
) -> anyhow::Result<String> {
    let mut invalid = 0;
    loop {
        let (text, verdict) = measure()?;
        match verdict {
            Verdict::Valid if invalid == 0 => return Ok(text.replace(VERDICT, "VALID")),
            Verdict::Valid => {
                return Ok(text.replace(VERDICT, &format!("VALID, after {invalid} INVALID")));
            }
            Verdict::Invalid(_) if invalid == repetitions => {
                return Ok(text.replace(VERDICT, &format!("{verdict} (as {repetitions} before)")));
            }
            Verdict::Invalid(_) => invalid += 1,
        }
    }
}
