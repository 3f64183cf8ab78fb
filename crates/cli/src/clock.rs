//! The system clock, for the copy engine.

use block::Timer;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;
use tokio::time::Instant;
use transfer::Clock;

/// The machine's clock and its local time of day.
pub(crate) struct LocalClock {
    origin: Instant,
}

impl LocalClock {
    pub(crate) fn start() -> Self {
        Self { origin: Instant::now() }
    }
}

impl Timer for LocalClock {
    fn now(&self) -> Duration {
        self.origin.elapsed()
    }

    fn wait_until(&self, time: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(tokio::time::sleep_until(self.origin + time))
    }
}

impl Clock for LocalClock {
    fn time_of_day(&self) -> Duration {
        let time = jiff::Zoned::now().time();
        let seconds =
            i64::from(time.hour()) * 3600 + i64::from(time.minute()) * 60 + i64::from(time.second());
        Duration::from_secs(seconds.unsigned_abs())
    }
}
