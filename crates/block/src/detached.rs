//! Multi-step operations that run whether or not they are polled.
//!
//! A wrapper such as `volatile` answers one operation by several operations of the device beneath. The thread that
//! completes a step polls the future, so it needs no executor and no thread, and keeps the promise that an operation
//! runs once submitted.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use crate::backend::Completion;
use crate::pending::{Completer, Pending};

/// Starts `steps` on this thread; returns the pending end.
pub(crate) fn detached(steps: impl Future<Output = Completion> + Send + 'static) -> Pending {
    let (completer, pending) = Pending::channel();
    let running = Running { steps: Box::pin(steps), completer };
    Arc::new(Task { running: Mutex::new(Some(running)), queued: AtomicBool::new(false) }).wake();
    pending
}

struct Task {
    /// `None` once it has ended.
    running: Mutex<Option<Running>>,
    /// Set while a poll is due; further wake-ups add nothing.
    queued: AtomicBool,
}

struct Running {
    steps: Pin<Box<dyn Future<Output = Completion> + Send>>,
    completer: Completer,
}

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        if !self.queued.swap(true, Ordering::AcqRel) {
            run(self);
        }
    }
}

thread_local! {
    /// Tasks that this thread will poll before it returns to its own work.
    static QUEUE: RefCell<VecDeque<Arc<Task>>> = const { RefCell::new(VecDeque::new()) };
    static POLLING: Cell<bool> = const { Cell::new(false) };
}

/// Polls the task, and every task that wakes meanwhile, one after another instead of recursively. A long chain of
/// waiting operations thus needs no deep stack, and a task may wake itself.
fn run(task: Arc<Task>) {
    QUEUE.with(|queue| queue.borrow_mut().push_back(task));
    if POLLING.replace(true) {
        return;
    }
    let _guard = StopPolling;
    while let Some(task) = QUEUE.with(|queue| queue.borrow_mut().pop_front()) {
        task.poll();
    }
}

/// Runs even if a step panics, so that this thread does not queue without polling afterwards.
struct StopPolling;

impl Drop for StopPolling {
    fn drop(&mut self) {
        POLLING.set(false);
    }
}

impl Task {
    fn poll(self: Arc<Self>) {
        let waker = Waker::from(Arc::clone(&self));
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        // Cleared before polling: a wake-up during the poll must cause another poll.
        self.queued.store(false, Ordering::Release);
        let Some(mut task) = running.take() else { return };
        match task.steps.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Pending => *running = Some(task),
            Poll::Ready(completion) => {
                drop(running);
                drop(task.steps);
                task.completer.complete(completion);
            }
        }
    }
}
