//! Wakes the tasks of lanes that have something to send.

use pdu::LaneId;
use session::seam::Endpoint;
use std::task::Waker;

/// The wakers of a session's connections. Each connection is its own task; an arrival on one often makes another send.
#[derive(Debug, Default)]
pub struct LaneWakers {
    lanes: Vec<Entry>,
}

#[derive(Debug)]
struct Entry {
    lane: LaneId,
    waker: Option<Waker>,
    /// Its stream accepts no more for now, and will itself wake the task that polls it.
    is_blocked: bool,
}

impl LaneWakers {
    /// Stores the waker of the task that polls `lane`. Each use takes the waker; register it again.
    ///
    /// `is_blocked` says that the lane's stream has no room: the lane is then not woken to send. Otherwise two blocked
    /// lanes with much to send would wake each other without end.
    pub fn register(&mut self, lane: LaneId, waker: &Waker, is_blocked: bool) {
        let Some(entry) = self.lanes.iter_mut().find(|entry| entry.lane == lane) else {
            return self.lanes.push(Entry { lane, waker: Some(waker.clone()), is_blocked });
        };
        entry.is_blocked = is_blocked;
        match &mut entry.waker {
            Some(known) => known.clone_from(waker),
            none => *none = Some(waker.clone()),
        }
    }

    /// Forgets a lane that is gone.
    pub fn remove(&mut self, lane: LaneId) {
        self.lanes.retain(|entry| entry.lane != lane);
    }

    /// Wakes one lane.
    pub fn wake(&mut self, lane: LaneId) {
        let entry = self.lanes.iter_mut().find(|entry| entry.lane == lane);
        entry.and_then(|entry| entry.waker.take()).into_iter().for_each(Waker::wake);
    }

    /// Wakes every lane, except `current`, that is in doubt, or that has something to send and may have room for it.
    pub fn wake_senders<E: Endpoint>(&mut self, endpoint: &E, current: Option<LaneId>) {
        let others = self.lanes.iter_mut().filter(|entry| Some(entry.lane) != current);
        for entry in others.filter(|entry| entry.waker.is_some()) {
            let may_send = !entry.is_blocked && endpoint.wants_transmit(entry.lane);
            if may_send || endpoint.doubts(entry.lane) {
                entry.waker.take().into_iter().for_each(Waker::wake);
            }
        }
    }

    /// Wakes every lane after a change that concerns all.
    pub fn wake_all(&mut self) {
        self.lanes.iter_mut().filter_map(|entry| entry.waker.take()).for_each(Waker::wake);
    }
}
