//! Counts the data that arrives on a lane, to tell data that is late from data that is lost. Both roles.
//!
//! A connection delivers in order, and a peer with much to send serves its tasks by turns or one after another. On a
//! slow path, one task may therefore get no data for minutes although nothing is lost. When a task's data is late, the
//! session notes how much data the lane owes to all tasks. The late data counts as lost only when the lane has brought
//! twice that much, or has fallen silent; a lane in the middle of a long segment is not silent. A peer that serves its
//! tasks in turn sends at most the owed amount before the late data; the other half allows for data of new commands,
//! which comes unasked.
//!
//! The clock judges a silent lane, and the amount of data judges a busy one. A peer therefore cannot keep a task
//! forever by never serving it. If a peer serves its tasks in another order, it is asked again for data that is only
//! late, which costs bandwidth and nothing else.

use pdu::{Duration, Instant};

/// A lane may bring this many times the data that it owes before late data counts as lost.
const OWED_TIMES: u64 = 2;

/// The data that has come on a lane.
#[derive(Debug)]
pub(crate) struct Inflow {
    /// Bytes of all data segments that have arrived.
    brought_bytes: u64,
    /// When data that a task awaits last arrived.
    brought_at: Instant,
}

/// How many bytes a lane must have brought before a task's late data counts as lost. Reset when some of that data
/// comes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Turn {
    brought_bytes: Option<u64>,
}

impl Inflow {
    pub(crate) fn new(now: Instant) -> Self {
        Self { brought_bytes: 0, brought_at: now }
    }

    /// Counts a data segment of any kind. `is_awaited` says that a task awaited this data.
    pub(crate) fn bring(&mut self, now: Instant, bytes: u32, is_awaited: bool) {
        self.brought_bytes += u64::from(bytes);
        if is_awaited {
            self.brought_at = now;
        }
    }

    /// Notes that a data segment is still arriving.
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

    /// Whether late data may still be behind other data on this lane, which owes `owed_bytes` in all.
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
