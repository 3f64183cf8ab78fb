//! The relay's time since its start, unaffected by changes of the wall clock.

use rustix::time::{ClockId, Timespec, clock_gettime};
use std::time::{Duration, SystemTime};

/// Counts from its creation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    begun: Timespec,
    /// The same moment on the wall clock.
    pub begun_at: SystemTime,
}

impl Clock {
    pub fn new() -> Self {
        Self { begun: clock_gettime(ClockId::Monotonic), begun_at: SystemTime::now() }
    }

    /// Its creation on `CLOCK_MONOTONIC`.
    pub fn begun_ns(&self) -> u64 {
        let begun = Duration::try_from(self.begun).unwrap_or_default();
        pdu::nanoseconds(begun)
    }

    pub fn now(&self) -> Duration {
        since(self.begun, clock_gettime(ClockId::Monotonic))
    }

    /// The difference to subtract from wall-clock times. Ask anew for each use, because the wall clock may be set.
    pub fn difference(&self) -> Timespec {
        let (now, now_of_day) = (self.now(), clock_gettime(ClockId::Realtime));
        now_of_day - Timespec::try_from(now).unwrap_or_default()
    }
}

/// From `earlier` to `later`; zero if it is the other way round.
pub(crate) fn since(earlier: Timespec, later: Timespec) -> Duration {
    later.checked_sub(earlier).and_then(|span| Duration::try_from(span).ok()).unwrap_or_default()
}

/// The processor time of the calling thread.
pub(crate) fn processor_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default()
}
