//! What the target runs on: an executor and timers in virtual time.

use crate::agenda::Agenda;
use crate::clock::Clock;
use crate::executor::{Executor, Task};
use device::Host;
use pdu::Instant;
use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// One machine.
pub(super) struct Machine {
    pub clock: Clock,
    pub executor: Executor,
    pub timers: Rc<RefCell<Agenda<Waker>>>,
}

impl Host for Machine {
    fn now(&self) -> Instant {
        self.clock.now()
    }

    fn spawn(&self, task: Task) {
        self.executor.spawn(task);
    }

    fn sleep_until(&self, time: Instant) -> Pin<Box<dyn Future<Output = ()>>> {
        let (clock, timers) = (self.clock.clone(), Rc::clone(&self.timers));
        Box::pin(Sleep { time, clock, timers, waker: None })
    }
}

struct Sleep {
    time: Instant,
    clock: Clock,
    timers: Rc<RefCell<Agenda<Waker>>>,
    /// Who will be woken.
    waker: Option<Waker>,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.clock.now() >= self.time {
            return Poll::Ready(());
        }
        if !self.waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
            self.timers.borrow_mut().push(self.time, cx.waker().clone());
            self.waker = Some(cx.waker().clone());
        }
        Poll::Pending
    }
}
