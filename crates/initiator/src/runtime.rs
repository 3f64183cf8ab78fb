//! tokio as a client's [`Host`].

use client::Host;
use futures_util::future::BoxFuture;
use pdu::{Duration, Instant};
use policy::ThreadTime;
use rustix::thread::gettid;
use rustix::time::{ClockId, clock_gettime};
use std::{fs, io};
use tokio::runtime::Handle;
use transport::Clock;

/// The tokio runtime on which a client was made.
pub(crate) struct TokioHost {
    runtime: Handle,
    clock: Clock,
}

impl TokioHost {
    pub(crate) fn current() -> Self {
        Self { runtime: Handle::current(), clock: Clock::start() }
    }
}

impl Host for TokioHost {
    fn now(&self) -> Instant {
        self.clock.now()
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) {
        self.runtime.spawn(task);
    }

    fn sleep_until(&self, time: Instant) -> BoxFuture<'static, ()> {
        let time = self.clock.to_std(time).into();
        Box::pin(async move { tokio::time::sleep_until(time).await })
    }

    fn entropy(&self, to: &mut [u8]) -> io::Result<()> {
        getrandom::fill(to).map_err(io::Error::other)
    }

    fn thread_time(&self) -> Option<ThreadTime> {
        let used = Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).ok()?;
        let busy = used.saturating_add(waited_for_processor().unwrap_or_default());
        Some(ThreadTime { thread: u64::try_from(gettid().as_raw_nonzero().get()).ok()?, busy })
    }
}

/// The time for which this thread was ready to run and others used the processors; `None` from a kernel that does not
/// count it.
fn waited_for_processor() -> Option<Duration> {
    let counters = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    counters.split_ascii_whitespace().nth(1)?.parse().ok().map(Duration::from_nanos)
}
