//! What was asked of the target and may have been lost on the way: asked again after a growing time, and not for ever.

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
}

impl Ask {
    /// Asked for the first time.
    pub(super) fn new(now: Instant) -> Self {
        Self { at: now, times: 1 }
    }

    /// What was asked leaves only now.
    pub(super) fn counted_from(self, now: Instant) -> Self {
        Self { at: now, ..self }
    }

    /// When to ask again, or to give up.
    pub(super) fn due(&self) -> Instant {
        self.at + AGAIN_AFTER * (1 << (self.times - 1))
    }

    /// Takes note that it is asked once more; `false` if it was asked often enough.
    pub(super) fn again(&mut self, now: Instant) -> bool {
        if self.times >= ASKED_MAX {
            return false;
        }
        *self = Self { at: now, times: self.times + 1 };
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
