//! Lost connections that are remembered because their tasks may go on, until these have moved or their time is up (RFC
//! 7143 §7.5).

use super::status::StatusNumbers;
use crate::parameters::MAX_CONNECTIONS;
use pdu::{Cid, Instant, LaneId, StatSn};
use std::collections::BTreeMap;

/// The most lost connections that are remembered. An initiator that loses more in that time is not recovering; the
/// oldest is forgotten, with its tasks.
const DEPARTED_MAX: usize = MAX_CONNECTIONS as usize;

/// A lost connection whose tasks may go on.
#[derive(Debug)]
struct Departed {
    cid: Cid,
    /// Whether it was logged out, so that its tasks may be reassigned.
    is_removed: bool,
    /// When its tasks are terminated.
    until: Instant,
    /// The numbers of the responses sent on it and of those that the initiator has acknowledged.
    status: StatusNumbers,
}

/// A session's departed connections by their former lanes.
#[derive(Debug, Default)]
pub(super) struct Departures {
    departed: BTreeMap<LaneId, Departed>,
}

impl Departures {
    pub(super) fn len(&self) -> usize {
        self.departed.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.departed.is_empty()
    }

    pub(super) fn has(&self, lane: LaneId) -> bool {
        self.departed.contains_key(&lane)
    }

    /// Whether a connection was logged out, so that its tasks may be reassigned; `None` if it is not remembered.
    pub(super) fn is_removed(&self, lane: LaneId) -> Option<bool> {
        self.departed.get(&lane).map(|departed| departed.is_removed)
    }

    /// The first connection of this CID.
    pub(super) fn find(&self, cid: Cid) -> Option<LaneId> {
        self.departed.iter().find(|(_, departed)| departed.cid == cid).map(|(lane, _)| *lane)
    }

    /// The connection to forget first, if no more may be remembered or if `is_crowded`.
    pub(super) fn surplus(&self, is_crowded: bool) -> Option<LaneId> {
        if self.len() < DEPARTED_MAX && !is_crowded {
            return None;
        }
        self.departed.iter().min_by_key(|(_, departed)| departed.until).map(|(lane, _)| *lane)
    }

    /// Adds a lost connection whose tasks are kept until this time.
    pub(super) fn add(&mut self, lane: LaneId, cid: Cid, status: StatusNumbers, until: Instant) {
        self.departed.insert(lane, Departed { cid, is_removed: false, until, status });
    }

    /// Logs out the connections of this CID and returns their lanes. Their tasks are kept until this time, unless they
    /// were logged out before.
    pub(super) fn remove_for_recovery(&mut self, cid: Cid, until: Instant) -> Vec<LaneId> {
        let named = self.departed.iter_mut().filter(|(_, departed)| departed.cid == cid);
        let removed = named.map(|(lane, departed)| {
            if !departed.is_removed {
                (departed.is_removed, departed.until) = (true, until);
            }
            *lane
        });
        removed.collect()
    }

    /// Notes that the initiator has received the responses before this number on the last connection of this CID
    /// (§11.14.4, §11.12.9). Returns the lane if that is news.
    pub(super) fn acknowledge(&mut self, cid: Cid, exp_stat_sn: StatSn) -> Option<LaneId> {
        let (lane, departed) = self.departed.iter_mut().rev().find(|(_, departed)| departed.cid == cid)?;
        (departed.status.acknowledge(exp_stat_sn) > 0).then_some(*lane)
    }

    pub(super) fn forget(&mut self, lane: LaneId) {
        self.departed.remove(&lane);
    }

    /// Forgets all connections, and returns their lanes.
    pub(super) fn forget_all(&mut self) -> Vec<LaneId> {
        core::mem::take(&mut self.departed).into_keys().collect()
    }

    /// The lanes of connections whose time is up.
    pub(super) fn late(&self, now: Instant) -> Vec<LaneId> {
        self.departed.iter().filter(|(_, departed)| departed.until <= now).map(|(lane, _)| *lane).collect()
    }

    /// When the next connection's time is up.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.departed.values().map(|departed| departed.until).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const SECOND: Duration = Duration::from_secs(1);

    /// Departed lanes from 0 on, each kept a second longer than the one before.
    fn departures(cids: &[u16]) -> Departures {
        let mut departures = Departures::default();
        for ((lane, seconds), cid) in (0..).zip(1..).zip(cids) {
            let status = StatusNumbers::new(StatSn(100), 64);
            departures.add(LaneId(lane), Cid(*cid), status, Instant::ZERO + SECOND * seconds);
        }
        departures
    }

    #[test]
    fn a_logout_grants_time_once_to_all_of_its_name() {
        let mut departures = departures(&[7, 8, 7]);
        let later = Instant::ZERO + SECOND * 60;
        assert_eq!(departures.remove_for_recovery(Cid(7), later), [LaneId(0), LaneId(2)]);
        assert_eq!(departures.is_removed(LaneId(0)), Some(true));
        assert_eq!(departures.is_removed(LaneId(1)), Some(false));
        departures.remove_for_recovery(Cid(7), later + SECOND);
        assert_eq!(departures.late(later), [LaneId(0), LaneId(1), LaneId(2)]);
    }

    #[test]
    fn the_one_whose_time_is_up_first_makes_way() {
        let mut departures = departures(&[7; DEPARTED_MAX]);
        assert_eq!(departures.surplus(false), Some(LaneId(0)));
        departures.forget(LaneId(0));
        assert_eq!(departures.surplus(false), None);
        assert_eq!(departures.surplus(true), Some(LaneId(1)));
    }

    #[test]
    fn an_acknowledgement_is_of_the_last_one_of_its_name() {
        let mut departures = departures(&[7, 7]);
        assert_eq!(departures.acknowledge(Cid(7), StatSn(100)), None, "nothing was sent");
        assert_eq!(departures.acknowledge(Cid(9), StatSn(100)), None);
        assert_eq!(departures.find(Cid(7)), Some(LaneId(0)));
    }
}
