//! What the tasks of a session weigh on its lanes: each counts on both lanes of its route, and its bytes on the one that
//! they take.

use super::event::Data;
use super::lane::Lane;
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

    pub(super) fn out_bytes(self) -> u32 {
        if let Self::Out(bytes) = self { bytes } else { 0 }
    }

    pub(super) fn in_bytes(self) -> u32 {
        if let Self::In(bytes) = self { bytes } else { 0 }
    }

    fn lane(self, route: Route) -> LaneId {
        match self {
            Self::Out(_) => route.request,
            Self::In(_) => route.response,
        }
    }
}

/// What one lane carries. Changed only by the methods of [`Lanes`], which know the routes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Load {
    tasks: u32,
    out_bytes: u64,
    in_bytes: u64,
}

impl Load {
    /// The tasks that have this lane in their route.
    pub(super) fn tasks(self) -> u32 {
        self.tasks
    }

    /// Their bytes that have not left and take this lane.
    pub(super) fn out_bytes(self) -> u64 {
        self.out_bytes
    }

    /// Their bytes that have not come and take this lane.
    pub(super) fn in_bytes(self) -> u64 {
        self.in_bytes
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
        if let Some(lane) = self.get_mut(unmoved.lane(route)) {
            match unmoved {
                Unmoved::Out(bytes) => lane.load.out_bytes += u64::from(bytes),
                Unmoved::In(bytes) => lane.load.in_bytes += u64::from(bytes),
            }
        }
    }

    /// Data of a task has moved.
    pub(super) fn release_bytes(&mut self, route: Route, moved: Unmoved) {
        if let Some(lane) = self.get_mut(moved.lane(route)) {
            match moved {
                Unmoved::Out(bytes) => lane.load.out_bytes -= u64::from(bytes),
                Unmoved::In(bytes) => lane.load.in_bytes -= u64::from(bytes),
            }
        }
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
