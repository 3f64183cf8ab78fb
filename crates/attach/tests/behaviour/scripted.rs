//! A backend that answers as a test says, when it says so.

use block::{Backend, BlockError, BlockErrorKind, Completer, Completion, Operation, Pending, Properties};
use std::collections::VecDeque;
use std::sync::Mutex;

/// A disk of a mebibyte. Operations wait until the test ends them; the order is the test's.
#[derive(Default)]
pub struct Scripted {
    waiting: Mutex<VecDeque<(Operation, Completer)>>,
}

pub const BYTES: u64 = 1 << 20;

impl Scripted {
    /// Ends the oldest operation well. Reads find bytes of this value.
    pub fn succeed(&self, value: u8) {
        let (operation, completer) = self.next();
        completer.complete(match operation {
            Operation::Read { mut buffer, .. } => {
                buffer.fill(value);
                Completion::read(buffer)
            }
            _ => Completion::complete(),
        });
    }

    /// Ends the oldest operation with an error.
    pub fn fail(&self, kind: BlockErrorKind) {
        let (operation, completer) = self.next();
        completer.complete(Completion::refused(operation, BlockError::new(kind, "scripted")));
    }

    /// The names of the operations that wait, the oldest first.
    pub fn waiting(&self) -> Vec<&'static str> {
        self.waiting.lock().unwrap().iter().map(|(operation, _)| operation.name()).collect()
    }

    /// Whether the oldest operation is a write that must be durable.
    pub fn oldest_is_forced(&self) -> bool {
        matches!(self.waiting.lock().unwrap().front(), Some((Operation::Write { fua: true, .. }, _)))
    }

    fn next(&self) -> (Operation, Completer) {
        self.waiting.lock().unwrap().pop_front().expect("an operation waits")
    }
}

impl Backend for Scripted {
    fn properties(&self) -> Properties {
        Properties {
            block_bytes: 512,
            blocks: BYTES / 512,
            read_only: false,
            thin: None,
            // Otherwise the disk would keep, and repeat, what it writes.
            volatile_cache: false,
        }
    }

    fn submit(&self, operation: Operation) -> Pending {
        if let Err(error) = self.properties().check(&operation) {
            return Pending::ready(Completion::refused(operation, error));
        }
        let (completer, pending) = Pending::channel();
        self.waiting.lock().unwrap().push_back((operation, completer));
        pending
    }
}
