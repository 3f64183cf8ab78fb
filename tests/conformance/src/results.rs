//! The verdicts of a run, and the table of them: `RESULTS.md`.

use crate::peer::{Best, Peer};
use crate::run::Case;
use crate::subject::Configuration;
use crate::test_name::TestName;
use crate::verdict::Verdict;
use std::collections::BTreeMap;
use std::fmt::{self, Write};

/// What became of every test in every configuration.
#[derive(Debug)]
pub struct Results {
    /// The columns, in order.
    pub configurations: Vec<&'static Configuration>,
    verdicts: BTreeMap<TestName, BTreeMap<&'static str, Verdict>>,
}

impl Results {
    /// Sorts what was run.
    #[must_use]
    pub fn new(configurations: Vec<&'static Configuration>, cases: Vec<Case>) -> Self {
        let mut verdicts: BTreeMap<TestName, BTreeMap<_, _>> = BTreeMap::new();
        for Case { test, configuration, verdict } in cases {
            verdicts.entry(test).or_default().insert(configuration, verdict);
        }
        Self { configurations, verdicts }
    }

    /// Every test, by name, with its verdict in each configuration.
    pub fn tests(&self) -> impl Iterator<Item = (&TestName, &BTreeMap<&'static str, Verdict>)> {
        self.verdicts.iter()
    }

    /// Tests that pass somewhere, and all.
    #[must_use]
    pub fn passing_somewhere(&self) -> (usize, usize) {
        let passing =
            self.verdicts.values().filter(|row| row.values().any(|verdict| *verdict == Verdict::Pass));
        (passing.count(), self.verdicts.len())
    }

    /// The document, with a column for each peer.
    ///
    /// # Errors
    /// None: writing to a string does not fail.
    pub fn markdown(&self, peers: &[Peer]) -> Result<String, fmt::Error> {
        let mut text = String::from(INTRODUCTION);
        self.write_summary(peers, &mut text)?;
        let mut reasons = Reasons::default();
        self.write_tests(peers, &mut reasons, &mut text)?;
        text.push_str("\n## The numbers\n\n");
        for (number, reason) in (1..).zip(&reasons.0) {
            writeln!(text, "{number}. {reason}")?;
        }
        Ok(text)
    }

    fn write_summary(&self, peers: &[Peer], text: &mut String) -> fmt::Result {
        text.push_str(
            "| configuration | what it is | pass | skip | fail | hang |\n|---|---|--:|--:|--:|--:|\n",
        );
        for configuration in &self.configurations {
            let Configuration { name, about, .. } = configuration;
            let mut tally = Tally::default();
            self.verdicts.values().filter_map(|row| row.get(name)).for_each(|verdict| tally.count(verdict));
            writeln!(text, "| {name} | {about} | {tally} |")?;
        }
        let mut best = Tally::default();
        self.verdicts
            .values()
            .filter_map(|row| row.values().min_by_key(|v| Best::of(v)))
            .for_each(|v| best.count(v));
        writeln!(text, "| **ropewalk** | each test's best | {best} |")?;
        for peer in peers {
            writeln!(text, "| {} | each test's best | {} |", peer.name, peer.tally())?;
        }
        let only_there = |test: &&TestName| peers.iter().any(|peer| peer.passes(test));
        let failing = self.verdicts.iter().filter(|(_, row)| !row.values().any(|v| *v == Verdict::Pass));
        let missed: Vec<String> =
            failing.map(|(test, _)| test).filter(only_there).map(|test| format!("`{test}`")).collect();
        if !missed.is_empty() {
            writeln!(text, "\nPassed by another target, and not by this one: {}.", missed.join(", "))?;
        }
        Ok(())
    }

    fn write_tests(&self, peers: &[Peer], reasons: &mut Reasons, text: &mut String) -> fmt::Result {
        text.push_str("\n## Every test\n\n| test |");
        for title in self.titles(peers) {
            write!(text, " {title} |")?;
        }
        let columns = self.configurations.len() + peers.len();
        writeln!(text, "\n|---|{}", "---|".repeat(columns))?;
        for (test, row) in &self.verdicts {
            write!(text, "| {test} |")?;
            for configuration in &self.configurations {
                write!(
                    text,
                    " {} |",
                    row.get(configuration.name).map_or_else(String::new, |v| reasons.cell(v))
                )?;
            }
            for peer in peers {
                write!(text, " {} |", peer.verdict(test))?;
            }
            text.push('\n');
        }
        Ok(())
    }

    fn titles(&self, peers: &[Peer]) -> Vec<String> {
        let ours = self.configurations.iter().map(|configuration| configuration.name.to_owned());
        ours.chain(peers.iter().map(|peer| peer.name.to_owned())).collect()
    }
}

const INTRODUCTION: &str = "\
# Conformance: results

libiscsi's `iscsi-test-cu`, families ALL and LINUX, each test in a process of its own on each kind of disk.
`make test-conformance` fails if a verdict or a message differs from this table, and prints the difference;
`make conformance-table` writes the table anew. [EXPECTED.md](EXPECTED.md) gives the reason for every failure, and for
every test that is skipped on all disks. The columns of other targets were made by `--peer tgt` and `--peer istgt` with
the packages of Debian 12; SPDK and gotgt, which it does not have, are not shown.

";

/// Columns of a summary line.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    pass: usize,
    skip: usize,
    fail: usize,
    hang: usize,
}

impl Tally {
    /// Adds a test with this verdict.
    pub fn count(&mut self, verdict: &Verdict) {
        *match verdict {
            Verdict::Pass => &mut self.pass,
            Verdict::Skip(_) => &mut self.skip,
            Verdict::Fail(_) => &mut self.fail,
            Verdict::Hang | Verdict::Crash(_) => &mut self.hang,
        } += 1;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} | {} | {} | {}", self.pass, self.skip, self.fail, self.hang)
    }
}

/// Reasons by number, in the order in which they are first needed.
#[derive(Debug, Default)]
struct Reasons(Vec<String>);

impl Reasons {
    fn cell(&mut self, verdict: &Verdict) -> String {
        match verdict {
            Verdict::Pass => "pass".to_owned(),
            Verdict::Skip(why) => format!("skip {}", self.number(why)),
            Verdict::Fail(what) => format!("**FAIL** {}", self.number(what)),
            Verdict::Hang => "**HANG**".to_owned(),
            Verdict::Crash(how) => format!("**CRASH** {}", self.number(how)),
        }
    }

    fn number(&mut self, reason: &str) -> usize {
        let known = self.0.iter().position(|known| known == reason);
        let index = known.unwrap_or_else(|| {
            self.0.push(reason.to_owned());
            self.0.len() - 1
        });
        index + 1
    }
}
