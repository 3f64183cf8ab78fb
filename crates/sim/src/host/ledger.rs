//! What the hosts of one world do and learn, for the checker.

use crate::checker::{BlockHistory, ReservationHistory, Stamp, Tap, Violation};
use crate::common::Common;
use crate::random::Random;
use crate::reached::{Reached, Way};
use crate::scenario::Scenario;
use pdu::Instant;

/// How far a run has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Commands and faults.
    Work,
    /// No more faults, no more new commands.
    Quiet,
    /// Reservations are given back.
    Unreserve,
    /// Every host reads the whole disk.
    ReadBack,
    /// Sessions are logged out.
    Farewell,
    /// Over.
    Done,
}

/// The books of one world.
pub struct Ledger {
    /// How far the world has come.
    pub phase: Phase,
    /// What the blocks may hold.
    pub history: BlockHistory,
    /// Who may do what.
    pub reservations: ReservationHistory,
    /// When an operation ended last.
    pub progress_at: Instant,
    /// What the hosts believe the blocks to hold.
    pub guesses: Vec<Stamp>,
    /// What is counted.
    pub tally: Tally,
    /// Operations that may still be begun.
    pub budget: u32,
    /// A crash at this moment must not lose anything of a copy.
    pub crash_wanted: Option<Random>,
    /// What was found wrong first.
    pub violation: Option<Violation>,
    /// Who keeps the trace.
    pub tap: Common<Tap>,
}

/// What a run counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Operations begun.
    pub commands: u64,
    /// Operations that ended with success.
    pub succeeded: u64,
    /// Operations that failed, or whose outcome is not known.
    pub failed: u64,
    /// Commands sent again.
    pub retries: u64,
    /// Task management functions that the hosts asked for.
    pub functions: u64,
    /// Blocks read and compared.
    pub blocks_read: u64,
    /// Flushes that ended with success.
    pub flushes: u64,
    /// What went another way than usual.
    pub reached: Reached,
}

impl Ledger {
    /// Empty books for a world.
    #[must_use]
    pub fn new(scenario: &Scenario, tap: Common<Tap>) -> Self {
        let blocks = scenario.disk.blocks;
        Self {
            phase: Phase::Work,
            history: BlockHistory::new(blocks, scenario.disk.volatile_cache),
            reservations: ReservationHistory::default(),
            progress_at: Instant::ZERO,
            guesses: (0..blocks).map(|_| Stamp::ZERO).collect(),
            tally: Tally::default(),
            budget: scenario.operations,
            crash_wanted: None,
            violation: None,
            tap,
        }
    }

    /// The target died, and its disk's cache with it.
    pub fn crash(&mut self) {
        self.history.lose_cache();
        match self.reservations.persists() {
            Some(true) => self.tally.reached.count(Way::RegistrationsKept),
            Some(false) => self.tally.reached.count(Way::RegistrationsLost),
            None => {}
        }
        self.reservations.crash();
    }

    /// Something is wrong.
    pub fn violate(&mut self, what: String) {
        self.violation.get_or_insert(Violation(what));
    }

    /// A line for a reader of the trace.
    pub fn trace(&self, now: Instant, line: impl FnOnce() -> String) {
        if let Some(trace) = &mut self.tap.lock().trace {
            trace.push(format!("{:>14} {}", now.0, line()));
        }
    }
}
