//! The turns of long reads: one long read ends after the other.
//!
//! A read of several pieces has a turn from its first request to the backend until its last. Without turns, each of
//! several long reads would have a few pieces under way, and all would end late. A turn covers one unit and one
//! connection, so a long read waits neither for a slower disk nor for a slower path. A read of one piece needs no turn.
//!
//! A read that waits for its turn holds no memory, so no other read waits for it.

use crate::permit::{Permit, Permits};
use pdu::LaneId;
use std::collections::HashMap;
use std::rc::Rc;

/// One read's turn.
pub(crate) enum Turn {
    /// The read needs no turn, or has requested its last piece.
    Over,
    /// The read takes the one permit of these before its first request.
    Ahead(Rc<Permits>),
    /// The read has the permit.
    Now { _permit: Permit },
}

impl Turn {
    pub(crate) fn begin(permit: Permit) -> Self {
        Self::Now { _permit: permit }
    }
}

/// The turns of one session's long reads.
#[derive(Default)]
pub(crate) struct ReadTurns(HashMap<(u16, LaneId), Rc<Permits>>);

impl ReadTurns {
    /// The turn of a long read of a unit. Its data leaves on `lane`.
    pub(crate) fn of_read(&mut self, unit_number: u16, lane: LaneId) -> Turn {
        self.0.retain(|_, turns| Rc::strong_count(turns) > 1);
        let turns = self.0.entry((unit_number, lane)).or_insert_with(|| Permits::new(1));
        Turn::Ahead(Rc::clone(turns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begin(turns: &mut ReadTurns, unit_number: u16, lane: u32) -> Option<Turn> {
        let Turn::Ahead(turns) = turns.of_read(unit_number, LaneId(lane)) else { return None };
        turns.try_take(1).map(Turn::begin)
    }

    #[test]
    fn reads_of_other_units_and_on_other_lanes_have_turns_of_their_own() {
        let mut turns = ReadTurns::default();
        let first = begin(&mut turns, 0, 0);
        let others = [begin(&mut turns, 1, 0), begin(&mut turns, 0, 1)];
        assert!(first.is_some() && others.iter().all(Option::is_some));
        assert!(begin(&mut turns, 0, 0).is_none());
        drop(first);
        assert!(begin(&mut turns, 0, 0).is_some());
    }

    #[test]
    fn turns_that_no_read_needs_are_forgotten() {
        let mut turns = ReadTurns::default();
        for lane in 0..10 {
            drop(begin(&mut turns, 0, lane));
        }
        assert_eq!(turns.0.len(), 1);
    }
}
