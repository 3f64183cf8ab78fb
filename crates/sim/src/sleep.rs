//! Waiting in virtual time.

use crate::agenda::Agenda;
use crate::clock::Clock;
use crate::shared_cell::SharedCell;
use pdu::Instant;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

/// Resolves at a time.
pub struct Sleep {
    time: Instant,
    clock: Clock,
    timers: SharedCell<Agenda<Waker>>,
    /// The waker that is in `timers`.
    waker: Option<Waker>,
}

impl Sleep {
    /// Until `time` on this clock; `timers` are woken by whoever lets it advance.
    #[must_use]
    pub fn new(time: Instant, clock: Clock, timers: SharedCell<Agenda<Waker>>) -> Self {
        Self { time, clock, timers, waker: None }
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.clock.now() >= self.time {
            return Poll::Ready(());
        }
        if !self.waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
            self.timers.lock().push(self.time, cx.waker().clone());
            self.waker = Some(cx.waker().clone());
        }
        Poll::Pending
    }
}
