//! The schedule of attempts to reach a lost target.

use crate::Environment;
use pdu::{Duration, Instant};

/// The policy after a loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reconnect {
    /// The pause before the second attempt; it doubles with each further one. The first waits only for the negotiated
    /// `DefaultTime2Wait`. Up to half is added at random, so that many initiators do not return together.
    pub pause_min: Duration,
    /// The longest pause.
    pub pause_max: Duration,
    /// The time after which the path is given up. Zero: at once.
    pub give_up_after: Duration,
}

impl Default for Reconnect {
    fn default() -> Self {
        Self {
            pause_min: Duration::from_millis(100),
            pause_max: Duration::from_secs(5),
            give_up_after: Duration::from_secs(120),
        }
    }
}

/// The pauses between attempts, until the time is over.
pub(crate) struct Pauses {
    next: Duration,
    longest: Duration,
    give_up_at: Instant,
}

impl Pauses {
    /// Patience begins at this time, after which the first attempt is made.
    pub fn new(policy: &Reconnect, begin: Instant) -> Self {
        Self { next: policy.pause_min, longest: policy.pause_max, give_up_at: begin + policy.give_up_after }
    }

    /// The next pause; `None` if the time would be over in it.
    pub fn next(&mut self, environment: &Environment) -> Option<Duration> {
        if environment.now() + self.next >= self.give_up_at {
            return None;
        }
        let pause = self.next;
        self.next = pause.saturating_mul(2).min(self.longest);
        Some(jittered(pause, environment))
    }
}

/// Adds up to half at random.
fn jittered(pause: Duration, environment: &Environment) -> Duration {
    let mut random = [0; 1];
    // Without random numbers there is no jitter.
    let _ = environment.host.entropy(&mut random);
    pause + pause / 2 * u32::from(random[0]) / u32::from(u8::MAX)
}
