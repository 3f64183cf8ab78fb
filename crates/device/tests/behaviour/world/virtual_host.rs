//! An event loop in virtual time: everything that is ready runs, then time jumps to the next timer.

use pdu::Instant;
use ropewalk_device::{Host, LocalFuture};
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

#[derive(Default)]
pub struct VirtualHost {
    now: Rc<Cell<Instant>>,
    /// What was spawned since the last round.
    new: RefCell<Vec<LocalFuture>>,
    tasks: RefCell<Vec<Task>>,
    timers: Rc<RefCell<Vec<(Instant, Waker)>>>,
}

struct Task {
    future: LocalFuture,
    flag: Arc<Flag>,
}

/// Whether a task wants to be polled.
struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl VirtualHost {
    /// Polls tasks until none of them wants to be polled. Whether there was any.
    pub fn settle(&self) -> bool {
        let mut busy = false;
        loop {
            let fresh = |future| Task { future, flag: Arc::new(Flag(AtomicBool::new(true))) };
            self.tasks.borrow_mut().extend(self.new.take().into_iter().map(fresh));
            let mut polled = false;
            // Out of the cell: what is polled may spawn.
            let mut tasks = self.tasks.take();
            tasks.retain_mut(|task| {
                if !task.flag.0.swap(false, Ordering::Relaxed) {
                    return true;
                }
                polled = true;
                let waker = Waker::from(Arc::clone(&task.flag));
                task.future.as_mut().poll(&mut Context::from_waker(&waker)).is_pending()
            });
            self.tasks.replace(tasks);
            if !polled && self.new.borrow().is_empty() {
                return busy;
            }
            busy = true;
        }
    }

    /// Jumps to the next timer. `false` if there is none.
    pub fn advance(&self) -> bool {
        let Some(next) = self.timers.borrow().iter().map(|(at, _)| *at).min() else { return false };
        self.now.set(self.now.get().max(next));
        let due = self.timers.borrow_mut().extract_if(.., |(at, _)| *at <= next).collect::<Vec<_>>();
        due.into_iter().for_each(|(_, waker)| waker.wake());
        true
    }
}

impl Host for VirtualHost {
    fn now(&self) -> Instant {
        self.now.get()
    }

    fn spawn(&self, task: LocalFuture) {
        self.new.borrow_mut().push(task);
    }

    fn sleep_until(&self, time: Instant) -> LocalFuture {
        let (now, timers) = (Rc::clone(&self.now), Rc::clone(&self.timers));
        Box::pin(poll_fn(move |cx| {
            if now.get() >= time {
                return Poll::Ready(());
            }
            timers.borrow_mut().push((time, cx.waker().clone()));
            Poll::Pending
        }))
    }
}
