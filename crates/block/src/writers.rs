//! Keeps writers out while somebody needs the device as it is.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::backend::Completion;
use crate::pending::{Completer, Pending};

/// An asynchronous lock that many writers share, or one has alone. Served in order of arrival.
///
/// Only for operations that run to their end (as [`detached`](crate::detached::detached) ones do): an abandoned waiter
/// would be let in and never leave.
#[derive(Default)]
pub(crate) struct Writers(Mutex<Queue>);

#[derive(Default)]
struct Queue {
    writing: usize,
    excluded: bool,
    waiting: VecDeque<(Wants, Completer)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Wants {
    ToWrite,
    ToBeAlone,
}

impl Writers {
    /// Waits until it may write, beside others.
    pub(crate) async fn write(&self) -> Writing<'_> {
        self.enter(Wants::ToWrite).await;
        Writing(self)
    }

    /// Waits until nobody writes, and keeps others from beginning.
    pub(crate) async fn exclude(&self) -> Excluded<'_> {
        self.enter(Wants::ToBeAlone).await;
        Excluded(self)
    }

    async fn enter(&self, wants: Wants) {
        if let Some(admitted) = self.queue_up(wants) {
            admitted.await;
        }
    }

    /// `None` if nobody is in the way, and the caller is in.
    fn queue_up(&self, wants: Wants) -> Option<Pending> {
        let mut queue = self.lock();
        if queue.waiting.is_empty() && queue.admits(wants) {
            queue.admit(wants);
            return None;
        }
        let (completer, pending) = Pending::channel();
        queue.waiting.push_back((wants, completer));
        Some(pending)
    }

    fn leave(&self, leave: impl FnOnce(&mut Queue)) {
        let mut queue = self.lock();
        leave(&mut queue);
        let mut admitted = Vec::new();
        while let Some((wants, _)) = queue.waiting.front()
            && queue.admits(*wants)
        {
            let Some((wants, completer)) = queue.waiting.pop_front() else { break };
            queue.admit(wants);
            admitted.push(completer);
        }
        drop(queue);
        admitted.into_iter().for_each(|completer| completer.complete(Completion::complete()));
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue {
    fn admits(&self, wants: Wants) -> bool {
        !self.excluded && (wants == Wants::ToWrite || self.writing == 0)
    }

    fn admit(&mut self, wants: Wants) {
        match wants {
            Wants::ToWrite => self.writing += 1,
            Wants::ToBeAlone => self.excluded = true,
        }
    }
}

/// A writer, until dropped.
pub(crate) struct Writing<'a>(&'a Writers);

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        self.0.leave(|queue| queue.writing -= 1);
    }
}

/// The only one, until dropped.
pub(crate) struct Excluded<'a>(&'a Writers);

impl Drop for Excluded<'_> {
    fn drop(&mut self) {
        self.0.leave(|queue| queue.excluded = false);
    }
}
