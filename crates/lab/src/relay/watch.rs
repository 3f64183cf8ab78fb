//! Watches over the relay itself.

use super::clock::processor_time;
use super::report::{Distribution, Durations};
use std::time::Duration;

/// Which of the relay's threads looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Looker {
    Relay,
    Standby,
}

/// For how long nobody looked, and what that took of a processor.
pub(crate) struct Watch {
    gaps: Durations,
    /// Of each thread.
    work: [Work; 2],
    second_begun: Duration,
    second_work: Duration,
    share_max: f64,
}

/// What a thread has worked since it began, when it was asked last.
#[derive(Clone, Copy, Debug, Default)]
struct Work {
    asked_at: Duration,
    time: Duration,
}

/// To ask the kernel takes as long as a look at an idle path.
const ASK_EVERY: Duration = Duration::from_millis(10);

/// Of processor time this much must have passed for a share to mean anything.
const SECOND: Duration = Duration::from_secs(1);

impl Watch {
    pub fn new() -> Self {
        Self {
            gaps: Durations::new(),
            work: [Work::default(); 2],
            second_begun: Duration::ZERO,
            second_work: Duration::ZERO,
            share_max: 0.0,
        }
    }

    /// For so long there was something to look at, and nobody did.
    pub fn gap(&mut self, gap: Duration) {
        self.gaps.record(gap);
    }

    /// Takes the calling thread's work down now and then, and ends the current second, if it is over.
    pub fn look_at_processor(&mut self, looker: Looker, now: Duration) {
        let work = &mut self.work[looker as usize];
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

    /// Of a processor, until `now`.
    pub fn share(&self, now: Duration) -> f64 {
        self.work().div_duration_f64(now.max(Duration::from_nanos(1)))
    }

    /// Of a processor, in the busiest second.
    pub fn share_max(&self) -> f64 {
        self.share_max
    }

    fn work(&self) -> Duration {
        self.work.iter().map(|work| work.time).sum()
    }
}
