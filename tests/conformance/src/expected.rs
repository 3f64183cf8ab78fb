//! The reasons why a test may fail, or be skipped everywhere: the tables of `EXPECTED.md`.

use crate::results::Results;
use crate::test_name::TestName;
use crate::verdict::Verdict;
use anyhow::{Result, bail, ensure};
use std::collections::BTreeMap;
use std::fmt;

/// One line of a table: `| tests | configurations | outcome | message | why | standard |`.
#[derive(Debug)]
pub struct Entry {
    /// Names, or `Suite.*`.
    tests: Vec<String>,
    /// Where; empty if everywhere.
    configurations: Vec<String>,
    outcome: Outcome,
    /// The skip's reason or the assertions, as a [`Verdict`] has them: the entry excuses no other.
    message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// It finds nothing to test, on any disk.
    Skips,
    /// It asserts something wrong.
    Fails,
}

/// The cells of a line.
const COLUMNS: usize = 6;

/// Reads the tables; other text is for people.
///
/// # Errors
/// If a line of a table lacks something: a reason and the standard's paragraph are no decoration.
pub fn parse(text: &str) -> Result<Vec<Entry>> {
    let mut entries = Vec::new();
    for line in text.lines().filter(|line| line.starts_with('|')) {
        let cells: Vec<&str> = line.trim().trim_matches('|').split('|').map(str::trim).collect();
        if cells.first().is_none_or(|first| *first == "tests" || first.starts_with("---")) {
            continue;
        }
        ensure!(cells.len() == COLUMNS, "{} cells instead of {COLUMNS}: {line}", cells.len());
        ensure!(cells.iter().all(|cell| !cell.is_empty()), "an empty cell: {line}");
        let outcome = match cells[2] {
            "skips" => Outcome::Skips,
            "fails" => Outcome::Fails,
            other => bail!("\"{other}\" is neither \"skips\" nor \"fails\": {line}"),
        };
        let configurations = match cells[1] {
            "all" => Vec::new(),
            list => list.split(", ").map(str::to_owned).collect(),
        };
        ensure!(
            outcome == Outcome::Fails || configurations.is_empty(),
            "a skip matters only if it is one in all configurations: {line}"
        );
        entries.push(Entry {
            tests: cells[0].split(", ").map(|name| name.trim_matches('`').to_owned()).collect(),
            configurations,
            outcome,
            message: cells[3].trim_matches('`').to_owned(),
        });
    }
    Ok(entries)
}

impl Entry {
    fn is_about(&self, test: &TestName) -> bool {
        self.tests.iter().any(|pattern| test.is_named_by(pattern))
    }

    fn covers(&self, configuration: &str) -> bool {
        self.configurations.is_empty() || self.configurations.iter().any(|named| named == configuration)
    }

    fn excuses(&self, verdict: &Verdict) -> bool {
        match (self.outcome, verdict) {
            (Outcome::Skips, Verdict::Skip(message)) | (Outcome::Fails, Verdict::Fail(message)) => {
                *message == self.message
            }
            _ => false,
        }
    }
}

type Row = BTreeMap<&'static str, Verdict>;

/// The verdicts without a reason in `entries`, and the entries without a verdict, one sentence each.
#[must_use]
pub fn compare(results: &Results, entries: &[Entry]) -> Vec<String> {
    let mut complaints = Vec::new();
    for (test, row) in results.tests() {
        let about: Vec<&Entry> = entries.iter().filter(|entry| entry.is_about(test)).collect();
        unexplained(test, row, &about, &mut complaints);
        for entry in about {
            let mut covered = row.iter().filter(|(configuration, _)| entry.covers(configuration)).peekable();
            let is_met = covered.peek().is_some() && covered.all(|(_, verdict)| entry.excuses(verdict));
            if !is_met {
                complaints.push(format!("{test}: EXPECTED.md says that it {entry}"));
            }
        }
    }
    for pattern in entries.iter().flat_map(|entry| &entry.tests) {
        if !results.tests().any(|(test, _)| test.is_named_by(pattern)) {
            complaints.push(format!("there is no test {pattern}"));
        }
    }
    complaints
}

/// A failure needs a reason wherever it is, a skip where the test passes nowhere.
fn unexplained(test: &TestName, row: &Row, about: &[&Entry], complaints: &mut Vec<String>) {
    let passes_somewhere = row.values().any(|verdict| *verdict == Verdict::Pass);
    // What is the same in several configurations is said once.
    let mut surprises: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (configuration, verdict) in row {
        let needs_reason = verdict.is_failure() || *verdict != Verdict::Pass && !passes_somewhere;
        let has_reason = about.iter().any(|entry| entry.covers(configuration) && entry.excuses(verdict));
        if needs_reason && !has_reason {
            surprises.entry(verdict.to_string()).or_default().push(configuration);
        }
    }
    for (verdict, configurations) in surprises {
        complaints.push(format!("{test} {verdict}, on {}", configurations.join(", ")));
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verb = match self.outcome {
            Outcome::Skips => "skips",
            Outcome::Fails => "fails",
        };
        let place =
            if self.configurations.is_empty() { "all".to_owned() } else { self.configurations.join(", ") };
        write!(f, "{verb}: {}, on {place}", self.message)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

    use super::*;
    use crate::run::Case;
    use crate::test_name::named;

    fn compared(verdicts: &[(&str, &'static str, Verdict)], expected: &str) -> Vec<String> {
        let cases = verdicts.iter().map(|(test, configuration, verdict)| Case {
            test: named(test),
            configuration,
            verdict: verdict.clone(),
        });
        compare(&Results::new(Vec::new(), cases.collect()), &parse(expected).unwrap())
    }

    fn skip() -> Verdict {
        Verdict::Skip("A.B is not implemented".to_owned())
    }

    fn fail() -> Verdict {
        Verdict::Fail("a.c:1: wrong".to_owned())
    }

    const SKIPPED: &str = "| `A.*` | all | skips | `A.B is not implemented` | why | SBC-3 |";

    /// An entry for a failure in this configuration.
    fn failing(configuration: &str, message: &str) -> String {
        format!("| `A.B` | {configuration} | fails | `{message}` | why | SBC-3 |")
    }

    #[test]
    fn a_test_that_passes_somewhere_needs_no_entry() {
        assert!(compared(&[("A.B", "thin", Verdict::Pass), ("A.B", "full", skip())], "").is_empty());
    }

    #[test]
    fn a_test_that_is_skipped_everywhere_needs_one() {
        let everywhere = [("A.B", "thin", skip()), ("A.B", "full", skip())];
        assert_eq!(compared(&everywhere, ""), ["A.B skips: A.B is not implemented, on full, thin"]);
        assert!(compared(&everywhere, SKIPPED).is_empty());
    }

    #[test]
    fn a_failure_needs_an_entry_for_its_configuration() {
        let one = [("A.B", "thin", fail()), ("A.B", "full", Verdict::Pass)];
        assert_eq!(compared(&one, ""), ["A.B fails: a.c:1: wrong, on thin"]);
        assert!(compared(&one, &failing("thin", "a.c:1: wrong")).is_empty());
        let elsewhere = compared(&one, &failing("full", "a.c:1: wrong"));
        assert_eq!(
            elsewhere,
            [
                "A.B fails: a.c:1: wrong, on thin",
                "A.B: EXPECTED.md says that it fails: a.c:1: wrong, on full"
            ]
        );
    }

    #[test]
    fn an_entry_excuses_no_other_assertion_and_no_other_skip() {
        let one = [("A.B", "thin", fail()), ("A.B", "full", Verdict::Pass)];
        assert_eq!(compared(&one, &failing("thin", "a.c:2: wrong")).len(), 2);
        let other = [("A.B", "thin", Verdict::Skip("no room".to_owned()))];
        assert_eq!(compared(&other, SKIPPED).len(), 2);
    }

    #[test]
    fn a_crash_is_never_excused() {
        let one =
            [("A.B", "thin", Verdict::Crash("a.c:1: wrong".to_owned())), ("A.B", "full", Verdict::Hang)];
        assert_eq!(compared(&one, &failing("all", "a.c:1: wrong")).len(), 3);
    }

    #[test]
    fn an_entry_that_nothing_needs_is_a_mistake() {
        let passing = [("A.B", "thin", Verdict::Pass)];
        assert_eq!(compared(&passing, SKIPPED).len(), 1);
        assert_eq!(compared(&passing, &failing("thin", "a.c:1: wrong")).len(), 1);
        assert_eq!(compared(&passing, &SKIPPED.replace("A.*", "C.D")), ["there is no test C.D"]);
    }

    #[test]
    fn an_entry_that_only_some_of_its_configurations_need_is_a_mistake() {
        let mixed = [("A.B", "thin", fail()), ("A.B", "full", Verdict::Pass)];
        assert_eq!(compared(&mixed, &failing("all", "a.c:1: wrong")).len(), 1);
    }

    #[test]
    fn an_entry_without_a_reason_is_refused() {
        for entry in [
            "| `A.B` | all | skips | `no` | | SBC-3 |",
            "| `A.B` | all | skips | | why | SBC-3 |",
            "| `A.B` | all | hangs | `no` | why | SBC-3 |",
            "| `A.B` | thin | skips | `no` | why | SBC-3 |",
        ] {
            assert!(parse(entry).is_err(), "{entry}");
        }
    }
}
