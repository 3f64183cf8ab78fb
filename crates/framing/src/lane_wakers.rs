//! Who to wake when a lane has something to send.

use pdu::LaneId;
use session::seam::Endpoint;
use std::task::Waker;

/// The wakers of a session's connections. Each connection is its own task; what arrives on one often makes
/// another send.
#[derive(Debug, Default)]
pub struct LaneWakers {
    lanes: Vec<Entry>,
}

#[derive(Debug)]
struct Entry {
    lane: LaneId,
    waker: Option<Waker>,
    /// Its stream takes no more for now, and will wake whoever polls it by itself.
    is_blocked: bool,
}

impl LaneWakers {
    /// Remembers who polls `lane`. The waker is taken, and must be registered again, each time it is used.
    ///
    /// Say so if the lane `is_blocked`, as its stream has no room: it is then not woken to send. Two blocked lanes with
    /// much to send would wake each other without end.
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

    /// Wakes every lane other than `current` that has something to send and may have room for it, or is in doubt.
    pub fn wake_senders<E: Endpoint>(&mut self, endpoint: &E, current: Option<LaneId>) {
        let others = self.lanes.iter_mut().filter(|entry| Some(entry.lane) != current);
        for entry in others.filter(|entry| entry.waker.is_some()) {
            let may_send = !entry.is_blocked && endpoint.wants_transmit(entry.lane);
            if may_send || endpoint.doubts(entry.lane) {
                entry.waker.take().into_iter().for_each(Waker::wake);
            }
        }
    }

    /// Wakes everyone, to look at a change that concerns all.
    pub fn wake_all(&mut self) {
        self.lanes.iter_mut().filter_map(|entry| entry.waker.take()).for_each(Waker::wake);
    }
}
