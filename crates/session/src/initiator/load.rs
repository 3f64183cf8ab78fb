//! What the tasks of a session weigh on its lanes: each counts on both lanes of its route, and its bytes on the one that
//! they take.

use super::event::Data;
use super::lane::{Lane, Phase};
use crate::lanes::{Lanes, Route};
use pdu::LaneId;

/// Data of one task that has not moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unmoved {
    Out(u32),
    In(u32),
}

impl Unmoved {
    /// So many bytes of this data.
    pub(super) fn of(data: Data, bytes: u32) -> Self {
        match data {
            Data::Out(_) => Self::Out(bytes),
            Data::In(_) | Data::None => Self::In(bytes),
        }
    }

    fn lane_and_bytes(self, route: Route) -> (LaneId, u64) {
        match self {
            Self::Out(bytes) => (route.request, bytes.into()),
            Self::In(bytes) => (route.response, bytes.into()),
        }
    }
}

/// What one lane carries. Changed only by the methods of [`Lanes`], which know the routes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Load {
    tasks: u32,
    bytes: u64,
}

impl Load {
    /// The tasks that have this lane in their route.
    pub(super) fn tasks(self) -> u32 {
        self.tasks
    }

    /// Their bytes that have not moved and take this lane.
    pub(super) fn bytes(self) -> u64 {
        self.bytes
    }
}

impl Lanes<Lane> {
    /// A task takes this route.
    pub(super) fn charge(&mut self, route: Route, unmoved: Unmoved) {
        self.for_each_of(route, |load| load.tasks += 1);
        self.charge_bytes(route, unmoved);
    }

    /// A task leaves its route. What it weighed on a lane that is gone went with that.
    pub(super) fn release(&mut self, route: Route, unmoved: Unmoved) {
        self.for_each_of(route, |load| load.tasks -= 1);
        self.release_bytes(route, unmoved);
    }

    /// Data of a task is to be moved again.
    pub(super) fn charge_bytes(&mut self, route: Route, unmoved: Unmoved) {
        let (lane, bytes) = unmoved.lane_and_bytes(route);
        if let Some(lane) = self.get_mut(lane) {
            lane.load.bytes += bytes;
        }
    }

    /// Data of a task has moved.
    pub(super) fn release_bytes(&mut self, route: Route, moved: Unmoved) {
        let (lane, bytes) = moved.lane_and_bytes(route);
        if let Some(lane) = self.get_mut(lane) {
            lane.load.bytes -= bytes;
        }
    }

    /// The lane with the least to do, of those that take commands if there are any.
    pub(super) fn least_loaded(&self) -> Option<LaneId> {
        let usable = self.iter().filter(|(_, lane)| matches!(lane.phase, Phase::Open | Phase::Draining));
        let load = usable.map(|(id, lane)| (lane.phase != Phase::Open, lane.load.bytes, lane.load.tasks, id));
        load.min().map(|(.., id)| id)
    }

    fn for_each_of(&mut self, route: Route, change: impl Fn(&mut Load)) {
        if let Some(lane) = self.get_mut(route.request) {
            change(&mut lane.load);
        }
        if route.request != route.response
            && let Some(lane) = self.get_mut(route.response)
        {
            change(&mut lane.load);
        }
    }
}
