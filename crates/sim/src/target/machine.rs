//! What the target runs on: an executor and timers in virtual time.

use crate::agenda::Agenda;
use crate::clock::Clock;
use crate::executor::{Executor, Task};
use crate::shared_cell::SharedCell;
use crate::sleep::Sleep;
use device::Host;
use pdu::Instant;
use std::future::Future;
use std::pin::Pin;
use std::task::Waker;

/// The target's runtime: the implementation of [`Host`] for virtual time.
pub(super) struct Machine {
    pub clock: Clock,
    pub executor: Executor,
    pub timers: SharedCell<Agenda<Waker>>,
}

impl Host for Machine {
    fn now(&self) -> Instant {
        self.clock.now()
    }

    fn spawn(&self, task: Task) {
        self.executor.spawn(task);
    }

    fn sleep_until(&self, time: Instant) -> Pin<Box<dyn Future<Output = ()>>> {
        Box::pin(Sleep::new(time, self.clock.clone(), self.timers.clone()))
    }
}
