//! What loaded programs cost, as the kernel counts it.

use crate::Cost;
use libbpf_rs::query::ProgInfoIter;
use std::fs;
use std::io;

/// While it lives, the kernel counts calls and times of all BPF programs of the machine (`kernel.bpf_stats_enabled`).
#[derive(Debug)]
pub struct RunningCosts {
    before: String,
}

const SETTING: &str = "/proc/sys/kernel/bpf_stats_enabled";

impl RunningCosts {
    /// Begins to count.
    ///
    /// # Errors
    /// Without root's rights.
    pub fn count() -> io::Result<Self> {
        let before = fs::read_to_string(SETTING)?;
        fs::write(SETTING, "1")?;
        Ok(Self { before })
    }

    /// The costs until now of the programs whose names begin so. The kernel keeps fifteen letters of a name.
    #[must_use]
    pub fn of(&self, beginning: &str) -> Cost {
        let programs = ProgInfoIter::default();
        let programs = programs.filter(|program| program.name.to_string_lossy().starts_with(beginning));
        programs.fold(Cost::default(), |cost, program| Cost {
            calls: cost.calls + program.run_cnt,
            busy_ns: cost.busy_ns + program.run_time_ns,
            ..cost
        })
    }
}

impl Drop for RunningCosts {
    fn drop(&mut self) {
        // At worst the kernel goes on counting.
        let _ = fs::write(SETTING, self.before.trim());
    }
}
