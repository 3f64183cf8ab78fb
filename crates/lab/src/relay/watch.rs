//! Measures the relay itself.

use super::clock::processor_time;
use super::report::{Distribution, Durations};
use std::time::Duration;

/// The thread that looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Looker {
    /// The relay's own.
    Relay,
    /// The one that stands by.
    Standby,
    /// One that keeps a processor awake.
    Awake,
}

/// The times for which nobody looked, and the relay's use of a processor.
pub(crate) struct Watch {
    gaps: Durations,
    /// The work of the two threads that only work.
    work: [Work; 2],
    /// The looks of the others.
    other_work: Duration,
    second_begun: Duration,
    second_work: Duration,
    share_max: f64,
}

/// A thread's processor time at the last query.
#[derive(Clone, Copy, Debug, Default)]
struct Work {
    asked_at: Duration,
    time: Duration,
}

/// The interval between queries, because one takes as long as a look at an idle path.
const ASK_EVERY: Duration = Duration::from_millis(10);

/// The shortest period over which a share of a processor is meaningful.
const SECOND: Duration = Duration::from_secs(1);

impl Watch {
    pub fn new() -> Self {
        Self {
            gaps: Durations::new(),
            work: [Work::default(); 2],
            other_work: Duration::ZERO,
            second_begun: Duration::ZERO,
            second_work: Duration::ZERO,
            share_max: 0.0,
        }
    }

    /// Records the time for which nobody looked although there was something to look at.
    pub fn gap(&mut self, gap: Duration) {
        self.gaps.record(gap);
    }

    /// Counts the work of the calling thread: of one that also does other things, what a look took; otherwise its
    /// processor time, which is queried at intervals. Ends the current second when it is over.
    pub fn count_work(&mut self, looker: Looker, took: Duration, now: Duration) {
        let work = match looker {
            Looker::Relay => &mut self.work[0],
            Looker::Standby => &mut self.work[1],
            Looker::Awake => {
                self.other_work += took;
                return;
            }
        };
        if now.saturating_sub(work.asked_at) < ASK_EVERY {
            return;
        }
        *work = Work { asked_at: now, time: processor_time() };
        let elapsed = now.saturating_sub(self.second_begun);
        if elapsed < SECOND {
            return;
        }
        let work = self.work();
        let share = work.saturating_sub(self.second_work).div_duration_f64(elapsed);
        self.share_max = self.share_max.max(share);
        (self.second_begun, self.second_work) = (now, work);
    }

    pub fn gaps(&self) -> Distribution {
        self.gaps.distribution()
    }

    /// The share of a processor, until `now`.
    pub fn share(&self, now: Duration) -> f64 {
        self.work().div_duration_f64(now.max(Duration::from_nanos(1)))
    }

    /// The share of a processor in the busiest second.
    pub fn share_max(&self) -> f64 {
        self.share_max
    }

    fn work(&self) -> Duration {
        self.work.iter().map(|work| work.time).sum::<Duration>() + self.other_work
    }
}
