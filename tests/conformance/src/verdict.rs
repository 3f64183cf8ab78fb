//! What became of one test.

use crate::test_name::TestName;
use std::fmt;
use std::process::ExitStatus;

/// How one test ended on one disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It found what it asserts.
    Pass,
    /// It left something out, and said why; the rest passed.
    Skip(String),
    /// Assertions of it do not hold: where, and which.
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

/// Announces that a test leaves something out.
const SKIPPED: &str = "[SKIPPED] ";

/// Announcements by tests that leave nothing out: they go on to assert how a disk without the command describes itself.
const NOT_SKIPPED: [(&str, &str); 1] = [("WriteAtomic16.VPD", "WRITEATOMIC16 is not implemented")];

/// Judges by the report of a process that ran one test. Only the counts of its summary decide between pass and fail:
/// a line "[FAILED]" may be about a command that the test wants to fail.
#[must_use]
pub fn judge(test: &TestName, status: ExitStatus, report: &str) -> Verdict {
    let Some(counts) = tests_line(report) else {
        let last = report.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
        return Verdict::Crash(steady(&format!("{status}, {}", last.trim())));
    };
    let said = said_by_the_test(report);
    match counts {
        Counts { ran: 1, failed: 0 } => match skips(test, &said) {
            reasons if reasons.is_empty() => Verdict::Pass,
            reasons => Verdict::Skip(steady(&reasons)),
        },
        Counts { ran: 1, .. } => Verdict::Fail(steady(&assertions(report))),
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
fn skips(test: &TestName, said: &str) -> String {
    let mut reasons: Vec<&str> = Vec::new();
    for (_, reason) in said.lines().filter_map(|line| line.split_once(SKIPPED)) {
        let reason = reason.trim().trim_end_matches('.').trim_end_matches(". Skipping test");
        let is_none = NOT_SKIPPED.iter().any(|(name, said)| test.is_named_by(name) && *said == reason);
        if !is_none && !reasons.contains(&reason) {
            reasons.push(reason);
        }
    }
    reasons.join("; ")
}

/// Every different assertion listed after `FAILED`, as `test_read10.c:60: CU_ASSERT_EQUAL(ret,0)`.
fn assertions(report: &str) -> String {
    let mut assertions: Vec<String> = Vec::new();
    for number in 1.. {
        let start = format!("{number}. ");
        let Some(line) = report.lines().find_map(|line| line.trim_start().strip_prefix(&start)) else {
            break;
        };
        // What the program says when it cleans up may follow on the same line.
        let text = line.replace("  - ", ": ");
        let assertion = text.split("    ").next().unwrap_or_default().trim();
        if !assertions.iter().any(|known| known == assertion) {
            assertions.push(assertion.to_owned());
        }
    }
    if assertions.is_empty() { "it names no assertion".to_owned() } else { assertions.join("; ") }
}

/// Decimal numbers with more digits are addresses, times and tags. Lines of the tests' sources have fewer.
const STEADY_DIGITS_MAX: usize = 4;

/// The message with `#` in place of every number that differs from run to run: hexadecimal ones and long ones.
fn steady(message: &str) -> String {
    let mut text = String::new();
    let mut rest = message;
    while let Some(at) = rest.find(|character: char| character.is_ascii_digit()) {
        let (before, number) = rest.split_at(at);
        text.push_str(before);
        let is_hexadecimal = number.starts_with("0x");
        let end = match is_hexadecimal {
            true => number[2..].find(|digit: char| !digit.is_ascii_hexdigit()).map(|end| end + 2),
            false => number.find(|digit: char| !digit.is_ascii_digit()),
        };
        let (number, after) = number.split_at(end.unwrap_or(number.len()));
        text.push_str(if is_hexadecimal || number.len() > STEADY_DIGITS_MAX { "#" } else { number });
        rest = after;
    }
    text + rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_name::named;
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
        judge(&named("Read10.Simple"), ExitStatus::from_raw(0), report)
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
    fn a_failure_names_every_different_assertion() {
        let said = "    SWP is not changeable\nFAILED\n    1. test.c:60  - CU_ASSERT_EQUAL(ret,0)\n    \
                    2. test.c:60  - CU_ASSERT_EQUAL(ret,0)\n    3. test.c:70  - CU_FAIL(\"x\")    Logged out";
        let assertions = "test.c:60: CU_ASSERT_EQUAL(ret,0); test.c:70: CU_FAIL(\"x\")";
        assert_eq!(judged(&report(said, 1)), Verdict::Fail(assertions.to_owned()));
    }

    #[test]
    fn a_number_that_differs_from_run_to_run_is_left_out_of_a_message() {
        assert_eq!(
            steady("at 0x7ffe12 after 123456 ms: t.c:1234: LBPPB < 2"),
            "at # after # ms: t.c:1234: LBPPB < 2"
        );
        assert_eq!(steady("ends in 12345"), "ends in #");
    }

    #[test]
    fn a_test_that_goes_on_after_it_found_no_command_passes() {
        let said = report("    [SKIPPED] WRITEATOMIC16 is not implemented.\npassed", 0);
        let verdict = |test| judge(&named(test), ExitStatus::from_raw(0), &said);
        assert_eq!(verdict("WriteAtomic16.VPD"), Verdict::Pass);
        assert_eq!(
            verdict("WriteAtomic16.Simple"),
            Verdict::Skip("WRITEATOMIC16 is not implemented".to_owned())
        );
    }

    #[test]
    fn a_report_without_a_summary_is_a_crash() {
        let verdict = judge(&named("Read10.Simple"), ExitStatus::from_raw(255 << 8), "Failed to connect\n");
        assert_eq!(verdict, Verdict::Crash("exit status: 255, Failed to connect".to_owned()));
    }
}
