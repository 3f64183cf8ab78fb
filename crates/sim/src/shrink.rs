//! Finds how little of a failing seed it takes to fail.

use crate::scenario::{Reduction, Scenario};
use crate::world::{Outcome, run};

/// Runs that looking for less may take.
const RUNS_MAX: u32 = 200;

struct Search {
    seed: u64,
    best: Reduction,
    outcome: Outcome,
    runs: u32,
}

/// A reduction of `seed` that still fails, and how; `outcome` is how the whole seed failed. It need not fail in the
/// same way.
#[must_use]
pub fn shrink(seed: u64, outcome: Outcome) -> (Reduction, Outcome) {
    let mut search = Search { seed, best: Reduction::default(), outcome, runs: 0 };
    loop {
        let before = search.best.clone();
        search.fewer_faults();
        search.fewer_operations();
        search.fewer_hosts();
        search.fewer_connections();
        if search.best == before || search.runs >= RUNS_MAX {
            return (search.best, search.outcome);
        }
    }
}

impl Search {
    /// Whether it fails like this, too; if so, that is the new best.
    fn fails(&mut self, reduction: Reduction) -> bool {
        if self.runs >= RUNS_MAX {
            return false;
        }
        self.runs += 1;
        let outcome = run(Scenario::of(self.seed, &reduction), false);
        let fails = outcome.violation.is_some();
        if fails {
            self.best = reduction;
            self.outcome = outcome;
        }
        fails
    }

    /// Leaves faults out: halves of them, quarters, and in the end each by itself.
    fn fewer_faults(&mut self) {
        let left = |search: &Self| -> Vec<usize> {
            Scenario::of(search.seed, &search.best).faults.iter().map(|(place, _)| *place).collect()
        };
        let mut chunk = left(self).len();
        while chunk > 0 {
            for candidates in left(self).chunks(chunk) {
                let mut reduction = self.best.clone();
                reduction.faults_left_out.extend(candidates);
                reduction.faults_left_out.sort_unstable();
                self.fails(reduction);
            }
            chunk /= 2;
        }
    }

    fn fewer_operations(&mut self) {
        let mut step = self.best.operations / 2;
        while step > 0 {
            while self.best.operations > step
                && self.fails(Reduction { operations: self.best.operations - step, ..self.best.clone() })
            {
            }
            step /= 2;
        }
    }

    fn fewer_hosts(&mut self) {
        let mut hosts = Scenario::of(self.seed, &self.best).hosts.len();
        while hosts > 1 && self.fails(Reduction { hosts_max: hosts - 1, ..self.best.clone() }) {
            hosts -= 1;
        }
    }

    fn fewer_connections(&mut self) {
        let paths = Scenario::of(self.seed, &self.best).hosts;
        let most = paths.iter().flat_map(|host| &host.paths).map(|path| path.connections).max();
        let mut most = most.unwrap_or(1);
        while most > 1 && self.fails(Reduction { connections_max: most - 1, ..self.best.clone() }) {
            most -= 1;
        }
    }
}
