//! The verdicts that `RESULTS.md` records, read back from its table: every later run must come to the same.

use crate::results::Results;
use crate::verdict::Verdict;
use anyhow::{Context, Result, bail};
use std::collections::{BTreeMap, BTreeSet};

/// The verdict on every test, by its name and by the configuration.
#[derive(Debug, Default)]
pub struct Recorded(BTreeMap<(String, String), Verdict>);

/// How much was run.
#[derive(Debug, PartialEq, Eq)]
pub enum Extent {
    /// The run was of everything: a recorded verdict that it did not come to is a difference.
    Everything,
    /// The run was of some tests or configurations.
    Part,
}

impl Recorded {
    /// Reads the table "Every test" and the numbered messages after it.
    ///
    /// # Errors
    /// If a cell is no verdict, or its number no message.
    pub fn parse(text: &str) -> Result<Self> {
        let messages: Vec<&str> = text.lines().filter_map(numbered).collect();
        let mut rows = text.lines().filter(|line| line.starts_with('|')).map(cells);
        let Some(titles) = rows.find(|row| row[0] == "test") else { return Ok(Self::default()) };
        let mut verdicts = BTreeMap::new();
        for row in rows.filter(|row| !row[0].starts_with("---")) {
            for (title, cell) in titles.iter().zip(&row).skip(1) {
                let verdict =
                    verdict(cell, &messages).with_context(|| format!("{} on {title}: \"{cell}\"", row[0]))?;
                verdicts.extend(verdict.map(|verdict| ((row[0].to_owned(), (*title).to_owned()), verdict)));
            }
        }
        Ok(Self(verdicts))
    }

    /// One line for each test and change: what was recorded, what the run came to, and where.
    #[must_use]
    pub fn differences(&self, results: &Results, extent: &Extent) -> Vec<String> {
        let ours: BTreeSet<&str> = results.configurations.iter().map(|one| one.name).collect();
        let mut changes: BTreeMap<(String, String), Vec<&str>> = BTreeMap::new();
        let mut seen = BTreeSet::new();
        for (test, row) in results.tests() {
            for (configuration, verdict) in row {
                let place = (test.to_string(), (*configuration).to_owned());
                let recorded = self.0.get(&place);
                if recorded != Some(verdict) {
                    let was = recorded.map_or_else(|| "is not recorded".to_owned(), Verdict::to_string);
                    let change = format!("  - {was}\n  + {verdict}");
                    changes.entry((place.0.clone(), change)).or_default().push(configuration);
                }
                seen.insert(place);
            }
        }
        let gone = self.0.iter().filter(|(place, _)| ours.contains(&*place.1) && !seen.contains(place));
        for ((test, configuration), verdict) in gone.filter(|_| *extent == Extent::Everything) {
            let change = format!("  - {verdict}\n  + was not run");
            changes.entry((test.clone(), change)).or_default().push(configuration);
        }
        let told = changes.into_iter();
        told.map(|((test, change), places)| format!("{test}, on {}\n{change}", places.join(", "))).collect()
    }
}

fn cells(line: &str) -> Vec<&str> {
    let inner = line.trim().strip_prefix('|').unwrap_or(line);
    inner.strip_suffix('|').unwrap_or(inner).split('|').map(str::trim).collect()
}

/// The message of a line `7. message`.
fn numbered(line: &str) -> Option<&str> {
    let (number, message) = line.split_once(". ")?;
    number.parse::<usize>().ok().map(|_| message)
}

/// The verdict in a cell; `None` if the test was not run there, or is a peer's.
fn verdict(cell: &str, messages: &[&str]) -> Result<Option<Verdict>> {
    let (word, number) = cell.split_once(' ').unwrap_or((cell, ""));
    let message = || -> Result<String> {
        let number: usize = number.parse()?;
        let message = number.checked_sub(1).and_then(|index| messages.get(index));
        Ok((*message.context("there is no message of this number")?).to_owned())
    };
    Ok(Some(match word {
        "pass" => Verdict::Pass,
        "skip" if !number.is_empty() => Verdict::Skip(message()?),
        "**FAIL**" => Verdict::Fail(message()?),
        "**HANG**" => Verdict::Hang,
        "**CRASH**" => Verdict::Crash(message()?),
        // Peers' verdicts have no message.
        "" | "skip" | "fail" | "hang" => return Ok(None),
        _ => bail!("it is no verdict"),
    }))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

    use super::*;
    use crate::run::Case;
    use crate::subject::Subject;
    use crate::test_name::named;

    fn run(cases: &[(&str, &'static str, Verdict)]) -> Results {
        let cases = cases.iter().map(|(test, configuration, verdict)| Case {
            test: named(test),
            configuration,
            verdict: verdict.clone(),
        });
        Results::new(Subject::Ropewalk.configurations().iter().collect(), cases.collect())
    }

    fn recorded(results: &Results) -> Recorded {
        Recorded::parse(&results.markdown(&[]).unwrap()).unwrap()
    }

    fn skip(why: &str) -> Verdict {
        Verdict::Skip(why.to_owned())
    }

    fn before() -> [(&'static str, &'static str, Verdict); 4] {
        [
            ("A.B", "full", skip("no room. None at all")),
            ("A.B", "thin", Verdict::Fail("a.c:1: CU_ASSERT(x)".to_owned())),
            ("A.C", "full", Verdict::Crash("signal: 11".to_owned())),
            ("A.C", "thin", Verdict::Hang),
        ]
    }

    #[test]
    fn a_table_that_was_written_reads_back_as_the_same_verdicts() {
        let results = run(&before());
        assert_eq!(recorded(&results).differences(&results, &Extent::Everything), Vec::<String>::new());
    }

    #[test]
    fn every_change_of_a_verdict_or_message_is_a_difference() {
        for change in [
            Verdict::Pass,
            skip("no time"),
            Verdict::Fail("a.c:2: CU_ASSERT(x)".to_owned()),
            Verdict::Hang,
            Verdict::Crash("signal: 6".to_owned()),
        ] {
            for place in 0..4 {
                let mut after = before();
                if after[place].2 == change {
                    continue;
                }
                after[place].2 = change.clone();
                let differences = recorded(&run(&before())).differences(&run(&after), &Extent::Everything);
                assert_eq!(differences.len(), 1, "{change} at {place}: {differences:?}");
                assert!(differences[0].contains(&format!("+ {change}")), "{differences:?}");
            }
        }
    }

    #[test]
    fn a_test_that_is_gone_is_a_difference_only_if_everything_was_run() {
        let results = run(&before()[..3]);
        let differences = |extent| recorded(&run(&before())).differences(&results, &extent);
        assert_eq!(differences(Extent::Everything), ["A.C, on thin\n  - hangs\n  + was not run"]);
        assert!(differences(Extent::Part).is_empty());
    }

    #[test]
    fn a_new_test_is_a_difference() {
        let differences = recorded(&run(&before()[..3])).differences(&run(&before()), &Extent::Part);
        assert_eq!(differences, ["A.C, on thin\n  - is not recorded\n  + hangs"]);
    }

    #[test]
    fn a_cell_that_is_no_verdict_is_refused() {
        let table = "| test | thin |\n|---|---|\n| A.B | perhaps |\n";
        assert!(Recorded::parse(table).is_err());
        assert!(Recorded::parse(&table.replace("perhaps", "skip 1")).is_err());
    }

    #[test]
    fn the_table_in_the_repository_is_read_whole() {
        let table = include_str!("../RESULTS.md");
        let recorded = Recorded::parse(table).unwrap();
        let tests = table.lines().skip_while(|line| !line.starts_with("| test |")).skip(2);
        let tests = tests.take_while(|line| line.starts_with('|')).count();
        let names: BTreeSet<&String> = recorded.0.keys().map(|(test, _)| test).collect();
        assert!(tests > 200 && names.len() == tests, "{} of {tests}", names.len());
    }
}
