//! Deadlines: pings, declined commands, and commands that the target does not answer.

use super::{Driver, Shared};
use pdu::Instant;
use session::seam::Endpoint;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

/// Declined commands, each with the time to send it again.
#[derive(Default)]
pub(super) struct Pauses {
    heap: BinaryHeap<Reverse<(Instant, usize)>>,
    /// The deadline that the timer's task waits for.
    armed: Option<Instant>,
}

impl Pauses {
    pub fn push(&mut self, until: Instant, request: usize) {
        self.heap.push(Reverse((until, request)));
    }

    pub fn take_all(&mut self) -> Vec<usize> {
        std::mem::take(&mut self.heap).into_iter().map(|Reverse((_, key))| key).collect()
    }

    fn take_due(&mut self, now: Instant) -> Option<usize> {
        let Reverse((until, key)) = *self.heap.peek()?;
        (until <= now).then(|| {
            self.heap.pop();
            key
        })
    }
}

impl Driver {
    fn deadline(&self) -> Option<Instant> {
        let pause = self.pauses.heap.peek().map(|Reverse((until, _))| *until);
        [pause, self.core_deadline(), self.check_deadline()].into_iter().flatten().min()
    }

    /// Whether the timer's task must learn of an earlier deadline.
    pub(super) fn arm_timer(&mut self) -> bool {
        let earlier = match (self.deadline(), self.pauses.armed) {
            (Some(deadline), Some(armed)) => deadline < armed,
            (deadline, armed) => deadline.is_some() && armed.is_none(),
        };
        if earlier {
            self.pauses.armed = self.deadline();
        }
        earlier || self.is_over()
    }

    fn handle_timeout(&mut self, now: Instant) -> Option<Instant> {
        while let Some(key) = self.pauses.take_due(now) {
            self.enqueue(key);
        }
        for path in &mut self.paths {
            if let Some(core) = &mut path.core
                && core.poll_timeout().is_some_and(|deadline| deadline <= now)
            {
                core.handle_timeout(now);
            }
        }
        self.check_commands(now);
        self.pauses.armed = self.deadline();
        self.pauses.armed
    }
}

/// Runs until nothing is left to do.
pub(crate) async fn run(shared: Arc<Shared>) {
    loop {
        let moved = shared.deadline_moved.listen();
        let (deadline, over) = shared.with(|driver, now| (driver.handle_timeout(now), driver.is_over()));
        if over {
            return;
        }
        match deadline {
            Some(deadline) => {
                // Both are a reason to check again.
                let _ = shared.environment.until(deadline, moved).await;
            }
            None => moved.await,
        }
    }
}
