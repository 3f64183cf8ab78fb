//! The connections of a session by their lane numbers, and the route of each task over them. Both roles.

use crate::parameters::{LaneRole, SplitLanes};
use pdu::LaneId;

/// How much of one task's data a lane sends before the next task has its turn. Commands of usual lengths are served one
/// after the other: each ends as early as possible, and its data is still in the processor's cache.
pub(crate) const TURN_BYTES: u32 = 1 << 20;

/// The longest data of a read that comes with its status where the data of reads has a lane of its own. The status of a
/// read whose data comes apart takes a PDU more, which is 3 % of such a read, and 1 % of one twice as long.
pub(crate) const WITH_STATUS_BYTES_MAX: u32 = 4096;

/// The lanes of a task. In an ordinary session all are the same (RFC 7143 §4.2.5.1); in a split one, each is what its role
/// says. A task whose route loses a lane is an orphan: it keeps its route until it is given another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Route {
    /// The lane of its command and Data-Out.
    pub(crate) request: LaneId,
    /// The lane of its R2Ts and status.
    pub(crate) response: LaneId,
    /// The lane of its Data-In.
    pub(crate) data_in: LaneId,
}

impl Route {
    /// A route that uses one lane for everything.
    pub(crate) fn over(lane: LaneId) -> Self {
        Self { request: lane, response: lane, data_in: lane }
    }

    /// The route of a task that reads so many bytes: short data comes with its status.
    pub(crate) fn for_read(self, bytes: u32) -> Self {
        if bytes <= WITH_STATUS_BYTES_MAX { Self { data_in: self.response, ..self } } else { self }
    }

    pub(crate) fn uses(self, lane: LaneId) -> bool {
        self.request == lane || self.brings_to_initiator(lane)
    }

    /// Whether something of the task travels to the initiator on this lane.
    pub(crate) fn brings_to_initiator(self, lane: LaneId) -> bool {
        self.response == lane || self.data_in == lane
    }

    /// The lanes, each once.
    pub(crate) fn lanes(self) -> impl Iterator<Item = LaneId> {
        let Self { request, response, data_in } = self;
        let others = [
            Some(response).filter(|lane| *lane != request),
            Some(data_in).filter(|lane| *lane != request && *lane != response),
        ];
        std::iter::once(request).chain(others.into_iter().flatten())
    }

    /// Whether the status may arrive before data that was sent earlier.
    pub(crate) fn parts_status_from_data(self) -> bool {
        self.response != self.data_in
    }
}

/// A lane that knows its role.
pub(crate) trait Roled {
    fn role(&self) -> LaneRole;

    /// Whether it can still be used.
    fn is_usable(&self) -> bool;
}

impl<L: Roled> Lanes<L> {
    /// Whether the session is split over its lanes.
    pub(crate) fn are_split(&self) -> bool {
        self.values().any(|lane| lane.role() != LaneRole::Whole)
    }

    /// The lane with this role in a split session.
    pub(crate) fn with_role(&self, role: LaneRole) -> Option<LaneId> {
        self.select(|lane| lane.role() == role && lane.is_usable()).next()
    }

    /// The lane of the responses to what is sent on this one: itself, or in a split session another, if that is there. In a
    /// split session, it is the only one that numbers responses.
    pub(crate) fn of_responses(&self, id: LaneId) -> Option<LaneId> {
        match self.get(id)?.role() {
            LaneRole::Whole | LaneRole::Responses => Some(id),
            LaneRole::Requests | LaneRole::DataIn => self.with_role(LaneRole::Responses),
        }
    }

    /// Whether the PDUs of this lane have numbers of their own.
    pub(crate) fn numbers_responses(&self, id: LaneId) -> bool {
        self.get(id).is_none_or(|lane| matches!(lane.role(), LaneRole::Whole | LaneRole::Responses))
    }

    /// The lane of the requests to which this one brings responses.
    pub(crate) fn of_requests(&self, id: LaneId) -> LaneId {
        match self.get(id).map(Roled::role) {
            None | Some(LaneRole::Whole | LaneRole::Requests) => id,
            Some(LaneRole::Responses | LaneRole::DataIn) => self.with_role(LaneRole::Requests).unwrap_or(id),
        }
    }

    /// The route of a task whose command travels on this lane, once all lanes that it needs are there.
    pub(crate) fn route_over(&self, id: LaneId, split: SplitLanes) -> Option<Route> {
        match self.get(id)?.role() {
            LaneRole::Whole => Some(Route::over(id)),
            LaneRole::Responses | LaneRole::DataIn => None,
            LaneRole::Requests => Some(Route {
                request: id,
                response: self.with_role(LaneRole::Responses)?,
                data_in: self.with_role(split.brings_reads())?,
            }),
        }
    }
}

/// The lanes of a session, in the order of their numbers. They are few, and every PDU looks for its own several times.
#[derive(Debug)]
pub(crate) struct Lanes<L> {
    table: Vec<(LaneId, L)>,
}

impl<L> Lanes<L> {
    pub(crate) fn new() -> Self {
        Self { table: Vec::new() }
    }

    /// Adds a lane whose number is new to the session.
    pub(crate) fn add(&mut self, id: LaneId, lane: L) {
        let place = self.table.partition_point(|(known, _)| *known < id);
        self.table.insert(place, (id, lane));
    }

    /// Takes out a lost lane.
    pub(crate) fn lose(&mut self, id: LaneId) -> Option<L> {
        let place = self.table.iter().position(|(known, _)| *known == id)?;
        Some(self.table.remove(place).1)
    }

    pub(crate) fn get(&self, id: LaneId) -> Option<&L> {
        self.iter().find(|(known, _)| *known == id).map(|(_, lane)| lane)
    }

    pub(crate) fn get_mut(&mut self, id: LaneId) -> Option<&mut L> {
        self.table.iter_mut().find(|(known, _)| *known == id).map(|(_, lane)| lane)
    }

    pub(crate) fn has(&self, id: LaneId) -> bool {
        self.get(id).is_some()
    }

    /// A copy of all lane numbers, so that the caller can change the lanes in a loop.
    pub(crate) fn ids(&self) -> Vec<LaneId> {
        self.select(|_| true).collect()
    }

    /// The numbers of the lanes that match.
    pub(crate) fn select(&self, matches: impl Fn(&L) -> bool) -> impl Iterator<Item = LaneId> {
        self.iter().filter(move |(_, lane)| matches(lane)).map(|(id, _)| id)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (LaneId, &L)> {
        self.table.iter().map(|(id, lane)| (*id, lane))
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = &L> {
        self.table.iter().map(|(_, lane)| lane)
    }

    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut L> {
        self.table.iter_mut().map(|(_, lane)| lane)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.table.len()
    }
}
