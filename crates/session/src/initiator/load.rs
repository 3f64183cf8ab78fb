//! The load of a session's tasks on its lanes. A task counts on all lanes of its route, its bytes on the lane that
//! carries them.

use super::event::Data;
use super::lane::Lane;
use crate::lanes::{Lanes, Route};
use pdu::LaneId;

/// Data of one task that has not been transferred.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unmoved {
    Out(u32),
    In(u32),
}

impl Unmoved {
    /// `bytes` of this data, in its direction.
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
            Self::In(_) => route.data_in,
        }
    }
}

/// The load of one lane. Only the methods of [`Lanes`], which know the routes, change it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Load {
    tasks: u32,
    out_bytes: u64,
    in_bytes: u64,
}

impl Load {
    /// The number of tasks that have this lane in their route.
    pub(super) fn tasks(self) -> u32 {
        self.tasks
    }

    /// Bytes that these tasks have yet to send on this lane.
    pub(super) fn out_bytes(self) -> u64 {
        self.out_bytes
    }

    /// Bytes that these tasks have yet to receive on this lane.
    pub(super) fn in_bytes(self) -> u64 {
        self.in_bytes
    }
}

impl Lanes<Lane> {
    /// Adds a task to all lanes of its route.
    pub(super) fn charge(&mut self, route: Route, unmoved: Unmoved) {
        self.for_each_of(route, |load| load.tasks += 1);
        self.charge_bytes(route, unmoved);
    }

    /// Removes a task from all lanes of its route. A lost lane took its own share along.
    pub(super) fn release(&mut self, route: Route, unmoved: Unmoved) {
        self.for_each_of(route, |load| load.tasks -= 1);
        self.release_bytes(route, unmoved);
    }

    /// Adds data of a task that is to be transferred again.
    pub(super) fn charge_bytes(&mut self, route: Route, unmoved: Unmoved) {
        if let Some(lane) = self.get_mut(unmoved.lane(route)) {
            match unmoved {
                Unmoved::Out(bytes) => lane.load.out_bytes += u64::from(bytes),
                Unmoved::In(bytes) => lane.load.in_bytes += u64::from(bytes),
            }
        }
    }

    /// Removes data of a task that has been transferred.
    pub(super) fn release_bytes(&mut self, route: Route, moved: Unmoved) {
        if let Some(lane) = self.get_mut(moved.lane(route)) {
            match moved {
                Unmoved::Out(bytes) => lane.load.out_bytes -= u64::from(bytes),
                Unmoved::In(bytes) => lane.load.in_bytes -= u64::from(bytes),
            }
        }
    }

    fn for_each_of(&mut self, route: Route, change: impl Fn(&mut Load)) {
        for lane in route.lanes() {
            if let Some(lane) = self.get_mut(lane) {
                change(&mut lane.load);
            }
        }
    }
}
