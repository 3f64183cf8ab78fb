//! How much is measured, as the command line says it.

use clap::Args;
use std::path::PathBuf;
use std::time::Duration;

/// The options of a bench that measures in rounds.
#[derive(Debug, Args)]
pub struct Asked {
    /// Try everything once, briefly.
    #[arg(long)]
    quick: bool,
    /// How often everything is measured; the report has medians.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// How long one measurement takes, in seconds [default: 5; of lanes, 2]
    #[arg(long)]
    seconds: Option<u64>,
    /// The report's file [default: the one in benches/]
    #[arg(long)]
    pub report: Option<PathBuf>,
}

/// How much is measured.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    pub rounds: usize,
    pub duration: Duration,
}

impl Asked {
    /// What is asked for, with measurements of so many `seconds` if nothing is said about them.
    pub fn effort(&self, seconds: u64) -> Effort {
        if self.quick {
            return Effort { rounds: 1, duration: Duration::from_secs(1) };
        }
        let seconds = self.seconds.unwrap_or(seconds).max(1);
        Effort { rounds: self.rounds.max(1), duration: Duration::from_secs(seconds) }
    }
}
