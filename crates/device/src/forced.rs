//! Forced operations: flushes, and writes with FUA or with the write cache off. Their success is a promise about the
//! medium.
//!
//! A backend may report the loss of its cache only once, to the first forced operation that asks. Linux does so for
//! every open file: one `fdatasync` or `RWF_DSYNC` write reports the error, and concurrent ones succeed. A forced
//! operation therefore succeeds only when all that began before its end have ended too, and fails with any of them.

use block::{BlockError, BlockErrorKind};
use futures_channel::oneshot;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

/// The forced operations of one unit.
#[derive(Default)]
pub(crate) struct ForcedOperations {
    /// The number of the next one.
    next: Cell<u64>,
    /// The running ones, each with the senders that it drops when it ends.
    under_way: RefCell<BTreeMap<u64, Vec<oneshot::Sender<()>>>>,
    /// Those with smaller numbers that had not ended have failed.
    failed_before: Cell<u64>,
}

/// One forced operation, from before its submission.
pub(crate) struct Forced {
    all: Rc<ForcedOperations>,
    number: u64,
}

impl ForcedOperations {
    /// Starts a forced operation.
    pub(crate) fn begin(self: &Rc<Self>) -> Forced {
        let number = self.next.replace(self.next.get() + 1);
        self.under_way.borrow_mut().insert(number, Vec::new());
        Forced { all: Rc::clone(self), number }
    }

    /// Resolves when the oldest running operation has ended; `None` if none is older than `number`.
    fn end_of_oldest(&self, number: u64) -> Option<oneshot::Receiver<()>> {
        let mut under_way = self.under_way.borrow_mut();
        let mut oldest = under_way.first_entry().filter(|oldest| *oldest.key() < number)?;
        let (sender, end) = oneshot::channel();
        oldest.get_mut().push(sender);
        Some(end)
    }
}

impl Forced {
    /// Whether no other is running.
    pub(crate) fn is_alone(&self) -> bool {
        self.all.under_way.borrow().len() == 1
    }

    /// The backend reported a failure: every operation that has not ended fails too.
    pub(crate) fn fail(self) {
        self.all.failed_before.set(self.all.next.get());
    }

    /// The backend reported success. Waits for the operations that may have received the report of a loss instead.
    ///
    /// # Errors
    /// One of them failed.
    pub(crate) async fn succeed(self) -> Result<(), BlockError> {
        let (all, number) = (Rc::clone(&self.all), self.number);
        let later = all.next.get();
        drop(self);
        while let Some(end) = all.end_of_oldest(later) {
            // The sender is dropped at the end of its operation.
            let _ = end.await;
        }
        if number < all.failed_before.get() {
            let context = "forcing writes to the medium beside an operation that could not";
            return Err(BlockError::new(BlockErrorKind::Medium, context));
        }
        Ok(())
    }
}

impl Drop for Forced {
    fn drop(&mut self) {
        self.all.under_way.borrow_mut().remove(&self.number);
    }
}
