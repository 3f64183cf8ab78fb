//! What all workers together have seen.

use hdrhistogram::Histogram;
use std::cell::{Cell, RefCell};
use std::time::Duration;

/// Counted while the load runs.
pub struct Tally {
    pub latency_us: RefCell<Histogram<u64>>,
    pub mismatches: Cell<u64>,
    pub errors: Cell<u64>,
    /// The first of them.
    pub first_errors: RefCell<Vec<String>>,
    /// Flushes that were told that the target had been started anew since the one before.
    pub restarts_told: Cell<u64>,
    /// There is to be no more load.
    pub over: Cell<bool>,
}

/// Errors that are repeated in the report: the others say the same.
const ERRORS_KEPT: usize = 8;

/// The longest that is told apart from longer ones: ten minutes.
const LATENCY_US_MAX: u64 = 600_000_000;

/// Three digits of a latency are more than can be reproduced.
const LATENCY_DIGITS: u8 = 3;

impl Tally {
    pub fn new() -> anyhow::Result<Self> {
        Ok(Self {
            latency_us: RefCell::new(Histogram::new_with_bounds(1, LATENCY_US_MAX, LATENCY_DIGITS)?),
            mismatches: Cell::default(),
            errors: Cell::default(),
            first_errors: RefCell::default(),
            restarts_told: Cell::default(),
            over: Cell::default(),
        })
    }

    pub fn answered(&self, after: Duration) {
        self.latency_us.borrow_mut().saturating_record(u64::try_from(after.as_micros()).unwrap_or(u64::MAX));
    }

    pub fn failed(&self, error: String) {
        self.errors.set(self.errors.get() + 1);
        let mut kept = self.first_errors.borrow_mut();
        if kept.len() < ERRORS_KEPT {
            kept.push(error);
        }
    }

    pub fn mismatched(&self, block: u64) {
        self.mismatches.set(self.mismatches.get() + 1);
        let mut kept = self.first_errors.borrow_mut();
        if kept.len() < ERRORS_KEPT {
            kept.push(format!("block {block} does not hold what was last written to it"));
        }
    }
}
