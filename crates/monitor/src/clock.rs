//! The clock of all measurements, which is monotonic; and the processor time of a thread.

use rustix::time::{ClockId, clock_gettime};

/// `CLOCK_MONOTONIC`, in nanoseconds: the same in every thread and namespace, and for the kernel's own events.
#[must_use]
pub fn monotonic_ns() -> u64 {
    nanoseconds(ClockId::Monotonic)
}

/// Processor time of the calling thread since it began.
pub(crate) fn processor_ns() -> u64 {
    nanoseconds(ClockId::ThreadCPUTime)
}

fn nanoseconds(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    let part = |part: i64| u64::try_from(part).unwrap_or_default();
    part(time.tv_sec) * 1_000_000_000 + part(time.tv_nsec)
}
