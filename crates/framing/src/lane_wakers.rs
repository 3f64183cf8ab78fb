//! Who to wake when a lane has something to send.

use pdu::LaneId;
use session::seam::Endpoint;
use std::task::Waker;

/// The wakers of a session's connections. Each connection is its own task; what arrives on one often makes
/// another send.
#[derive(Debug, Default)]
pub struct LaneWakers {
    lanes: Vec<(LaneId, Option<Waker>)>,
}

impl LaneWakers {
    /// Remembers who polls `lane`. The waker is taken, and must be registered again, each time it is used.
    pub fn register(&mut self, lane: LaneId, waker: &Waker) {
        match self.lanes.iter_mut().find(|(id, _)| *id == lane) {
            Some((_, Some(known))) if known.will_wake(waker) => {}
            Some((_, slot)) => *slot = Some(waker.clone()),
            None => self.lanes.push((lane, Some(waker.clone()))),
        }
    }

    /// Forgets a lane that is gone.
    pub fn remove(&mut self, lane: LaneId) {
        self.lanes.retain(|(id, _)| *id != lane);
    }

    /// Wakes one lane.
    pub fn wake(&mut self, lane: LaneId) {
        if let Some((_, slot)) = self.lanes.iter_mut().find(|(id, _)| *id == lane)
            && let Some(waker) = slot.take()
        {
            waker.wake();
        }
    }

    /// Wakes every lane other than `current` that has something to send.
    pub fn wake_senders<E: Endpoint>(&mut self, endpoint: &E, current: Option<LaneId>) {
        for (lane, slot) in &mut self.lanes {
            if Some(*lane) != current && slot.is_some() && endpoint.wants_transmit(*lane) {
                slot.take().into_iter().for_each(Waker::wake);
            }
        }
    }

    /// Wakes everyone, to look at a change that concerns all.
    pub fn wake_all(&mut self) {
        self.lanes.iter_mut().filter_map(|(_, slot)| slot.take()).for_each(Waker::wake);
    }
}
