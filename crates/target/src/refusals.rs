//! The log of refused connections. Anybody can have connections refused, so their lines are bounded in time.

use std::cell::Cell;
use std::fmt::Display;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// The most lines in quick succession: the portals of a rack whose secret has changed.
const LINES_MAX: u32 = 64;

/// The time after which one more line may be written.
const LINE_EVERY: Duration = Duration::from_secs(1);

/// Writes one line for each refused connection, as long as they are few.
#[derive(Debug)]
pub(crate) struct Refusals {
    budget: Cell<Budget>,
}

#[derive(Clone, Copy, Debug)]
struct Budget {
    lines: u32,
    /// The time of the last addition to `lines`.
    since: Instant,
    /// Refusals without a line, since the last line.
    unlogged: u64,
}

impl Refusals {
    pub(crate) fn new(now: Instant) -> Self {
        Self { budget: Cell::new(Budget { lines: LINES_MAX, since: now, unlogged: 0 }) }
    }

    /// Logs one refusal, or counts it for the next line. `initiator` is a name that the peer only claims.
    pub(crate) fn log(&self, now: Instant, peer: SocketAddr, initiator: Option<&str>, reason: &dyn Display) {
        let mut budget = self.budget.get();
        if let Some(unlogged) = budget.take_line(now) {
            let unlogged = (unlogged > 0).then_some(unlogged);
            tracing::warn!(%peer, initiator, %reason, unlogged, "connection refused");
        }
        self.budget.set(budget);
    }
}

impl Budget {
    /// The number of refusals without a line before this one; `None` if this one gets no line either.
    fn take_line(&mut self, now: Instant) -> Option<u64> {
        let earned = now.saturating_duration_since(self.since).as_secs() / LINE_EVERY.as_secs();
        if earned > 0 {
            self.lines = self.lines.saturating_add(u32::try_from(earned).unwrap_or(u32::MAX)).min(LINES_MAX);
            self.since = now;
        }
        match self.lines.checked_sub(1) {
            Some(left) => {
                self.lines = left;
                Some(std::mem::take(&mut self.unlogged))
            }
            None => {
                self.unlogged += 1;
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_refusals_gets_a_line_each_second_that_counts_the_others() {
        let begin = Instant::now();
        let mut budget = Refusals::new(begin).budget.get();
        let lines = (0..10_000).filter(|_| budget.take_line(begin).is_some()).count();
        assert_eq!(lines, LINES_MAX as usize);
        let unlogged = 10_000 - u64::from(LINES_MAX);
        assert_eq!(budget.take_line(begin + LINE_EVERY), Some(unlogged));
        assert_eq!(budget.take_line(begin + LINE_EVERY), None);
    }

    #[test]
    fn quiet_times_earn_no_more_lines_than_one_flood_may_have() {
        let begin = Instant::now();
        let mut budget = Refusals::new(begin).budget.get();
        let later = begin + LINE_EVERY * 10 * LINES_MAX;
        let lines = (0..1000).filter(|_| budget.take_line(later).is_some()).count();
        assert_eq!(lines, LINES_MAX as usize);
    }
}
