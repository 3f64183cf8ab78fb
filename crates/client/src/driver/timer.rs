//! Deadlines: pings, declined commands, commands that the target does not answer, and connections that it does not
//! close.

use super::path::Closing;
use super::slots::RequestId;
use super::{Driver, Shared};
use crate::path_id::PathId;
use pdu::{Instant, LaneId};
use session::seam::Endpoint;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::{Arc, PoisonError};

/// Declined commands, each with the time to send it again.
#[derive(Default)]
pub(super) struct Pauses {
    heap: BinaryHeap<Reverse<(Instant, RequestId)>>,
    /// The deadline that the timer's task waits for.
    armed: Option<Instant>,
}

impl Pauses {
    pub fn push(&mut self, until: Instant, request: RequestId) {
        self.heap.push(Reverse((until, request)));
    }

    pub fn take_all(&mut self) -> Vec<RequestId> {
        std::mem::take(&mut self.heap).into_iter().map(|Reverse((_, key))| key).collect()
    }

    fn take_due(&mut self, now: Instant) -> Option<RequestId> {
        let Reverse((until, key)) = *self.heap.peek()?;
        (until <= now).then(|| {
            self.heap.pop();
            key
        })
    }
}

/// When the timer's task is to wake.
struct Wake {
    at: Instant,
    /// To handle timeouts, and not only to look.
    is_timeout: bool,
}

impl Driver {
    /// When something is to be done unless something else happens before.
    fn deadline(&self) -> Option<Instant> {
        let pause = self.pauses.heap.peek().map(|Reverse((until, _))| *until);
        let closing = self.closing_lanes().map(|(_, _, closing)| closing.by).min();
        let looks = [self.look_again, self.next_probe, self.tuning.due()].into_iter().flatten().min();
        let deadlines = [pause, closing, self.core_deadline(), self.check_deadline(), looks];
        deadlines.into_iter().flatten().min()
    }

    /// When the timer's task is to wake.
    fn wake_at(&self) -> Option<Instant> {
        [self.deadline(), self.looks.next()].into_iter().flatten().min()
    }

    /// Whether the timer's task must learn of an earlier deadline.
    pub(super) fn arm_timer(&mut self) -> bool {
        let deadline = self.wake_at();
        let earlier = match (deadline, self.pauses.armed) {
            (Some(deadline), Some(armed)) => deadline < armed,
            (deadline, armed) => deadline.is_some() && armed.is_none(),
        };
        if earlier {
            self.pauses.armed = deadline;
        }
        earlier || self.is_over()
    }

    /// The connections that wait for the target to close them, with their paths.
    fn closing_lanes(&self) -> impl Iterator<Item = (PathId, LaneId, Closing)> {
        let lanes = self.paths.iter().flat_map(|path| path.lanes.iter().map(|lane| (path.id, lane)));
        lanes.filter_map(|(at, lane)| lane.closing.map(|closing| (at, lane.id, closing)))
    }

    fn close_overdue(&mut self, now: Instant) {
        let overdue: Vec<_> = self.closing_lanes().filter(|(_, _, closing)| closing.by <= now).collect();
        for (at, lane, closing) in overdue {
            self.paths[at].wakers.wake(lane);
            self.drop_lane(at, lane, closing.loss, now);
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        while let Some(key) = self.pauses.take_due(now) {
            self.enqueue(key);
        }
        self.close_overdue(now);
        for path in self.paths.iter_mut() {
            if let Some(core) = &mut path.core
                && core.poll_timeout().is_some_and(|deadline| deadline <= now)
            {
                core.handle_timeout(now);
            }
        }
        self.check_commands(now);
        // After this, the commands that were held back are offered again.
        self.look_again = self.look_again.filter(|at| *at > now);
        self.next_probe = self.next_probe.filter(|at| *at > now);
    }

    /// Looks if it is time; returns when to wake next.
    fn wake(&mut self, now: Instant) -> Option<Wake> {
        self.look_if_due(now);
        self.pauses.armed = self.wake_at();
        self.pauses
            .armed
            .map(|at| Wake { at, is_timeout: self.deadline().is_some_and(|deadline| deadline <= at) })
    }
}

impl Shared {
    /// Looks if it is time, and carries out nothing: what waits for a wake-up that was forgotten must not get it here.
    fn look(&self) -> Option<Wake> {
        let mut driver = self.driver.lock().unwrap_or_else(PoisonError::into_inner);
        let now = self.environment.now();
        driver.wake(now)
    }
}

/// Runs until nothing is left to do.
pub(crate) async fn run(shared: Arc<Shared>) {
    loop {
        let mut moved = shared.deadline_moved.listen();
        let over = shared.with(|driver, now| {
            driver.handle_timeout(now);
            driver.is_over()
        });
        if over {
            return;
        }
        loop {
            let Some(wake) = shared.look() else {
                moved.await;
                break;
            };
            let has_moved = shared.environment.until(wake.at, &mut moved).await.is_some();
            if has_moved || wake.is_timeout {
                break;
            }
        }
    }
}
