//! Plain rules for placing commands, to compare [`EarliestDelivery`](crate::EarliestDelivery) with.

use crate::earliest_delivery::EarliestDelivery;
use crate::lane_sample::LaneSample;
use crate::placement::{Choice, Demand, Placement};
use core::fmt;
use core::str::FromStr;
use pdu::{Duration, Instant, LaneId};

/// The ways of placing commands that there are, by the names that a user gives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PlacementPolicy {
    /// [`EarliestDelivery`].
    #[default]
    EarliestDelivery,
    /// A plain rule, for comparison.
    Plain(Rule),
}

/// A rule that places whole commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Each lane in turn.
    RoundRobin,
    /// The lane with the fewest outstanding bytes, then the fewest commands.
    LeastOutstanding,
    /// The lane with the shortest round trip among those with room, as the default scheduler of Multipath TCP's kernel outside the tree.
    LowestRtt,
}

const NAMES: [(PlacementPolicy, &str); 4] = [
    (PlacementPolicy::EarliestDelivery, "earliest delivery"),
    (PlacementPolicy::Plain(Rule::RoundRobin), "round robin"),
    (PlacementPolicy::Plain(Rule::LeastOutstanding), "least outstanding"),
    (PlacementPolicy::Plain(Rule::LowestRtt), "lowest RTT"),
];

/// A name that no policy has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "there is no placement policy {0:?}: use \"earliest delivery\", \"round robin\", \"least outstanding\" or \"lowest RTT\""
)]
pub struct UnknownPolicy(String);

impl PlacementPolicy {
    /// The policy, without any experience.
    #[must_use]
    pub fn begin(self) -> Box<dyn Placement> {
        match self {
            Self::EarliestDelivery => Box::new(EarliestDelivery::default()),
            Self::Plain(rule) => Box::new(PlainPlacement { rule, last: None }),
        }
    }
}

impl FromStr for PlacementPolicy {
    type Err = UnknownPolicy;

    fn from_str(name: &str) -> Result<Self, UnknownPolicy> {
        let known = NAMES.iter().find(|(_, known)| known.eq_ignore_ascii_case(name));
        known.map(|(policy, _)| *policy).ok_or_else(|| UnknownPolicy(name.to_owned()))
    }
}

impl fmt::Display for PlacementPolicy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = NAMES.iter().find(|(policy, _)| policy == self).map_or("", |(_, name)| name);
        formatter.write_str(name)
    }
}

/// A lane with this much pulled and unsent data gets no further command.
const UNSENT_BYTES_MAX: u64 = 512 << 10;

/// The most commands on a lane under [`Rule::LowestRtt`], so that it ever uses a second one.
const COMMANDS_MAX: u32 = 4;

struct PlainPlacement {
    rule: Rule,
    last: Option<LaneId>,
}

impl PlainPlacement {
    fn has_room(&self, sample: &LaneSample) -> bool {
        let has_turn = self.rule != Rule::LowestRtt || sample.load.commands < COMMANDS_MAX;
        sample.is_usable()
            && sample.parked_commands == 0
            && sample.load.unsent_bytes < UNSENT_BYTES_MAX
            && has_turn
    }

    /// Orders lanes by preference; the lanes after the last one chosen come first among equals.
    fn rank(&self, sample: &LaneSample) -> (u64, u32, u32) {
        let turn = sample.lane.0.wrapping_sub(self.last.map_or(0, |lane| lane.0.wrapping_add(1)));
        match self.rule {
            Rule::RoundRobin => (0, 0, turn),
            Rule::LeastOutstanding => (sample.load.outstanding_bytes(), sample.load.commands, turn),
            Rule::LowestRtt => {
                let rtt = sample.path.map_or(Duration::ZERO, |path| path.rtt);
                (u64::try_from(rtt.as_micros()).unwrap_or(u64::MAX), 0, turn)
            }
        }
    }
}

impl Placement for PlainPlacement {
    fn wants_measurements(&self) -> bool {
        self.rule == Rule::LowestRtt
    }

    fn place(&mut self, _now: Instant, _demand: Demand, lanes: &[LaneSample]) -> Option<Choice> {
        let with_room = lanes.iter().filter(|sample| self.has_room(sample));
        let chosen = with_room.min_by_key(|sample| self.rank(sample))?.lane;
        self.last = Some(chosen);
        Some(Choice::whole(chosen))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lane_sample::{LaneLoad, Obstacle};

    fn lane(id: u32, commands: u32, data_out_bytes: u64) -> LaneSample {
        let load = LaneLoad { commands, data_out_bytes, ..LaneLoad::default() };
        LaneSample { load, ..LaneSample::idle(LaneId(id)) }
    }

    fn choices(rule: Rule, lanes: &[LaneSample], count: usize) -> Vec<u32> {
        let mut placement = PlacementPolicy::Plain(rule).begin();
        let places = (0..count).filter_map(|_| placement.place(Instant::ZERO, Demand::default(), lanes));
        places.map(|choice| choice.lane.0).collect()
    }

    #[test]
    fn every_policy_is_found_by_its_name() {
        for (policy, name) in NAMES {
            assert_eq!(name.parse(), Ok(policy));
            assert_eq!(policy.to_string(), name);
        }
        assert!("best".parse::<PlacementPolicy>().unwrap_err().to_string().contains("\"best\""));
    }

    #[test]
    fn round_robin_takes_lanes_in_turn_whatever_they_have_to_do() {
        let lanes = [lane(0, 9, 1 << 30), lane(1, 0, 0), lane(2, 0, 0)];
        assert_eq!(choices(Rule::RoundRobin, &lanes, 4), [0, 1, 2, 0]);
    }

    #[test]
    fn least_outstanding_takes_the_lane_with_the_fewest_bytes_to_move() {
        let lanes = [lane(0, 1, 1 << 20), lane(1, 9, 4096), lane(2, 2, 8192)];
        assert_eq!(choices(Rule::LeastOutstanding, &lanes, 1), [1]);
    }

    #[test]
    fn a_lane_that_cannot_take_a_command_is_not_chosen() {
        let closed = LaneSample { obstacle: Some(Obstacle::Leaving), ..lane(0, 0, 0) };
        for rule in [Rule::RoundRobin, Rule::LeastOutstanding, Rule::LowestRtt] {
            assert_eq!(choices(rule, &[closed, lane(1, 1, 4096)], 1), [1]);
            assert_eq!(choices(rule, &[closed], 1), []);
        }
    }

    #[test]
    fn lowest_rtt_leaves_a_lane_that_has_four_commands() {
        let lanes = [lane(0, COMMANDS_MAX, 0), lane(1, 0, 0)];
        assert_eq!(choices(Rule::LowestRtt, &lanes, 1), [1]);
    }
}
