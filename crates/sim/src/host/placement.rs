//! A placement policy that is wrong on purpose: the protocol must not depend on a good one.

use crate::common::Common;
use crate::random::Random;
use pdu::{Instant, LaneId};
use policy::{Demand, LaneState, Placement};

/// Sends some commands astray: to a connection at random instead of the policy's.
pub struct Astray<P> {
    policy: P,
    percent: u64,
    random: Common<Random>,
}

impl<P> Astray<P> {
    pub fn new(policy: P, percent: u64, random: Common<Random>) -> Self {
        Self { policy, percent, random }
    }
}

impl<P: Placement> Placement for Astray<P> {
    fn place(&mut self, now: Instant, demand: Demand, lanes: &[LaneState]) -> Option<LaneId> {
        let mut random = self.random.lock();
        if !lanes.is_empty() && random.percent(self.percent) {
            return Some(lanes[random.index(lanes.len())].lane);
        }
        self.policy.place(now, demand, lanes)
    }
}
