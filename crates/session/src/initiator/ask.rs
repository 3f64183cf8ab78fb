//! Repeats a request that may have been lost on its way, with growing pauses and a limited number of times.

use crate::inflow::{Inflow, Turn};
use pdu::{Duration, Instant};

/// The first pause. It exceeds the longest round trip on Earth, so a request without an answer was most likely lost.
const AGAIN_AFTER: Duration = Duration::from_secs(2);

/// How often one request is made. The pause doubles each time, so the last answer is awaited for a minute. A connection
/// that damages one small PDU six times in a row is useless.
const ASKED_MAX: u32 = 6;

/// When one request was last made, and how often so far.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ask {
    at: Instant,
    times: u32,
    /// How much data its lane must have brought before the answer counts as lost.
    turn: Turn,
}

impl Ask {
    /// A request that is made for the first time.
    pub(super) fn new(now: Instant) -> Self {
        Self { at: now, times: 1, turn: Turn::default() }
    }

    /// The same request, with its pause counted from `now`, when it leaves.
    pub(super) fn counted_from(self, now: Instant) -> Self {
        Self { at: now, ..self }
    }

    /// When to repeat the request, or to give up.
    pub(super) fn due(&self) -> Instant {
        self.at + AGAIN_AFTER * (1 << (self.times - 1))
    }

    /// Restarts the pause if the answer may still be behind other data that its lane owes.
    pub(super) fn wait_behind(&mut self, now: Instant, inflow: &Inflow, owed_bytes: u64) {
        if !inflow.is_silent(now, AGAIN_AFTER) && inflow.is_behind(&mut self.turn, owed_bytes) {
            self.at = now;
        }
    }

    /// Counts one more repetition; `false` if there may be no more.
    pub(super) fn again(&mut self, now: Instant) -> bool {
        if self.times >= ASKED_MAX {
            return false;
        }
        *self = Self { at: now, times: self.times + 1, turn: Turn::default() };
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pause_grows_and_the_asking_ends() {
        let mut ask = Ask::new(Instant::ZERO);
        let mut pauses = Vec::new();
        loop {
            let asked_at = ask.at;
            pauses.push(ask.due().saturating_duration_since(asked_at).as_secs());
            if !ask.again(ask.due()) {
                break;
            }
        }
        assert_eq!(pauses, [2, 4, 8, 16, 32, 64]);
    }
}
