//! An asynchronous lock, served in order of arrival.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::backend::Completion;
use crate::pending::{Completer, Pending};

/// Only for operations that run to their end (as [`detached`](crate::detached::detached) ones do): an abandoned waiter
/// would be handed the turn and keep it.
#[derive(Default)]
pub(crate) struct Turn(Mutex<Queue>);

#[derive(Default)]
struct Queue {
    taken: bool,
    waiting: VecDeque<Completer>,
}

impl Turn {
    pub(crate) async fn take(&self) -> Taken<'_> {
        if let Some(handed_over) = self.queue_up() {
            handed_over.await;
        }
        Taken(self)
    }

    /// `None` if nobody was waiting, and the caller has the turn.
    fn queue_up(&self) -> Option<Pending> {
        let mut queue = self.lock();
        if !queue.taken {
            queue.taken = true;
            return None;
        }
        let (completer, pending) = Pending::channel();
        queue.waiting.push_back(completer);
        Some(pending)
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The turn, until dropped.
pub(crate) struct Taken<'a>(&'a Turn);

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        let mut queue = self.0.lock();
        let next = queue.waiting.pop_front();
        queue.taken = next.is_some();
        drop(queue);
        if let Some(next) = next {
            next.complete(Completion::complete());
        }
    }
}
