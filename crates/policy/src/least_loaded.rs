//! The lane with the least left to move.

use crate::placement::{Demand, LaneState, Placement};
use pdu::{Instant, LaneId};

/// Places each command on the lane with the fewest outstanding bytes; among equals, on the one with the fewest
/// commands; among equals again, in turn. A lane that drains faster is chosen more often, so lanes of
/// unequal speed share the work in proportion without any measurement of their rates.
#[derive(Clone, Copy, Debug, Default)]
pub struct LeastLoaded {
    last: Option<LaneId>,
}

impl Placement for LeastLoaded {
    fn place(&mut self, _now: Instant, _demand: Demand, lanes: &[LaneState]) -> Option<LaneId> {
        let last = self.last.map_or(0, |lane| lane.0.wrapping_add(1));
        let chosen = lanes
            .iter()
            .min_by_key(|state| {
                let turn = state.lane.0.wrapping_sub(last);
                (state.outstanding_bytes, state.outstanding_commands, turn)
            })?
            .lane;
        self.last = Some(chosen);
        Some(chosen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WRITE: Demand = Demand { data_out_bytes: 4096, data_in_bytes: 0 };

    fn lane(id: u32, outstanding_commands: u32, outstanding_bytes: u64) -> LaneState {
        LaneState { lane: LaneId(id), outstanding_commands, outstanding_bytes }
    }

    fn place(policy: &mut LeastLoaded, lanes: &[LaneState]) -> Option<LaneId> {
        policy.place(Instant::ZERO, WRITE, lanes)
    }

    #[test]
    fn without_a_usable_lane_the_command_waits() {
        assert_eq!(place(&mut LeastLoaded::default(), &[]), None);
    }

    #[test]
    fn the_lane_with_the_fewest_bytes_to_move_is_chosen() {
        let lanes = [lane(0, 1, 1 << 20), lane(1, 9, 4096), lane(2, 2, 8192)];
        assert_eq!(place(&mut LeastLoaded::default(), &lanes), Some(LaneId(1)));
    }

    #[test]
    fn idle_lanes_take_turns() {
        let lanes = [lane(0, 0, 0), lane(1, 0, 0), lane(2, 0, 0)];
        let mut policy = LeastLoaded::default();
        let chosen: Vec<_> = (0..4).filter_map(|_| place(&mut policy, &lanes)).map(|lane| lane.0).collect();
        assert_eq!(chosen, [0, 1, 2, 0]);
    }
}
