//! The event loop of a shard, as the device server sees it.

use device::{Host, LocalFuture};
use pdu::Instant;
use transport::Clock;

/// The local tasks and timers of the thread that uses it.
pub(crate) struct TokioHost {
    clock: Clock,
}

impl TokioHost {
    pub(crate) fn new(clock: Clock) -> Self {
        Self { clock }
    }
}

impl Host for TokioHost {
    fn now(&self) -> Instant {
        self.clock.now()
    }

    fn spawn(&self, task: LocalFuture) {
        tokio::task::spawn_local(task);
    }

    fn sleep_until(&self, time: Instant) -> LocalFuture {
        Box::pin(tokio::time::sleep_until(self.clock.to_std(time).into()))
    }
}
