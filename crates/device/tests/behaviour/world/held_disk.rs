//! A disk in memory that finishes what changes it, and flushes, when it is told to.

use block::{
    Backend, BlockError, BlockErrorKind, Completer, Completion, Operation, Pending, Properties, Ram,
};
use std::sync::{Arc, Mutex};

#[derive(Clone)]
pub struct HeldDisk(Arc<State>);

struct State {
    disk: Ram,
    /// What was submitted while it is held.
    held: Mutex<Vec<(Operation, Completer)>>,
    holds: Mutex<bool>,
}

impl HeldDisk {
    pub fn new(block_bytes: u32, blocks: u64) -> Self {
        let disk = Ram::new(block_bytes, blocks).unwrap();
        Self(Arc::new(State { disk, held: Mutex::default(), holds: Mutex::new(false) }))
    }

    /// From now on all but reads and questions waits.
    pub fn hold(&self) {
        *self.0.holds.lock().unwrap() = true;
    }

    /// What waits fails; what comes later neither waits nor fails.
    pub fn fail(&self) {
        *self.0.holds.lock().unwrap() = false;
        for (_, completer) in self.0.held.lock().unwrap().drain(..) {
            completer.complete(Completion::failed(BlockError::new(BlockErrorKind::Medium, "a test")));
        }
    }

    /// Carries out what waits; what comes later waits no more.
    pub fn release(&self) {
        *self.0.holds.lock().unwrap() = false;
        let held = std::mem::take(&mut *self.0.held.lock().unwrap());
        held.into_iter().for_each(|(operation, completer)| self.carry_out(operation, completer));
    }

    /// Carries out what was submitted first; the rest waits on.
    pub fn release_first(&self) {
        let (operation, completer) = self.0.held.lock().unwrap().remove(0);
        self.carry_out(operation, completer);
    }

    /// Carries out what was submitted last; the rest waits on.
    pub fn release_last(&self) {
        let (operation, completer) = self.0.held.lock().unwrap().pop().unwrap();
        self.carry_out(operation, completer);
    }

    /// What was submitted last fails; the rest waits on.
    pub fn fail_last(&self) {
        let (_, completer) = self.0.held.lock().unwrap().pop().unwrap();
        completer.complete(Completion::failed(BlockError::new(BlockErrorKind::Medium, "a test")));
    }

    fn carry_out(&self, operation: Operation, completer: Completer) {
        let Ok(completion) = self.0.disk.submit(operation).try_take() else { unreachable!("memory is fast") };
        completer.complete(completion);
    }

    pub fn held(&self) -> usize {
        self.0.held.lock().unwrap().len()
    }
}

impl Backend for HeldDisk {
    fn properties(&self) -> Properties {
        self.0.disk.properties()
    }

    fn submit(&self, operation: Operation) -> Pending {
        let can_wait =
            !matches!(operation, Operation::Read { .. } | Operation::Extents { .. } | Operation::Space);
        if !can_wait || !*self.0.holds.lock().unwrap() {
            return self.0.disk.submit(operation);
        }
        let (completer, pending) = Pending::channel();
        self.0.held.lock().unwrap().push((operation, completer));
        pending
    }
}
