//! A slow disk: any device, with its rate limited and latency added.

use std::future::Future;
use std::num::NonZeroU64;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::backend::{Backend, Operation, Properties};
use crate::detached::detached;
use crate::pending::Pending;

/// The time of a [`Paced`]: an event loop's timers, or a simulator's.
pub trait Timer: Send + Sync {
    /// The time since some fixed moment.
    fn now(&self) -> Duration;

    /// Resolves when [`now`](Timer::now) has reached `time`. Its waker may run the operation on the waking thread.
    fn wait_until(&self, time: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>>;
}

/// The pace of a slow disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// The rate of reads and writes together, one after another; `None`: no limit. Zeroing and unmapping cost none of
    /// it.
    pub bytes_per_second: Option<NonZeroU64>,
    /// Added to every operation; operations wait concurrently.
    pub latency: Duration,
    /// The most additional latency, evenly distributed, so that operations overtake each other.
    pub jitter: Duration,
    /// The same seed and the same order of operations give the same jitter.
    pub seed: u64,
}

/// A device that delays every operation.
pub struct Paced {
    inner: Arc<dyn Backend>,
    timer: Arc<dyn Timer>,
    pace: Pace,
    state: Mutex<State>,
}

struct State {
    /// The time at which the last byte admitted so far will have moved.
    busy_until: Duration,
    random: SplitMix64,
}

impl Paced {
    /// Slows `inner` down.
    #[must_use]
    pub fn new(inner: Arc<dyn Backend>, timer: Arc<dyn Timer>, pace: Pace) -> Self {
        let state = State { busy_until: Duration::ZERO, random: SplitMix64(pace.seed) };
        Self { inner, timer, pace, state: Mutex::new(state) }
    }

    /// The time at which an operation submitted now may go on to the device.
    fn due(&self, now: Duration, moved_bytes: u64) -> Duration {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let moved_at = match self.pace.bytes_per_second {
            Some(rate) => {
                state.busy_until = state.busy_until.max(now).saturating_add(time_to_move(moved_bytes, rate));
                state.busy_until
            }
            None => now,
        };
        moved_at.saturating_add(self.pace.latency).saturating_add(state.random.up_to(self.pace.jitter))
    }
}

impl Backend for Paced {
    fn properties(&self) -> Properties {
        self.inner.properties()
    }

    fn submit(&self, operation: Operation) -> Pending {
        let moved_bytes = match &operation {
            Operation::Read { buffer, .. } => buffer.len(),
            Operation::Write { payload, .. } => payload.len(),
            _ => 0,
        };
        let now = self.timer.now();
        let due = self.due(now, moved_bytes as u64);
        if due <= now {
            return self.inner.submit(operation);
        }
        let wait = self.timer.wait_until(due);
        let inner = Arc::clone(&self.inner);
        detached(async move {
            wait.await;
            inner.submit(operation).await
        })
    }
}

fn time_to_move(bytes: u64, rate: NonZeroU64) -> Duration {
    let nanoseconds = u128::from(bytes) * 1_000_000_000 / u128::from(rate.get());
    Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(u64::MAX))
}

/// Steele, Lea and Flood's generator (2014): short, and good enough for jitter.
struct SplitMix64(u64);

impl SplitMix64 {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn up_to(&mut self, most: Duration) -> Duration {
        let scaled = (most.as_nanos() * u128::from(self.next())) >> 64;
        Duration::from_nanos(u64::try_from(scaled).unwrap_or(u64::MAX))
    }
}
