//! The tests that `iscsi-test-cu` has.

use anyhow::{Context, Result, ensure};
use ropewalk_interop::Program;
use std::collections::BTreeSet;
use std::fmt;
use std::process::Command;
use std::time::Duration;

/// The program whose tests these are.
pub const ISCSI_TEST_CU: &str = "iscsi-test-cu";

/// Families of suites, the largest first: `LINUX` repeats what a Linux initiator is known to need.
const FAMILIES: [&str; 2] = ["ALL", "LINUX"];

/// It lists its tests without talking to anybody.
const LIST_PATIENCE: Duration = Duration::from_secs(10);

/// One test. Families share suites, so the family is no part of its name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TestName {
    /// What it is about, as `Read10`.
    pub suite: String,
    /// What it does, as `BeyondEol`.
    pub test: String,
    /// The first family that has it.
    family: &'static str,
}

impl TestName {
    /// As `--test` takes it: `ALL.Read10.BeyondEol`.
    #[must_use]
    pub fn expression(&self) -> String {
        format!("{}.{self}", self.family)
    }

    /// Whether `pattern` names it: `Read10.BeyondEol`, or `Read10.*` for the whole suite.
    #[must_use]
    pub fn is_named_by(&self, pattern: &str) -> bool {
        match pattern.split_once('.') {
            Some((suite, "*")) => suite == self.suite,
            Some((suite, test)) => suite == self.suite && test == self.test,
            None => false,
        }
    }
}

impl fmt::Display for TestName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.suite, self.test)
    }
}

/// Every test of both families, each once.
///
/// # Errors
/// If the program does not list them.
pub fn every_test() -> Result<Vec<TestName>> {
    let (status, lines) = Program::run(Command::new(ISCSI_TEST_CU).arg("--list"), LIST_PATIENCE)
        .context("cannot list the tests")?;
    ensure!(status.success(), "{ISCSI_TEST_CU} --list: {status}");
    let tests = parse_list(&lines.iter().map(|line| line.text.as_str()).collect::<Vec<_>>());
    ensure!(!tests.is_empty(), "{ISCSI_TEST_CU} --list names no test");
    Ok(tests)
}

fn parse_list(lines: &[&str]) -> Vec<TestName> {
    let mut seen = BTreeSet::new();
    let mut tests = Vec::new();
    for family in FAMILIES {
        for line in lines {
            let mut parts = line.trim().splitn(3, '.');
            let (Some(named), Some(suite), Some(test)) = (parts.next(), parts.next(), parts.next()) else {
                continue;
            };
            if named == family && seen.insert((suite, test)) {
                tests.push(TestName { suite: suite.to_owned(), test: test.to_owned(), family });
            }
        }
    }
    tests
}

#[cfg(test)]
pub(crate) fn named(name: &str) -> TestName {
    let (suite, test) = name.split_once('.').unwrap_or((name, ""));
    TestName { suite: suite.to_owned(), test: test.to_owned(), family: FAMILIES[0] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_of_two_families_is_run_once() {
        let list = "ALL\nALL.Read6\nALL.Read6.Simple\nSCSI.Read6.Simple\nLINUX.Read6.Simple\nLINUX.Own.One\n";
        let tests = parse_list(&list.lines().collect::<Vec<_>>());
        let expressions: Vec<String> = tests.iter().map(TestName::expression).collect();
        assert_eq!(expressions, ["ALL.Read6.Simple", "LINUX.Own.One"]);
    }

    #[test]
    fn a_pattern_names_a_test_or_a_suite() {
        let test = named("Read6.Simple");
        assert!(test.is_named_by("Read6.Simple") && test.is_named_by("Read6.*"));
        assert!(!test.is_named_by("Read6.BeyondEol") && !test.is_named_by("Read10.*"));
        assert!(!test.is_named_by("Read6"));
    }
}
