//! What a lane brings, and whether data that is awaited on it may still be on its way behind other data. Both roles.
//!
//! A connection delivers in order, and a peer with much to send serves its tasks by turns or one after another. So one
//! task's data may be silent for minutes on a slow path, and nothing of it is lost: patience follows what the lane
//! delivers and owes. What is late is not lost while the lane goes on bringing data, if only in the middle of a long
//! segment, and has not brought twice as much as it owed when this was found late. Once as much is what may come before
//! it from a peer that serves every task in its turn; the rest is for data of new commands, which comes unasked in
//! between.
//!
//! So a silent lane is judged by the clock, and a busy one by what it brings: what was lost while others went on is
//! missed after that much, and no peer can keep a task for ever by passing it over. A peer may serve its tasks in another
//! order; then it is asked again for what is only late, which costs bandwidth and nothing else.

use pdu::{Duration, Instant};

/// How many times what a lane owes it may bring before what is awaited.
const OWED_TIMES: u64 = 2;

/// The data that has come on a lane.
#[derive(Debug)]
pub(crate) struct Inflow {
    /// Of all data segments.
    brought_bytes: u64,
    /// When data of a task came last.
    brought_at: Instant,
}

/// How far a lane must have come before what is late on it counts as lost; to be forgotten when some of that comes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Turn {
    brought_bytes: Option<u64>,
}

impl Inflow {
    pub(crate) fn new(now: Instant) -> Self {
        Self { brought_bytes: 0, brought_at: now }
    }

    /// A data segment of any kind has come; `is_awaited` if it is a part of a task's data that was owed.
    pub(crate) fn bring(&mut self, now: Instant, bytes: u32, is_awaited: bool) {
        self.brought_bytes += u64::from(bytes);
        if is_awaited {
            self.brought_at = now;
        }
    }

    /// A data segment is still on its way.
    pub(crate) fn go_on(&mut self, now: Instant) {
        self.brought_at = now;
    }

    /// Whether the lane has brought no task's data for this long.
    pub(crate) fn is_silent(&self, now: Instant, silence: Duration) -> bool {
        self.brought_at + silence <= now
    }

    /// Whether the lane has brought no task's data since `asked_at`.
    pub(crate) fn has_rested_since(&self, asked_at: Instant) -> bool {
        self.brought_at <= asked_at
    }

    /// Whether what is late may still come behind the rest of what this lane owes, which goes on bringing it.
    pub(crate) fn is_behind(&self, turn: &mut Turn, owed_bytes: u64) -> bool {
        let turn_bytes = turn.brought_bytes.get_or_insert(self.brought_bytes + owed_bytes * OWED_TIMES);
        self.brought_bytes < *turn_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Instant = Instant::ZERO;

    #[test]
    fn what_is_late_is_behind_twice_what_the_lane_owed_when_that_was_found() {
        let mut inflow = Inflow::new(NOW);
        let mut turn = Turn::default();
        inflow.bring(NOW, 1000, true);
        let mut brought_bytes = 0;
        while inflow.is_behind(&mut turn, 300) {
            inflow.bring(NOW, 100, true);
            brought_bytes += 100;
        }
        assert_eq!(brought_bytes, 600);
        assert!(inflow.is_behind(&mut Turn::default(), 1));
    }

    #[test]
    fn nothing_is_behind_where_nothing_is_owed() {
        assert!(!Inflow::new(NOW).is_behind(&mut Turn::default(), 0));
    }

    #[test]
    fn other_segments_than_awaited_data_count_and_break_no_silence() {
        let silence = Duration::from_secs(5);
        let mut inflow = Inflow::new(NOW);
        let mut turn = Turn::default();
        assert!(inflow.is_behind(&mut turn, 50));
        inflow.bring(NOW + silence, 100, false);
        assert!(inflow.is_silent(NOW + silence, silence) && !inflow.is_behind(&mut turn, 50));
        inflow.bring(NOW + silence, 100, true);
        assert!(!inflow.is_silent(NOW + silence, silence));
        inflow.go_on(NOW + silence * 2);
        assert!(!inflow.is_silent(NOW + silence * 2, silence));
    }
}
