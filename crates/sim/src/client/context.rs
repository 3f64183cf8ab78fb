//! What hosts share: the world around them, what they count, and what excuses silence.

use crate::checker::{BlockHistory, ReservationHistory, SessionKey, Stamp, Tap, Violation};
use crate::network::Network;
use crate::random::Random;
use crate::reached::Reached;
use pdu::{Duration, Instant};

/// What a run counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Commands sent, those sent again counted again.
    pub commands: u64,
    /// Operations that ended with success.
    pub succeeded: u64,
    /// Operations that failed, were aborted, or whose outcome was given up.
    pub failed: u64,
    /// Commands sent again.
    pub retries: u64,
    /// Connections made.
    pub connections: u64,
    /// Sessions begun.
    pub sessions: u64,
    /// Task management functions.
    pub functions: u64,
    /// Blocks read and compared.
    pub blocks_read: u64,
    /// Flushes that ended with success.
    pub flushes: u64,
    /// What went another way than usual.
    pub reached: Reached,
}

/// What excuses a command that is not answered, or a session that is lost.
#[derive(Clone, Copy, Debug, Default)]
pub struct Excuses {
    /// When the last fault ended that touches everybody.
    pub disturbed_until: Instant,
    /// When a logical unit was reset last: whoever had commands there is not told (SAM-5, TAS=0).
    pub reset_at: Option<Instant>,
    /// Resets that were asked for and may be carried out at any time.
    pub resets_under_way: usize,
    /// When the target died last.
    pub crashed_at: Option<Instant>,
}

impl Excuses {
    /// Whether a reset may have done away with a command that was sent at `sent`.
    pub(super) fn may_have_reset(&self, sent: Instant) -> bool {
        self.resets_under_way > 0 || self.reset_at.is_some_and(|reset| sent <= reset)
    }

    /// So many resets are over.
    pub(super) fn resets_ended(&mut self, now: Instant, resets: usize) {
        if resets > 0 {
            self.resets_under_way = self.resets_under_way.saturating_sub(resets);
            self.reset_at = Some(now);
        }
    }
}

/// What a host needs of the world.
pub struct Context<'a> {
    /// This instant.
    pub now: Instant,
    /// Where its bytes go.
    pub network: &'a mut Network,
    /// Who listens to its PDUs.
    pub tap: &'a mut Tap,
    /// Who knows what blocks may hold.
    pub history: &'a mut BlockHistory,
    /// What is counted.
    pub tally: &'a mut Tally,
    /// For hosts only.
    pub random: &'a mut Random,
    /// Operations that may still be begun.
    pub budget: &'a mut u32,
    /// Silence after which a connection is probed.
    pub ping_after: Duration,
    /// How long an answer to that may take.
    pub ping_timeout: Duration,
    /// What may have come between.
    pub excuses: &'a mut Excuses,
    /// Who may do what.
    pub reservations: &'a mut ReservationHistory,
    /// What the hosts believe the blocks to hold.
    pub guesses: &'a mut [Stamp],
    /// What was found wrong first.
    pub violation: &'a mut Option<Violation>,
}

impl Context<'_> {
    pub(super) fn random_word(&mut self) -> u32 {
        // Often close to the wrap.
        let word = self.random.between(0, u32::MAX);
        if self.random.one_in(3) { u32::MAX - word % 500 } else { word }
    }

    pub(super) fn new_session(&mut self) -> SessionKey {
        self.tally.sessions += 1;
        SessionKey(u32::try_from(self.tally.sessions).unwrap_or(u32::MAX))
    }

    pub(super) fn violate(&mut self, what: String) {
        self.violation.get_or_insert(Violation(what));
    }

    /// A line for a reader of the trace.
    pub(super) fn trace(&mut self, line: impl FnOnce() -> String) {
        if let Some(trace) = &mut self.tap.trace {
            trace.push(format!("{:>14} {}", self.now.0, line()));
        }
    }
}
