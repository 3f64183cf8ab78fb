//! Divides the memory for unsolicited data among sessions: a few get much, and many get something.
//!
//! A command window is a promise that cannot be withdrawn (RFC 7143 §4.2.2.1), and so is FirstBurstLength. A session's
//! share therefore depends on the sessions before it, and must leave something to those after it. Three quarters are
//! lent in large shares, each an eighth of the remainder; the last quarter is for a thousand small ones. A session
//! first negotiates a FirstBurstLength with which a window of sixteen commands fits its share, and then gets the
//! largest window that fits. Longer writes get the rest of their data by R2T, with any share.

use crate::memory::Memory;
use block::{Reservation, Slab};
use session::parameters::{SessionParameters, SessionType};

/// Immediate commands that one session may have in execution. They bypass the window, so each has its own share of the
/// memory; initiators send such commands (TEST UNIT READY, task management) one at a time.
pub(crate) const IMMEDIATE_COMMANDS_MAX: u32 = 4;

/// The smallest window of a session: a smaller one makes a long path useless.
const WINDOW_COMMANDS_MIN: u32 = 4;

/// A session's FirstBurstLength is shortened until a window of this many commands fits.
const WINDOW_COMMANDS_WANTED: u32 = 16;

/// The inverse of the part of the large shares' remainder that a session may take, so that later ones get theirs.
const SHARE_DIVISOR: usize = 8;

/// The inverse of the part of the reservable memory that only small shares use.
const SMALL_SHARES_DIVISOR: usize = 4;

/// The least number of small shares, if the memory suffices for them.
const SMALL_SHARES: usize = 1024;

/// The shortest useful FirstBurstLength: one page of memory.
const FIRST_BURST_BYTES_MIN: usize = 4 << 10;

/// The bytes that a new session may reserve now.
fn share_bytes(slab: &Slab) -> usize {
    let small_shares_bytes = slab.reservable_bytes() / SMALL_SHARES_DIVISOR;
    let least = FIRST_BURST_BYTES_MIN * (WINDOW_COMMANDS_WANTED + IMMEDIATE_COMMANDS_MAX) as usize;
    let small = (small_shares_bytes / SMALL_SHARES).max(least);
    (slab.unreserved_bytes().saturating_sub(small_shares_bytes) / SHARE_DIVISOR).max(small)
}

/// The longest FirstBurstLength that a login should be offered now: with it, a useful window fits the session's share.
#[must_use]
pub fn first_burst_bytes_max(memory: &Memory) -> u32 {
    let buffers = (WINDOW_COMMANDS_WANTED + IMMEDIATE_COMMANDS_MAX) as usize;
    let bytes = (share_bytes(&memory.transfers) / buffers).max(FIRST_BURST_BYTES_MIN);
    // Buffers are powers of two long.
    u32::try_from(1_usize << bytes.ilog2()).unwrap_or(u32::MAX)
}

/// Reserves memory for all unsolicited data that may arrive: one FirstBurstLength for each command of the window.
/// Halves the window until it fits; `None` if not even the smallest fits. A discovery session has no such data: its
/// FirstBurstLength is irrelevant (RFC 7143 §13.14), and it is admitted however little memory is left.
pub(crate) fn reserve_window(
    slab: &Slab,
    window_commands_max: u32,
    parameters: &SessionParameters,
) -> Option<(u32, Option<Reservation>)> {
    let mut window = window_commands_max.max(WINDOW_COMMANDS_MIN);
    let is_discovery = parameters.session_type == SessionType::Discovery;
    if is_discovery || !parameters.immediate_data && parameters.initial_r2t {
        return Some((window, None));
    }
    let share_bytes = share_bytes(slab);
    let burst_bytes = parameters.first_burst_bytes as usize;
    loop {
        let buffers = (window + IMMEDIATE_COMMANDS_MAX) as usize;
        let smallest = window == WINDOW_COMMANDS_MIN;
        let affordable = smallest || burst_bytes.next_power_of_two().saturating_mul(buffers) <= share_bytes;
        if affordable && let Some(reservation) = slab.reserve(buffers, burst_bytes) {
            return Some((window, Some(reservation)));
        }
        if smallest {
            return None;
        }
        window = (window / 2).max(WINDOW_COMMANDS_MIN);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use session::parameters::{Offer, SplitLanes};

    /// The server's default.
    const BUDGET_BYTES: usize = 1 << 30;
    const WINDOW_COMMANDS: u32 = 128;

    /// The parameters that a new login negotiates.
    fn parameters(memory: &Memory) -> SessionParameters {
        let offer = Offer::default();
        SessionParameters {
            session_type: SessionType::Normal,
            max_connections: 4,
            initial_r2t: offer.initial_r2t,
            immediate_data: offer.immediate_data,
            first_burst_bytes: offer.first_burst_bytes.min(first_burst_bytes_max(memory)),
            max_burst_bytes: offer.max_burst_bytes,
            max_outstanding_r2t: offer.max_outstanding_r2t,
            default_time2wait_s: offer.default_time2wait_s,
            default_time2retain_s: offer.default_time2retain_s,
            data_pdu_in_order: true,
            data_sequence_in_order: true,
            error_recovery_level: offer.error_recovery_level,
            split: SplitLanes::None,
        }
    }

    /// FirstBurstLength, window and reservation of `count` sessions, one after the other.
    fn sessions(memory: &Memory, count: usize) -> Vec<(u32, u32, Option<Reservation>)> {
        let session = |_| {
            let parameters = parameters(memory);
            let (window, reserved) = reserve_window(&memory.transfers, WINDOW_COMMANDS, &parameters)?;
            Some((parameters.first_burst_bytes, window, reserved))
        };
        (0..count).map_while(session).collect()
    }

    #[test]
    fn a_thousand_sessions_fit_the_default_budget_and_each_keeps_sixteen_commands_in_flight() {
        let memory = Memory::new(BUDGET_BYTES);
        let sessions = sessions(&memory, 1000);
        assert_eq!(sessions.len(), 1000);
        for (number, (first_burst_bytes, window, _)) in sessions.iter().enumerate() {
            assert!(*window >= WINDOW_COMMANDS_WANTED, "session {number}: {window} commands");
            assert!(*first_burst_bytes as usize >= FIRST_BURST_BYTES_MIN, "session {number}");
        }
    }

    #[test]
    fn the_first_sessions_have_the_whole_window() {
        let memory = Memory::new(BUDGET_BYTES);
        let first = sessions(&memory, 3)
            .into_iter()
            .map(|(first_burst_bytes, window, _)| (first_burst_bytes, window));
        assert_eq!(first.collect::<Vec<_>>(), [(256 << 10, WINDOW_COMMANDS); 3]);
    }

    #[test]
    fn a_discovery_session_takes_no_memory_and_needs_none() {
        let memory = Memory::new(BUDGET_BYTES);
        let _crowd = sessions(&memory, usize::MAX);
        let unreserved = memory.transfers.unreserved_bytes();
        let discovery = SessionParameters { session_type: SessionType::Discovery, ..parameters(&memory) };
        let granted = reserve_window(&memory.transfers, WINDOW_COMMANDS, &discovery);
        assert!(matches!(granted, Some((WINDOW_COMMANDS, None))));
        assert_eq!(memory.transfers.unreserved_bytes(), unreserved);
    }

    #[test]
    fn who_insists_on_long_bursts_gets_a_small_window_and_what_is_set_aside_comes_back() {
        let memory = Memory::new(BUDGET_BYTES);
        let crowd = sessions(&memory, 500);
        let greedy = SessionParameters { first_burst_bytes: 1 << 20, ..parameters(&memory) };
        let granted = reserve_window(&memory.transfers, WINDOW_COMMANDS, &greedy);
        assert_eq!(granted.map(|(window, _)| window), Some(WINDOW_COMMANDS_MIN));
        drop(crowd);
        assert_eq!(memory.transfers.unreserved_bytes(), memory.transfers.reservable_bytes());
    }
}
