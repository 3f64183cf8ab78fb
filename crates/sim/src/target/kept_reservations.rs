//! Where the target keeps its reservations: what outlives its crashes.

use super::machine::Machine;
use device::unit_state::PersistedReservations;
use device::{Host, Persist, Stored};
use pdu::Duration;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// How long it takes to store them.
const STORING: Duration = Duration::from_millis(3);

/// The last that were stored.
pub(super) struct KeptReservations {
    machine: Rc<Machine>,
    last: Rc<RefCell<PersistedReservations>>,
    /// Every second time the new ones are found after a crash while they are stored, else the old ones.
    is_early: Cell<bool>,
}

impl KeptReservations {
    pub fn new(machine: Rc<Machine>) -> Self {
        Self { machine, last: Rc::default(), is_early: Cell::new(false) }
    }

    /// What a start finds.
    pub fn last(&self) -> PersistedReservations {
        self.last.borrow().clone()
    }
}

impl Persist for KeptReservations {
    fn store(&self, snapshot: PersistedReservations) -> Stored {
        if self.is_early.replace(!self.is_early.get()) {
            self.last.borrow_mut().clone_from(&snapshot);
        }
        let stored = self.machine.sleep_until(self.machine.now() + STORING);
        let last = Rc::clone(&self.last);
        Box::pin(async move {
            stored.await;
            *last.borrow_mut() = snapshot;
            Ok(())
        })
    }
}
