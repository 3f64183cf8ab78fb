//! The timer of a slowed-down LUN.

use block::Timer;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;
use tokio::time::Instant;

/// The timers of the shard on which it is used.
pub(crate) struct PaceTimer {
    origin: Instant,
}

impl PaceTimer {
    pub(crate) fn start() -> Self {
        Self { origin: Instant::now() }
    }
}

impl Timer for PaceTimer {
    fn now(&self) -> Duration {
        self.origin.elapsed()
    }

    fn wait_until(&self, time: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(tokio::time::sleep_until(self.origin + time))
    }
}
