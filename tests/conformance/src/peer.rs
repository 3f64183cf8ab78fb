//! What other targets make of the same tests, kept in `peers/`: it does not change with ours.

use crate::results::{Results, Tally};
use crate::subject::Subject;
use crate::test_name::TestName;
use crate::verdict::Verdict;
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

/// One target's best verdict for every test.
#[derive(Debug)]
pub struct Peer {
    /// The name of the target.
    pub name: &'static str,
    /// By the name of the test.
    verdicts: BTreeMap<String, Best>,
}

/// The best that a test came to on any disk, the best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Best {
    /// The test passes on some disk.
    Pass,
    /// It leaves something out.
    Skip,
    /// An assertion fails.
    Fail,
    /// It does not end, or not in order.
    Hang,
}

impl Best {
    const ALL: [Self; 4] = [Self::Pass, Self::Skip, Self::Fail, Self::Hang];

    /// The same, without a reason.
    #[must_use]
    pub fn of(verdict: &Verdict) -> Self {
        match verdict {
            Verdict::Pass => Self::Pass,
            Verdict::Skip(_) => Self::Skip,
            Verdict::Fail(_) => Self::Fail,
            Verdict::Hang | Verdict::Crash(_) => Self::Hang,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Skip => "skip",
            Self::Fail => "fail",
            Self::Hang => "hang",
        }
    }
}

impl Peer {
    /// Reads what is kept of it, if anything is.
    ///
    /// # Errors
    /// If it cannot be read or understood.
    pub fn load(folder: &Path, subject: Subject) -> Result<Option<Self>> {
        let file = path(folder, subject);
        if !file.exists() {
            return Ok(None);
        }
        let text = fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
        Self::parse(subject, &text).with_context(|| file.display().to_string()).map(Some)
    }

    fn parse(subject: Subject, text: &str) -> Result<Self> {
        let mut verdicts = BTreeMap::new();
        for line in text.lines() {
            let best = |word| Best::ALL.into_iter().find(|best| best.word() == word);
            match line.split_once(' ').map(|(test, word)| (test, best(word))) {
                Some((test, Some(best))) => verdicts.insert(test.to_owned(), best),
                _ => bail!("\"{line}\" is no verdict"),
            };
        }
        Ok(Self { name: subject.name(), verdicts })
    }

    /// Keeps what was run.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn save(folder: &Path, subject: Subject, results: &Results) -> Result<()> {
        let mut text = String::new();
        for (test, row) in results.tests() {
            if let Some(best) = row.values().map(Best::of).min() {
                writeln!(text, "{test} {}", best.word())?;
            }
        }
        let file = path(folder, subject);
        fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))
    }

    /// Its verdict in a word; empty if it was not asked.
    #[must_use]
    pub fn verdict(&self, test: &TestName) -> &'static str {
        self.verdicts.get(&test.to_string()).map_or("", |best| best.word())
    }

    /// Whether it passes this test on some disk.
    #[must_use]
    pub fn passes(&self, test: &TestName) -> bool {
        self.verdicts.get(&test.to_string()) == Some(&Best::Pass)
    }

    /// How many of each.
    #[must_use]
    pub fn tally(&self) -> Tally {
        let mut tally = Tally::default();
        for best in self.verdicts.values() {
            tally.count(&match best {
                Best::Pass => Verdict::Pass,
                Best::Skip => Verdict::Skip(String::new()),
                Best::Fail => Verdict::Fail(String::new()),
                Best::Hang => Verdict::Hang,
            });
        }
        tally
    }
}

fn path(folder: &Path, subject: Subject) -> PathBuf {
    folder.join("peers").join(subject.name()).with_extension("txt")
}
