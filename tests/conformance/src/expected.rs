//! What is known and right although a test does not pass: the tables of `EXPECTED.md`.

use crate::results::Results;
use crate::test_name::TestName;
use crate::verdict::Verdict;
use anyhow::{Result, bail, ensure};
use std::collections::BTreeMap;

/// One line of a table: `| tests | configurations | outcome | why | standard |`.
#[derive(Debug)]
pub struct Entry {
    /// Names, or `Suite.*`.
    tests: Vec<String>,
    /// Where; empty if everywhere.
    configurations: Vec<String>,
    outcome: Outcome,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// It finds nothing to test, on any disk.
    Skips,
    /// It asserts something wrong.
    Fails,
}

/// The cells of a line.
const COLUMNS: usize = 5;

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
}

type Row = BTreeMap<&'static str, Verdict>;

/// What is wrong with the results, or with what was expected of them, one sentence each.
#[must_use]
pub fn compare(results: &Results, entries: &[Entry]) -> Vec<String> {
    let mut complaints = Vec::new();
    for (test, row) in results.tests() {
        let about: Vec<&Entry> = entries.iter().filter(|entry| entry.is_about(test)).collect();
        failures(test, row, &about, &mut complaints);
        let somewhere = row.values().any(|verdict| *verdict == Verdict::Pass);
        let failing = row.values().any(Verdict::is_failure);
        let excused = about.iter().any(|entry| entry.outcome == Outcome::Skips);
        match (somewhere || failing, excused) {
            (false, false) => complaints.push(format!("{test} {}, in every configuration", first(row))),
            (true, true) => complaints.push(format!("{test} is not skipped everywhere any more")),
            (true, false) | (false, true) => {}
        }
    }
    for pattern in entries.iter().flat_map(|entry| &entry.tests) {
        if !results.tests().any(|(test, _)| test.is_named_by(pattern)) {
            complaints.push(format!("there is no test {pattern}"));
        }
    }
    complaints
}

fn failures(test: &TestName, row: &Row, about: &[&Entry], complaints: &mut Vec<String>) {
    let wrong: Vec<&&Entry> = about.iter().filter(|entry| entry.outcome == Outcome::Fails).collect();
    // What is the same in several configurations is said once.
    let mut surprises: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (configuration, verdict) in row {
        let excused = wrong.iter().any(|entry| entry.covers(configuration));
        if excused && *verdict == Verdict::Pass || !excused && verdict.is_failure() {
            surprises.entry(verdict.to_string()).or_default().push(configuration);
        }
    }
    for (verdict, configurations) in surprises {
        complaints.push(format!("{test} {verdict}, on {}", configurations.join(", ")));
    }
    for entry in wrong {
        if !row.iter().any(|(configuration, verdict)| verdict.is_failure() && entry.covers(configuration)) {
            complaints.push(format!("{test} does not fail any more"));
        }
    }
}

fn first(row: &Row) -> String {
    row.values().next().map_or_else(|| "was not run".to_owned(), Verdict::to_string)
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

    #[test]
    fn a_test_that_passes_somewhere_needs_no_entry() {
        assert!(compared(&[("A.B", "thin", Verdict::Pass), ("A.B", "full", skip())], "").is_empty());
    }

    #[test]
    fn a_test_that_is_skipped_everywhere_needs_one() {
        let everywhere = [("A.B", "thin", skip()), ("A.B", "full", skip())];
        assert_eq!(compared(&everywhere, "").len(), 1);
        assert!(compared(&everywhere, "| `A.*` | all | skips | why | SBC-3 |").is_empty());
    }

    #[test]
    fn a_failure_needs_an_entry_for_its_configuration() {
        let one = [("A.B", "thin", fail()), ("A.B", "full", Verdict::Pass)];
        assert_eq!(compared(&one, "").len(), 1);
        assert!(compared(&one, "| `A.B` | thin | fails | why | SBC-3 |").is_empty());
        assert_eq!(compared(&one, "| `A.B` | full | fails | why | SBC-3 |").len(), 3);
    }

    #[test]
    fn an_entry_that_nothing_needs_is_a_mistake() {
        let passing = [("A.B", "thin", Verdict::Pass)];
        assert_eq!(compared(&passing, "| `A.B` | all | skips | why | SBC-3 |").len(), 1);
        assert_eq!(compared(&passing, "| `A.B` | thin | fails | why | SBC-3 |").len(), 2);
        assert_eq!(compared(&passing, "| `C.D` | all | skips | why | SBC-3 |").len(), 1);
    }

    #[test]
    fn an_entry_without_a_reason_is_refused() {
        assert!(parse("| `A.B` | all | skips | | SBC-3 |").is_err());
        assert!(parse("| `A.B` | all | hangs | why | SBC-3 |").is_err());
        assert!(parse("| `A.B` | thin | skips | why | SBC-3 |").is_err());
    }
}
