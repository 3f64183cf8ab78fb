//! An operation under way: a future for whoever asked, and a promise for whoever works.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use crate::backend::Completion;
use crate::error::{BlockError, BlockErrorKind};

/// An operation under way; resolves to its [`Completion`], on any executor.
///
/// Dropping it does not stop the operation. It runs to its end, its memory is held until the device is done
/// with it, and only the news of the result is lost: after dropping a pending write, the range has unspecified
/// contents until a later write to it was *submitted after the first one ended*, which can no longer be known.
/// Keep the `Pending` of every write until it resolves.
#[must_use = "only the completion says whether and when the operation was done"]
pub struct Pending(State);

enum State {
    Ready(Completion),
    Waiting(Arc<Slot>),
    Taken,
}

impl Pending {
    /// An operation that is already over. Costs no allocation and no lock.
    pub fn ready(completion: Completion) -> Self {
        Self(State::Ready(completion))
    }

    /// The two halves, for a backend that completes later.
    pub fn channel() -> (Completer, Self) {
        let slot = Arc::new(Slot::default());
        (Completer { slot: Some(Arc::clone(&slot)) }, Self(State::Waiting(slot)))
    }

    /// The completion if it is already there: saves a driver the way through its executor.
    ///
    /// # Errors
    /// The pending operation itself, if it is still under way.
    pub fn try_take(self) -> Result<Completion, Self> {
        match self.0 {
            State::Ready(completion) => Ok(completion),
            State::Waiting(slot) => match slot.take() {
                Some(completion) => Ok(completion),
                None => Err(Self(State::Waiting(slot))),
            },
            State::Taken => Ok(abandoned("asked again for a completion")),
        }
    }
}

impl Future for Pending {
    type Output = Completion;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Completion> {
        match std::mem::replace(&mut self.0, State::Taken) {
            State::Ready(completion) => Poll::Ready(completion),
            State::Waiting(slot) => match slot.take_or_register(context.waker()) {
                Some(completion) => Poll::Ready(completion),
                None => {
                    self.0 = State::Waiting(slot);
                    Poll::Pending
                }
            },
            State::Taken => Poll::Ready(abandoned("asked again for a completion")),
        }
    }
}

/// The promise to complete one operation, from any thread. Dropped unfulfilled, it completes the operation as
/// [`Disconnected`](BlockErrorKind::Disconnected), so that nobody waits for ever.
pub struct Completer {
    slot: Option<Arc<Slot>>,
}

impl Completer {
    /// Delivers the completion and wakes whoever waits, on this thread: hold no lock that a waker could want.
    pub fn complete(mut self, completion: Completion) {
        self.deliver(completion);
    }

    fn deliver(&mut self, completion: Completion) {
        if let Some(slot) = self.slot.take() {
            slot.fill(completion);
        }
    }
}

impl Drop for Completer {
    fn drop(&mut self) {
        if self.slot.is_some() {
            self.deliver(abandoned("the device dropped the operation"));
        }
    }
}

fn abandoned(context: &'static str) -> Completion {
    Completion::failed(BlockError::new(BlockErrorKind::Disconnected, context))
}

#[derive(Default)]
struct Slot(Mutex<Meeting>);

/// Where the two halves meet.
#[derive(Default)]
struct Meeting {
    completion: Option<Completion>,
    waker: Option<Waker>,
}

impl Slot {
    fn take(&self) -> Option<Completion> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).completion.take()
    }

    fn take_or_register(&self, waker: &Waker) -> Option<Completion> {
        let mut meeting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let completion = meeting.completion.take();
        if completion.is_none() {
            match &mut meeting.waker {
                Some(known) => known.clone_from(waker),
                unknown => *unknown = Some(waker.clone()),
            }
        }
        completion
    }

    fn fill(&self, completion: Completion) {
        let waker = {
            let mut meeting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            meeting.completion = Some(completion);
            meeting.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}
