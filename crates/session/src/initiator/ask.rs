//! What was asked of the target and may have been lost on the way: asked again after a growing time, and not for ever.

use crate::inflow::{Inflow, Turn};
use pdu::{Duration, Instant};

/// Longer than the longest round trip on Earth, so that what is asked again was most likely lost.
const AGAIN_AFTER: Duration = Duration::from_secs(2);

/// How often the same is asked: with a pause that doubles each time, the last answer is awaited for a minute. A
/// connection that damages one small PDU six times in a row is of no use.
const ASKED_MAX: u32 = 6;

/// When something was asked, and how often so far.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ask {
    at: Instant,
    times: u32,
    /// How far its lane must have come before it counts as lost.
    turn: Turn,
}

impl Ask {
    /// Asked for the first time.
    pub(super) fn new(now: Instant) -> Self {
        Self { at: now, times: 1, turn: Turn::default() }
    }

    /// What was asked leaves only now.
    pub(super) fn counted_from(self, now: Instant) -> Self {
        Self { at: now, ..self }
    }

    /// When to ask again, or to give up.
    pub(super) fn due(&self) -> Instant {
        self.at + AGAIN_AFTER * (1 << (self.times - 1))
    }

    /// Waits on if what was asked for may still be behind what its lane owes, and goes on bringing.
    pub(super) fn wait_behind(&mut self, now: Instant, inflow: &Inflow, owed_bytes: u64) {
        if !inflow.is_silent(now, AGAIN_AFTER) && inflow.is_behind(&mut self.turn, owed_bytes) {
            self.at = now;
        }
    }

    /// Takes note that it is asked once more; `false` if it was asked often enough.
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
