//! The machine, the commit and the date of a measurement, without which its numbers mean little.

use std::fs;
use std::process::Command;

/// Cores and kernel, for a report.
///
/// # Errors
/// If the system does not provide them.
pub fn describe() -> anyhow::Result<String> {
    let cores = std::thread::available_parallelism()?;
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease")?;
    Ok(format!("{cores} cores, Linux {}", kernel.trim()))
}

/// The commit from which this program was built; the sources may differ from it.
pub fn commit() -> String {
    lab::Program::this().revision.unwrap_or_else(|| "unknown".to_owned())
}

/// Today's date in UTC, as year, month and day.
///
/// # Errors
/// If there is no `date`.
pub fn today() -> anyhow::Result<String> {
    let date = Command::new("date").args(["-u", "+%Y-%m-%d"]).output()?.stdout;
    Ok(String::from_utf8_lossy(&date).trim().to_owned())
}
