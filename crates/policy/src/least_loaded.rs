//! Chooses the lane with the least data left to move.

use crate::lane_sample::LaneSample;
use crate::placement::{Demand, Placement};
use pdu::{Instant, LaneId};

/// Places each command on the lane with the fewest outstanding bytes; among equals, on the one with the fewest
/// commands; among equals again, in turn. A lane that drains faster is chosen more often, so lanes of
/// unequal speed share the work in proportion without any measurement of their rates.
///
/// Holds a command back while every lane has [`UNSENT_BYTES_MAX`](Self::UNSENT_BYTES_MAX) unsent or belongs to a session
/// with [`PARKED_COMMANDS_MAX`](Self::PARKED_COMMANDS_MAX) parked.
#[derive(Clone, Copy, Debug, Default)]
pub struct LeastLoaded {
    last: Option<LaneId>,
}

impl LeastLoaded {
    /// A lane with this much unsent data gets no further command, which would wait behind those bytes if the connection
    /// stalled. The sender pulls as much ahead for one large gather, which keeps a fast socket busy between two
    /// wake-ups.
    pub const UNSENT_BYTES_MAX: u64 = 512 << 10;

    /// A session with this many parked commands gets no further one, because another session may take it meanwhile. One
    /// is parked so that it leaves at once when the command window opens.
    pub const PARKED_COMMANDS_MAX: u32 = 1;

    fn has_room(sample: &LaneSample) -> bool {
        sample.is_usable()
            && sample.load.unsent_bytes < Self::UNSENT_BYTES_MAX
            && sample.parked_commands < Self::PARKED_COMMANDS_MAX
    }
}

impl Placement for LeastLoaded {
    fn place(&mut self, _now: Instant, _demand: Demand, lanes: &[LaneSample]) -> Option<LaneId> {
        let last = self.last.map_or(0, |lane| lane.0.wrapping_add(1));
        let chosen = lanes
            .iter()
            .filter(|sample| Self::has_room(sample))
            .min_by_key(|sample| {
                let turn = sample.lane.0.wrapping_sub(last);
                (sample.load.outstanding_bytes(), sample.load.commands, turn)
            })?
            .lane;
        self.last = Some(chosen);
        Some(chosen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lane_sample::{LaneLoad, Obstacle};

    const UNSENT_BYTES_MAX: u64 = LeastLoaded::UNSENT_BYTES_MAX;
    const WRITE: Demand = Demand { data_out_bytes: 4096, data_in_bytes: 0 };

    fn lane(id: u32, commands: u32, data_out_bytes: u64) -> LaneSample {
        let load = LaneLoad { commands, data_out_bytes, ..LaneLoad::default() };
        LaneSample { lane: LaneId(id), obstacle: None, load, parked_commands: 0, path: None }
    }

    fn with_unsent(id: u32, unsent_bytes: u64) -> LaneSample {
        let idle = lane(id, 0, 0);
        LaneSample { load: LaneLoad { unsent_bytes, ..idle.load }, ..idle }
    }

    fn place(policy: &mut LeastLoaded, lanes: &[LaneSample]) -> Option<u32> {
        policy.place(Instant::ZERO, WRITE, lanes).map(|lane| lane.0)
    }

    fn choice(lanes: &[LaneSample]) -> Option<u32> {
        place(&mut LeastLoaded::default(), lanes)
    }

    #[test]
    fn without_a_lane_the_command_waits() {
        assert_eq!(choice(&[]), None);
    }

    #[test]
    fn the_lane_with_the_fewest_bytes_to_move_is_chosen() {
        assert_eq!(choice(&[lane(0, 1, 1 << 20), lane(1, 9, 4096), lane(2, 2, 8192)]), Some(1));
    }

    #[test]
    fn bytes_of_both_directions_count() {
        let reading = LaneLoad { commands: 1, data_in_bytes: 8192, ..LaneLoad::default() };
        assert_eq!(choice(&[LaneSample { load: reading, ..lane(0, 0, 0) }, lane(1, 1, 4096)]), Some(1));
    }

    #[test]
    fn idle_lanes_take_turns() {
        let lanes = [lane(0, 0, 0), lane(1, 0, 0), lane(2, 0, 0)];
        let mut policy = LeastLoaded::default();
        let chosen: Vec<_> = (0..4).filter_map(|_| place(&mut policy, &lanes)).collect();
        assert_eq!(chosen, [0, 1, 2, 0]);
    }

    #[test]
    fn a_lane_that_cannot_take_a_command_is_not_chosen() {
        for obstacle in [Obstacle::Leaving, Obstacle::SessionFull] {
            let closed = LaneSample { obstacle: Some(obstacle), ..lane(0, 0, 0) };
            assert_eq!(choice(&[closed, lane(1, 9, 1 << 20)]), Some(1), "{obstacle:?}");
        }
    }

    #[test]
    fn a_lane_with_too_much_unsent_is_passed_over() {
        assert_eq!(choice(&[with_unsent(0, UNSENT_BYTES_MAX), lane(1, 9, 1 << 20)]), Some(1));
    }

    #[test]
    fn a_lane_with_a_little_less_unsent_is_chosen() {
        assert_eq!(choice(&[with_unsent(0, UNSENT_BYTES_MAX - 1), lane(1, 9, 1 << 20)]), Some(0));
    }

    #[test]
    fn the_command_waits_while_every_lane_has_too_much_unsent() {
        assert_eq!(choice(&[with_unsent(0, UNSENT_BYTES_MAX), with_unsent(1, 1 << 30)]), None);
    }

    #[test]
    fn a_session_with_a_parked_command_gets_no_further_one() {
        let parked = LaneSample { parked_commands: LeastLoaded::PARKED_COMMANDS_MAX, ..lane(0, 0, 0) };
        assert_eq!(choice(&[parked, lane(1, 9, 1 << 20)]), Some(1));
        assert_eq!(choice(&[parked]), None);
    }

    #[test]
    fn idle_lanes_are_never_held_back() {
        assert!(lane(0, 0, 0).is_idle());
        assert_eq!(choice(&[lane(0, 0, 0)]), Some(0));
    }
}
