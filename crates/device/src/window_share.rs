//! How the memory for unsolicited data is shared between sessions: few get much, and there is something for many.
//!
//! A command window is a promise that cannot be taken back (RFC 7143 §4.2.2.1), and so is FirstBurstLength; so what a
//! session gets depends on those before it, and must leave something to those after it. Three quarters are lent in
//! large shares, an eighth at a time of what is left of them; the last quarter is for a thousand small ones. A session
//! first negotiates a FirstBurstLength of which a window of sixteen commands fits its share, and then gets the largest
//! window that fits. Longer writes ask for the rest of their data (R2T), with any share.

use crate::memory::Memory;
use block::{Reservation, Slab};
use session::parameters::SessionParameters;

/// Immediate commands that one session may have in execution. They bypass the window, so each has its own share of
/// the memory; what initiators send so (TEST UNIT READY, task management) comes one at a time.
pub(crate) const IMMEDIATE_COMMANDS_MAX: u32 = 4;

/// The smallest window that a session is granted: with less, a long path is not worth its login.
const WINDOW_COMMANDS_MIN: u32 = 4;

/// For a window of this many commands a session's FirstBurstLength is shortened.
const WINDOW_COMMANDS_WANTED: u32 = 16;

/// A session takes no more than this part of what large shares are taken from, so that later ones get theirs.
const SHARE_DIVISOR: usize = 8;

/// The part that only small shares are taken from, of all that can be reserved.
const SMALL_SHARES_DIVISOR: usize = 4;

/// So many small shares there are at least, if the memory is enough for them.
const SMALL_SHARES: usize = 1024;

/// The shortest FirstBurstLength worth having: one page of memory.
const FIRST_BURST_BYTES_MIN: usize = 4 << 10;

/// What a session that comes now may set aside.
fn share_bytes(slab: &Slab) -> usize {
    let small_shares_bytes = slab.reservable_bytes() / SMALL_SHARES_DIVISOR;
    let least = FIRST_BURST_BYTES_MIN * (WINDOW_COMMANDS_WANTED + IMMEDIATE_COMMANDS_MAX) as usize;
    let small = (small_shares_bytes / SMALL_SHARES).max(least);
    (slab.unreserved_bytes().saturating_sub(small_shares_bytes) / SHARE_DIVISOR).max(small)
}

/// The longest FirstBurstLength that a login should be offered now, of which a useful window fits the session's share.
#[must_use]
pub fn first_burst_bytes_max(memory: &Memory) -> u32 {
    let buffers = (WINDOW_COMMANDS_WANTED + IMMEDIATE_COMMANDS_MAX) as usize;
    let bytes = (share_bytes(&memory.transfers) / buffers).max(FIRST_BURST_BYTES_MIN);
    // Buffers are powers of two long.
    u32::try_from(1_usize << bytes.ilog2()).unwrap_or(u32::MAX)
}

/// Sets memory aside for all the data that may come unasked: as many commands' as the window admits. It is halved
/// until it fits; `None` if not even the smallest does.
pub(crate) fn reserve_window(
    slab: &Slab,
    window_commands_max: u32,
    parameters: &SessionParameters,
) -> Option<(u32, Option<Reservation>)> {
    let mut window = window_commands_max.max(WINDOW_COMMANDS_MIN);
    if !parameters.immediate_data && parameters.initial_r2t {
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
    use session::parameters::{Offer, SessionType};

    /// The default of the server.
    const BUDGET_BYTES: usize = 1 << 30;
    const WINDOW_COMMANDS: u32 = 128;

    /// As a login that comes now negotiates them.
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
        }
    }

    /// FirstBurstLength, window and reservation of so many sessions that come one after the other.
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
