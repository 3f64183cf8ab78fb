//! What the hosts of one world do and learn, for the checker.

use crate::checker::{BlockHistory, ReservationHistory, Stamp, Tap, Violation};
use crate::host::Contest;
use crate::random::Random;
use crate::reached::{Reached, Way};
use crate::scenario::Scenario;
use crate::shared_cell::SharedCell;
use crate::unit::{UnitIndex, UnitPlan};
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
    /// Every host reads every unit.
    ReadBack,
    /// Sessions are logged out.
    Farewell,
    /// Every session has ended.
    Done,
}

/// The books of one world.
pub struct Ledger {
    /// How far the world has come.
    pub phase: Phase,
    /// What is known of each logical unit.
    pub units: Vec<UnitBooks>,
    /// When an operation ended last.
    pub progress_at: Instant,
    /// What is counted.
    pub tally: Tally,
    /// Operations that may still be begun.
    pub budget: u32,
    /// A crash at this moment must not lose anything of a copy.
    pub crash_wanted: Option<Random>,
    /// The copies to the unit that all hosts copy to.
    pub contest: Contest,
    /// What was found wrong first.
    pub violation: Option<Violation>,
    /// Who keeps the trace.
    pub tap: SharedCell<Tap>,
}

/// The books of one logical unit.
pub struct UnitBooks {
    /// What the blocks may hold.
    pub history: BlockHistory,
    /// Who may do what.
    pub reservations: ReservationHistory,
    /// What the hosts believe the blocks to hold.
    pub guesses: Vec<Stamp>,
    /// The target itself caches its writes.
    writes_back: bool,
}

impl UnitBooks {
    fn new(unit: &UnitPlan) -> Self {
        let blocks = unit.disk.blocks;
        Self {
            history: BlockHistory::new(blocks, unit.is_volatile()),
            reservations: ReservationHistory::default(),
            guesses: (0..blocks).map(|_| Stamp::ZERO).collect(),
            writes_back: unit.write_back_bytes.is_some(),
        }
    }
}

/// What a run counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Operations that hosts have begun.
    pub operations: u64,
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
    pub fn new(scenario: &Scenario, tap: SharedCell<Tap>) -> Self {
        Self {
            phase: Phase::Work,
            units: scenario.units.iter().map(UnitBooks::new).collect(),
            progress_at: Instant::ZERO,
            tally: Tally::default(),
            budget: scenario.operations,
            crash_wanted: None,
            contest: Contest::default(),
            violation: None,
            tap,
        }
    }

    /// The books of one unit.
    pub fn unit(&mut self, unit: UnitIndex) -> &mut UnitBooks {
        &mut self.units[unit.place()]
    }

    /// The target died, and its disks' caches with it.
    pub fn crash(&mut self) {
        for UnitBooks { history, reservations, writes_back, .. } in &mut self.units {
            let exposed = history.lose_cache();
            if *writes_back {
                self.tally.reached.count_many(Way::WriteBackLost, exposed);
            }
            match reservations.persists() {
                Some(true) => self.tally.reached.count(Way::RegistrationsKept),
                Some(false) => self.tally.reached.count(Way::RegistrationsLost),
                None => {}
            }
            reservations.crash();
        }
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
