//! The machine, the commit and the date of a measurement, without which its numbers mean little.

use observe::report::rfc3339;
use std::time::SystemTime;

/// Processor, cores and kernel, for a report.
pub fn describe() -> String {
    let machine = lab::Machine::this();
    format!("{}, {} cores, {}", machine.processor, machine.processors, machine.kernel)
}

/// The commit from which this program was built; the sources may differ from it.
pub fn commit() -> String {
    lab::Program::this().revision.unwrap_or_else(|| "unknown".to_owned())
}

/// Today's date in UTC, as year, month and day.
pub fn today() -> String {
    let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    rfc3339(since_1970).chars().take_while(|letter| *letter != 'T').collect()
}
