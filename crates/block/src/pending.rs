//! An outstanding operation: a future for its caller, and a promise for its device.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use crate::backend::Completion;
use crate::error::{BlockError, BlockErrorKind};

/// An outstanding operation; resolves to its [`Completion`], on any executor.
///
/// Dropping it does not stop the operation. The operation runs to its end, and its memory is held until then; only the
/// result is lost. After a pending write is dropped, the range has unspecified contents until a later write to it is
/// *submitted after the first one has ended*, which the caller can no longer know. Keep the `Pending` of every write
/// until it resolves.
#[must_use = "only the completion says whether and when the operation was done"]
pub struct Pending(State);

enum State {
    Ready(Completion),
    Waiting(Arc<Slot>),
    Taken,
}

impl Pending {
    /// An operation that has already ended. Costs no allocation and no lock.
    pub fn ready(completion: Completion) -> Self {
        Self(State::Ready(completion))
    }

    /// The two halves, for a backend that completes later.
    pub fn channel() -> (Completer, Self) {
        let slot = Arc::new(Slot::default());
        (Completer { slot: Some(Arc::clone(&slot)) }, Self(State::Waiting(slot)))
    }

    /// The completion, if it is ready: saves a driver the way through its executor.
    ///
    /// # Errors
    /// The pending operation itself, if it is still outstanding.
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

/// The promise to complete one operation, from any thread. If dropped, it completes the operation as
/// [`Disconnected`](BlockErrorKind::Disconnected), so that nobody waits for ever.
pub struct Completer {
    slot: Option<Arc<Slot>>,
}

impl Completer {
    /// Delivers the completion and wakes the waiter, on this thread. Hold no lock that a waker could need.
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

/// The shared state of both halves.
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
