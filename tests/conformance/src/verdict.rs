//! What became of one test.

use std::fmt;
use std::process::ExitStatus;

/// How one test ended on one disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It found what it asserts.
    Pass,
    /// It left something out, and said why; the rest passed.
    Skip(String),
    /// An assertion of it does not hold: where, and what.
    Fail(String),
    /// It did not end in time.
    Hang,
    /// It said nothing that could be understood, or was killed.
    Crash(String),
}

impl Verdict {
    /// Whether a person must look at it.
    #[must_use]
    pub fn is_failure(&self) -> bool {
        matches!(self, Self::Fail(_) | Self::Hang | Self::Crash(_))
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pass => f.write_str("passes"),
            Self::Skip(why) => write!(f, "skips: {why}"),
            Self::Fail(what) => write!(f, "fails: {what}"),
            Self::Hang => f.write_str("hangs"),
            Self::Crash(how) => write!(f, "crashes: {how}"),
        }
    }
}

/// What a test says before it leaves something out.
const SKIPPED: &str = "[SKIPPED] ";

/// Judges by the report of a process that ran one test. Only the counts of its summary decide between pass and fail:
/// a line "[FAILED]" may be about a command that the test wants to fail.
#[must_use]
pub fn judge(status: ExitStatus, report: &str) -> Verdict {
    let Some(counts) = tests_line(report) else {
        let last = report.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
        return Verdict::Crash(format!("{status}, {}", last.trim()));
    };
    let said = said_by_the_test(report);
    match counts {
        Counts { ran: 1, failed: 0 } => match skips(&said) {
            reasons if reasons.is_empty() => Verdict::Pass,
            reasons => Verdict::Skip(reasons),
        },
        Counts { ran: 1, .. } => Verdict::Fail(first_assertion(report)),
        Counts { ran, .. } => Verdict::Crash(format!("{ran} tests ran instead of one")),
    }
}

struct Counts {
    ran: u32,
    failed: u32,
}

/// `tests  Total  Ran  Passed  Failed  Inactive`, from the summary.
fn tests_line(report: &str) -> Option<Counts> {
    let line = report.lines().find_map(|line| line.trim_start().strip_prefix("tests "))?;
    let mut numbers = line.split_ascii_whitespace().map(str::parse);
    let (_total, ran, _passed, failed) =
        (numbers.next()?, numbers.next()?.ok()?, numbers.next()?, numbers.next()?.ok()?);
    Some(Counts { ran, failed })
}

/// What stands between `Test: NAME ...` and `passed` or `FAILED`: before and after it, the program prepares and cleans
/// up.
fn said_by_the_test(report: &str) -> String {
    let Some((_, after)) = report.split_once("  Test: ") else { return String::new() };
    let Some((_, said)) = after.split_once(" ...") else { return String::new() };
    let mut text = String::new();
    for line in said.lines() {
        let end = ["passed", "FAILED"].iter().find(|end| line.starts_with(**end));
        if end.is_some() {
            break;
        }
        text.push_str(line);
        text.push('\n');
    }
    text
}

/// Every different reason once, in the order given.
fn skips(said: &str) -> String {
    let mut reasons: Vec<&str> = Vec::new();
    for (_, reason) in said.lines().filter_map(|line| line.split_once(SKIPPED)) {
        let reason = reason.trim().trim_end_matches('.').trim_end_matches(". Skipping test");
        if !reasons.contains(&reason) {
            reasons.push(reason);
        }
    }
    reasons.join("; ")
}

/// The first of the assertions listed after `FAILED`, as `test_read10.c:60 - CU_ASSERT_EQUAL(ret,0)`.
fn first_assertion(report: &str) -> String {
    let line = report.lines().find_map(|line| line.trim_start().strip_prefix("1. "));
    let text = line.unwrap_or("it names no assertion").replace("  - ", ": ");
    // What the program says when it cleans up may follow on the same line.
    text.split("    ").next().unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;

    fn report(said: &str, failed: u32) -> String {
        format!(
            "    [SKIPPED] said before\n\nSuite: Read10\n  Test: Simple ...{said}    [SKIPPED] said after\n\n\
             Run Summary:    Type  Total    Ran Passed Failed Inactive\n\
             \x20             suites      1      1    n/a      0        0\n\
             \x20              tests      1      1      {}      {failed}        0\n",
            1 - failed
        )
    }

    fn judged(report: &str) -> Verdict {
        judge(ExitStatus::from_raw(0), report)
    }

    #[test]
    fn what_is_said_before_and_after_a_test_is_not_of_the_test() {
        assert_eq!(judged(&report("passed", 0)), Verdict::Pass);
    }

    #[test]
    fn a_skip_keeps_its_reasons_without_repeating_them() {
        let said =
            "    [SKIPPED] ORWRITE is not implemented.\n    [SKIPPED] ORWRITE is not implemented.\npassed";
        assert_eq!(judged(&report(said, 0)), Verdict::Skip("ORWRITE is not implemented".to_owned()));
    }

    #[test]
    fn a_command_that_is_wanted_to_fail_is_no_failure() {
        assert_eq!(judged(&report("    [FAILED] WRITE10 failed\npassed", 0)), Verdict::Pass);
    }

    #[test]
    fn a_failure_names_its_first_assertion() {
        let said = "    SWP is not changeable\nFAILED\n    1. test.c:60  - CU_ASSERT_EQUAL(ret,0)";
        assert_eq!(judged(&report(said, 1)), Verdict::Fail("test.c:60: CU_ASSERT_EQUAL(ret,0)".to_owned()));
    }

    #[test]
    fn a_report_without_a_summary_is_a_crash() {
        let verdict = judge(ExitStatus::from_raw(255 << 8), "Failed to connect\n");
        assert_eq!(verdict, Verdict::Crash("exit status: 255, Failed to connect".to_owned()));
    }
}
