//! A placement policy that is wrong on purpose: the protocol must not depend on a good one.

use crate::random::Random;
use crate::shared_cell::SharedCell;
use pdu::{Instant, LaneId};
use policy::{Choice, Demand, LaneSample, Placement};

/// How often, of a hundred times, the policy is not followed.
#[derive(Clone, Copy, Debug)]
pub struct Wrongs {
    /// A command goes to a connection at random.
    pub astray_percent: u64,
    /// A command is held back.
    pub held_back_percent: u64,
}

/// Sends some commands astray, and holds some back without a reason.
pub struct Astray {
    policy: Box<dyn Placement>,
    wrongs: Wrongs,
    random: SharedCell<Random>,
    /// Decides what is held back: a generator of its own, so that the other's numbers are what they would be without it.
    whims: SharedCell<Random>,
}

impl Astray {
    pub fn new(
        policy: Box<dyn Placement>,
        wrongs: Wrongs,
        random: SharedCell<Random>,
        whims: SharedCell<Random>,
    ) -> Self {
        Self { policy, wrongs, random, whims }
    }

    /// Not while all lanes are idle: nothing would make the client ask again.
    fn holds_back(&self, lanes: &[LaneSample]) -> bool {
        let may_hold_back = lanes.iter().any(|lane| !lane.is_idle());
        may_hold_back && self.whims.lock().percent(self.wrongs.held_back_percent)
    }
}

impl Placement for Astray {
    fn wants_measurements(&self) -> bool {
        self.policy.wants_measurements()
    }

    fn place(&mut self, now: Instant, demand: Demand, lanes: &[LaneSample]) -> Option<Choice> {
        if self.holds_back(lanes) {
            return None;
        }
        let mut random = self.random.lock();
        let usable = || lanes.iter().filter(|lane| lane.is_usable());
        if random.percent(self.wrongs.astray_percent) {
            let lane = usable().nth(random.index(usable().count()))?.lane;
            let bytes_max = if random.percent(50) { random.below(demand.bytes() + 1) } else { u64::MAX };
            return Some(Choice { lane, bytes_max });
        }
        self.policy.place(now, demand, lanes)
    }

    fn forget(&mut self, lane: LaneId) {
        self.policy.forget(lane);
    }
}
